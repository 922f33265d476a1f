"""What disturbed which iteration: a label names a cause, or that none is known; none is deleted.

A mask is bool[n], in the order of the samples. Which bits a label has is the recorder's matter.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farm.errors import Refused
from farm.stats.percentiles import FloatArray, Samples, checked
from farm.stats.spread import outlier_bound

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Clean:
    """The samples without a cause: their median, None where there is none, and their share."""

    p50: float | None
    share: float


def unexplained(samples: Samples, caused: Mask) -> Mask:
    """Return which samples lie beyond the outlier bound of all of them and have no cause.

    samples: n >= 1; caused: bool[n]. Raises Refused if the two differ in length.
    """
    values = _alike(samples, caused)
    return (values > outlier_bound(values)) & ~caused


def clean(samples: Samples, caused: Mask) -> Clean:
    """Return median and share of the samples without a known cause; unexplained ones stay in.

    samples: n >= 1; caused: bool[n]. Raises Refused if the two differ in length.
    """
    kept = _alike(samples, caused)[~caused]
    return Clean(float(np.median(kept)) if kept.size else None, kept.size / caused.size)


def _alike(samples: Samples, caused: Mask) -> FloatArray:
    values = checked(samples)
    if caused.shape != values.shape:
        raise Refused(f"{caused.size} labels of {values.size} samples", why="each sample has one")
    return values
