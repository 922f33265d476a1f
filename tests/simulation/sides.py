"""Two sides of a comparison, one value per process: simulated ones, and some that were measured."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from farm.stats.compare import LOOKS, paired_look

Floats = npt.NDArray[np.float64]

PAIRS: Final = LOOKS[-1]
DRIFT: Final = 0.1  # over a whole comparison
STICKY: Final = 0.6  # correlation of neighbours in time
# Median of 1,000 calls of a three-layer perceptron (64 × 256, one thread) in ns, of 64 fresh
# processes one after the other on a shared machine: they drift, and spread by 2.7 %.
MEASURED: Final = (
    249892, 250198, 247902, 251525, 241679, 244292, 246100, 249349, 247359, 247868, 248053,
    245235, 252252, 248533, 247292, 250991, 242769, 248457, 246494, 252816, 248094, 245428,
    241645, 241072, 244895, 246627, 238690, 246003, 250523, 246676, 241456, 241133, 236162,
    235682, 233137, 235689, 234469, 236829, 243531, 244355, 237231, 243127, 245982, 244753,
    252916, 250067, 256109, 251650, 226578, 249114, 247100, 249865, 248379, 245063, 242221,
    234445, 230695, 231796, 240315, 243501, 245244, 235979, 231767, 233137,
)  # fmt: skip


@dataclass
class Tally:
    """What a number of comparisons ended in; covered: those whose interval always held the truth.

    pairs: how many each took.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    pairs: list[int] = field(default_factory=list)
    covered: int = 0

    @property
    def changes(self) -> int:
        return self.verdicts["worse"] + self.verdicts["better"]


def slots(rng: np.random.Generator, count: int, *, spread: float, shape: str) -> Floats:
    """Return ln process medians in the order of time, float64[count, 2·PAIRS].

    shape: `plain`, `drift`, `sticky`, `outliers`, or `all` of them; `measured` resamples runs of
    ten measured processes, and spread is that of the measurement.
    """
    if shape == "measured":
        starts = rng.integers(len(MEASURED), size=(count, 2 * PAIRS // 10, 1))
        return np.log(MEASURED)[(starts + np.arange(10)) % len(MEASURED)].reshape(count, -1)
    found = spread * rng.standard_normal((count, 2 * PAIRS))
    if shape in ("sticky", "all"):
        found = lfilter([1.0], [1.0, -STICKY], found, axis=1)
    if shape in ("drift", "all"):
        found += DRIFT * np.linspace(0.0, 1.0, 2 * PAIRS)
    if shape in ("outliers", "all"):
        hit = rng.random(found.shape) < 0.05
        found += hit * rng.exponential(10.0 * spread, found.shape)
    return found


def pairs(rng: np.random.Generator, values: Floats, *, change: float = 0.0) -> Floats:
    """Return the differences of adjacent pairs in random order, float64[count, PAIRS]."""
    first, second = values[:, 0::2], values[:, 1::2]
    swapped = rng.random(first.shape) < 0.5
    return np.where(swapped, first - second, second - first) + np.log1p(change)


def compared(differences: Floats, *, alpha: float = 0.05, change: float = 0.0) -> Tally:
    """Take look after look at each row of differences, through the product's own rule."""
    tally = Tally()
    for row in differences:
        covered = True
        for count in LOOKS:
            look = paired_look(row[:count], alpha=alpha)
            covered &= look.lo <= change <= look.hi
            if look.verdict != "go on":
                break
        tally.verdicts[look.verdict] += 1
        tally.pairs.append(count)
        tally.covered += covered
    return tally
