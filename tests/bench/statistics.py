"""The statistics: what they take, and how often they err, beside what one would do without them.

The second part is no timing: a share of simulated cases in which a figure or a verdict is wrong.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats as reference
from scipy.signal import lfilter

from farm.stats.compare import paired_look
from farm.stats.percentiles import interval, published_n
from tests.bench.row import Row, compare
from tests.simulation.sides import PAIRS, compared, pairs, slots
from tests.simulation.traces import Trace, bias, warm_up

_N = 131_072  # the most that a pass records
_CASES = 300


def rows() -> Iterator[Row]:
    """Yield the times of the two dearest calls, then the three ways to be wrong (T4, T6, T7)."""
    rng = np.random.default_rng(20)
    samples = rng.random(_N)
    row = 0.01 * rng.standard_normal(PAIRS)
    yield compare(
        f"stats: effective n of {_N:,} samples",
        "numpy, sorting them",
        "ms",
        lambda: _taken(lambda: published_n(samples, 99.0), 1e3),
        lambda: _taken(lambda: np.sort(samples), 1e3),
    )
    yield compare(
        f"stats: a look at {PAIRS} pairs",
        "scipy ttest_1samp",
        "µs",
        lambda: _taken(lambda: paired_look(row), 1e6),
        lambda: _taken(lambda: reference.ttest_1samp(row, 0.0), 1e6),
    )
    yield compare(
        "stats: equal sides called different",
        "t-test of A…A B…B while it drifts",
        "%",
        lambda: 100.0 * compared(pairs(rng, _slots(rng))).changes / _CASES,
        lambda: 100.0 * _one_after_the_other(rng),
    )
    yield compare(
        "stats: intervals of p50 that miss it",
        "order statistics of all samples",
        "%",
        lambda: 100.0 * _missed(rng, lambda series: published_n(series, 50.0)),
        lambda: 100.0 * _missed(rng, len),
    )
    decay = Trace(0.0004, lambda t: 1.0 + 0.3 * np.exp(-t / 0.1))
    yield compare(
        "stats: bias that a warm-up leaves",
        "10 iterations",
        "%",
        lambda: 100.0 * bias(decay, warm_up(decay, rng).at_s, seconds=0.5),
        lambda: 100.0 * bias(decay, 10 * decay.step_s, seconds=0.5),
    )


def _taken(call: Callable[[], object], unit: float) -> float:
    began = time.perf_counter()
    call()
    return unit * (time.perf_counter() - began)


def _slots(rng: np.random.Generator) -> np.ndarray:
    return slots(rng, _CASES, spread=0.02, shape="drift")


def _one_after_the_other(rng: np.random.Generator) -> float:
    values = _slots(rng)
    found = reference.ttest_ind(values[:, :PAIRS], values[:, PAIRS:], axis=1)
    return float(np.mean(found.pvalue <= 0.05))


def _missed(rng: np.random.Generator, worth: Callable[[np.ndarray], int]) -> float:
    """The share of correlated series of 400 whose interval does not hold their true median, 0."""
    missed = 0
    for series in lfilter([1.0], [1.0, -0.8], rng.standard_normal((_CASES, 500)), axis=1)[:, 100:]:
        found = interval(series, 50.0, m=worth(series))
        missed += found is None or not found[0] <= 0.0 <= found[1]
    return missed / _CASES
