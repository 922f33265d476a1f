"""How often an interval holds the truth: T6 of the acceptance table, by simulation.

A bound is the promised rate less what chance takes once in ten million runs.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats as reference
from scipy.signal import lfilter

from farm.stats.percentiles import interval, needed_n, published_n
from farm.stats.processes import headline

CHANCE = 1e-7
PROMISED = 0.93
ASKED = (50.0, 90.0, 95.0, 99.0)


class Cell(NamedTuple):
    """Of so many series: how many had an interval, and how many of those held the truth."""

    published: int
    covered: int


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_intervals_cover_the_truth_of_correlated_series(
    phi: float, rng: np.random.Generator
) -> None:
    """T6, the quick part: 93 % of what is published holds the truth at n = 200 and 1,000."""
    for n in (200, 1000):
        _assert_coverage(rng, phi=phi, n=n, count=250)


@pytest.mark.long
@pytest.mark.parametrize("n", [200, 400, 1000, 2000, 4000])
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_coverage_at_length(phi: float, n: int, rng: np.random.Generator) -> None:
    """T6 over the whole grid, 1,500 series to a cell."""
    _assert_coverage(rng, phi=phi, n=n, count=1500)


def test_no_series_below_368_has_an_interval_of_p99(rng: np.random.Generator) -> None:
    """Nor do longer ones that are worth fewer: effective samples count, and nothing else."""
    needed = needed_n(99.0)
    for phi in (0.0, 0.5, 0.8):
        for n in (100, 367, 368, 600, 1200):
            for series in _autoregressive(rng, phi=phi, n=n, count=20):
                m = published_n(series, 99.0)
                assert m <= n
                assert (interval(series, 99.0, m=m) is not None) == (m >= needed)

    assert 368 == needed


@pytest.mark.parametrize("repeats", [2, 3, 5, 6, 10])
def test_a_headline_covers_the_truth(repeats: int, rng: np.random.Generator) -> None:
    """Processes that spread by 2 %: the interval of their median holds the true median."""
    count = 2000
    medians = np.exp(0.02 * rng.standard_normal((count, repeats)))

    found = [headline(row) for row in medians]

    assert sum(f.lo is not None and f.lo <= 1.0 <= (f.hi or 0.0) for f in found) >= (
        reference.binom.ppf(CHANCE, count, PROMISED)
    )


def _assert_coverage(rng: np.random.Generator, *, phi: float, n: int, count: int) -> None:
    """Only cells in which 5 % of the series publish can be judged."""
    series = _autoregressive(rng, phi=phi, n=n, count=count)
    for q in ASKED:
        cell = _cell(series, q, truth=float(reference.norm.ppf(q / 100.0)))
        if cell.published >= 0.05 * count:
            bound = reference.binom.ppf(CHANCE, cell.published, PROMISED)
            assert cell.covered >= bound, f"p{q:g} of AR({phi}) at n = {n}: {cell}"


def _cell(series: np.ndarray, q: float, *, truth: float) -> Cell:
    published = covered = 0
    for row in series:
        found = interval(row, q, m=published_n(row, q))
        if found is not None:
            published += 1
            covered += found[0] <= truth <= found[1]
    return Cell(published, covered)


def _autoregressive(rng: np.random.Generator, *, phi: float, n: int, count: int) -> np.ndarray:
    """Series of variance 1 from their first value on, float64[count, n]."""
    noise = np.sqrt(1.0 - phi**2) * rng.standard_normal((count, n))
    noise[:, 0] /= np.sqrt(1.0 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=1))
