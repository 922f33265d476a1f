"""Processes on a quiet or a loaded machine: what their samples look like, and what is said of them.

A neighbour takes the core between two iterations or within one: that iteration waits, and the
scheduler counts the wait. Times are in ms, the true median is 1 but for the spread of processes.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from farm.stats.labels import clean, unexplained
from farm.stats.percentiles import percentile
from farm.stats.processes import DISAGREE, Headline, headline, proc_cv
from farm.stats.spread import bimodal, is_drifting
from workers.disturbance import WAIT_LIMIT

Floats = npt.NDArray[np.float64]

N: Final = 256
REPEATS: Final = 3
SPREAD: Final = 0.005  # between processes
NOISE: Final = 0.01
STICKY: Final = 0.5
SLICE_MS: Final = 3.0  # what a neighbour takes at a time, in the mean


@dataclass(frozen=True)
class Run:
    """A job of three repeats: its headline, and what a reader is warned of.

    clean: the headline of the medians without the iterations that waited.
    """

    headline: Headline
    clean: Headline
    flags: frozenset[str]


def run(rng: np.random.Generator, *, load: float) -> Run:
    """Return a job on a machine where each iteration loses its core with probability `load`."""
    medians, cleaned, flags = [], [], set()
    for _ in range(REPEATS):
        samples, waits = _process(rng, load=load)
        medians.append(percentile(samples, 50.0))
        waited = waits > 0.01 * samples
        rest = clean(samples, waited)
        cleaned.append(medians[-1] if rest.p50 is None else rest.p50)
        flags |= _flags(samples, waits)
        assert not np.any(unexplained(samples, waited) & waited)
    spread = proc_cv(medians)
    if spread is not None and spread > DISAGREE:
        flags.add("processes_disagree")
    return Run(headline(medians), headline(cleaned), frozenset(flags))


def _process(rng: np.random.Generator, *, load: float) -> tuple[Floats, Floats]:
    """Samples of one process, and how long each of them waited."""
    noise = np.sqrt(1.0 - STICKY**2) * NOISE * rng.standard_normal(N)
    own = np.exp(SPREAD * rng.standard_normal() + lfilter([1.0], [1.0, -STICKY], noise))
    waits = (rng.random(N) < load) * rng.exponential(SLICE_MS, N)
    return own + waits, waits


def _flags(samples: Floats, waits: Floats) -> set[str]:
    found = {
        "contended": float(waits.sum() / samples.sum()) > WAIT_LIMIT,
        "drifting": is_drifting(samples),
        "bimodal": bimodal(samples),
    }
    return {flag for flag, is_set in found.items() if is_set}
