"""Percentiles, effective sample sizes and order-statistic intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from farm.errors import Refused
from farm.stats.percentiles import effective_n, interval, needed_n, percentile, published_n, ranks

durations = st.floats(min_value=1e-3, max_value=1e9, allow_nan=False)
series = st.lists(durations, min_size=1, max_size=60)
quantiles = st.floats(min_value=0.0, max_value=100.0)


def test_percentiles_interpolate_linearly() -> None:
    """Golden numbers G2: rank p·(n - 1), linear in between."""
    two, three = [20.0, 10.0], [3.0, 1.0, 2.0]

    assert [15.0, 19.5, 19.9] == pytest.approx([percentile(two, q) for q in (50, 95, 99)])
    assert [2.0, 2.9, 2.98] == pytest.approx([percentile(three, q) for q in (50, 95, 99)])


@given(series, quantiles, quantiles)
def test_percentile_grows_with_q_and_stays_inside(samples: list[float], a: float, b: float) -> None:
    """A percentile is monotone in q and lies between the smallest and the largest sample."""
    low, high = sorted((a, b))
    slack = 1e-12 * max(samples)

    assert percentile(samples, low) <= percentile(samples, high) + slack
    assert min(samples) - slack <= percentile(samples, low)
    assert percentile(samples, high) <= max(samples) + slack


@given(series, quantiles)
def test_percentile_ignores_order_and_follows_the_unit(samples: list[float], q: float) -> None:
    """The order of samples does not matter, and a change of unit changes the result alike."""
    scaled = [1000.0 * each for each in reversed(samples)]

    assert percentile(scaled, q) == pytest.approx(1000.0 * percentile(samples, q))


@pytest.mark.parametrize("q", [-0.1, 100.1, float("nan")])
def test_a_percentile_outside_the_scale_is_refused(q: float) -> None:
    """There is no percentile below 0 or above 100."""
    with pytest.raises(Refused, match="does not exist"):
        percentile([1.0], q)


def test_no_samples_are_refused() -> None:
    """Nothing has no percentile."""
    with pytest.raises(Refused, match="no samples"):
        percentile([], 50.0)


@pytest.mark.parametrize(("run", "expected"), [(5, 37.594), (10, 19.231), (1, 100.0)])
def test_effective_n_shrinks_with_the_length_of_runs(run: int, expected: float) -> None:
    """Golden numbers G11: a hundred samples in alternating runs."""
    alternating = np.resize(np.repeat([1.0, 2.0], run), 100)

    assert expected == pytest.approx(effective_n(alternating, 50.0), abs=5e-4)


@given(series, quantiles)
def test_effective_n_lies_between_one_and_n(samples: list[float], q: float) -> None:
    """No correlation can make samples worth more than their number, or less than one."""
    assert 1.0 <= effective_n(samples, q) <= len(samples)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60))
def test_effective_n_is_that_of_its_definition(levels: list[int]) -> None:
    """Biased autocorrelations one by one, added in pairs while the pairs are positive."""
    assert pytest.approx(_effective_n(levels), rel=1e-6) == effective_n(levels, 50.0)


@pytest.mark.parametrize("n", [6, 7, 8, 9, 40, 41])
def test_every_pair_of_lags_counts(n: int) -> None:
    """A single step is correlated over half of all lags, of odd and of even series."""
    step = [1] * (n // 2) + [2] * (n % 2) + [3] * (n // 2)

    assert pytest.approx(_effective_n(step)) == effective_n(step, 50.0)
    assert effective_n(step, 50.0) < 4.0


def test_ticks_of_a_coarse_clock_hide_no_correlation() -> None:
    """More than half of the samples share the largest value: it is their median."""
    assert effective_n([1.0] * 40 + [2.0] * 60, 50.0) < 4.0
    assert effective_n([2.0] * 60 + [1.0] * 40, 90.0) < 4.0


@given(st.integers(3, 200), st.integers(0, 2**32 - 1))
def test_published_n_is_the_smaller_of_two(n: int, source: int) -> None:
    """Of the percentile and of the median, rounded down."""
    values = np.random.default_rng(source).random(n).round(3)

    for q in (50.0, 90.0):
        assert published_n(values, q) == int(min(effective_n(values, q), effective_n(values, 50.0)))


def test_a_constant_series_is_worth_all_its_samples() -> None:
    """Where nothing varies, nothing is correlated."""
    assert 40.0 == effective_n([7.0] * 40, 50.0)


def test_published_n_is_never_above_that_of_the_median(rng: np.random.Generator) -> None:
    """A tail indicator that sees no correlation is overruled by the median."""
    walk = np.exp(0.01 * np.cumsum(rng.standard_normal(500)))

    assert published_n(walk, 99.0) <= effective_n(walk, 50.0)
    assert published_n(walk, 99.0) <= effective_n(walk, 99.0)


@pytest.mark.parametrize(
    ("m", "q", "expected"),
    [
        (6, 50, (1, 6)),
        (100, 50, (40, 61)),
        (100, 95, (90, 100)),
        (368, 99, (360, 368)),
        (1000, 90, (881, 919)),
    ],
)
def test_ranks_are_the_exact_ones(m: int, q: float, expected: tuple[int, int]) -> None:
    """Golden numbers G10."""
    assert expected == ranks(m, q)


@given(st.integers(1, 3000), st.sampled_from([5.0, 25.0, 50.0, 90.0, 95.0, 99.0, 99.9]))
def test_each_tail_outside_the_ranks_is_as_large_as_allowed(m: int, q: float) -> None:
    """Both ranks obey their definition: 2.5 % is kept, and one rank further in breaks it."""
    found = ranks(m, q)
    count = reference.binom(m, q / 100.0)
    if found is None:
        assert count.cdf(0) > 0.025 or count.sf(m - 1) > 0.025
        return

    low, high = found

    assert count.cdf(low - 1) <= 0.025 < count.cdf(low)
    assert count.sf(high - 1) <= 0.025 < count.sf(high - 2)


@pytest.mark.parametrize(
    ("q", "expected"), [(50, 6), (90, 36), (95, 72), (99, 368), (99.9, 3688), (1, 368)]
)
def test_needed_n_is_where_an_interval_begins(q: float, expected: int) -> None:
    """The needed sizes of measurement §7: one less has no interval."""
    assert expected == needed_n(q)
    assert ranks(expected, q) is not None
    assert ranks(expected - 1, q) is None


@pytest.mark.parametrize("q", [0.0, 100.0])
def test_the_extremes_have_no_interval_at_any_size(q: float) -> None:
    """No number of samples bounds the minimum or the maximum of a distribution."""
    assert ranks(100_000, q) is None
    with pytest.raises(Refused):
        needed_n(q)


@given(
    st.lists(durations, min_size=6, max_size=200),
    st.sampled_from([50.0, 90.0, 95.0]),
    st.data(),
)
def test_an_interval_contains_its_point(
    samples: list[float], q: float, data: st.DataObject
) -> None:
    """Whatever the effective size, the point lies inside, and the bounds are samples."""
    m = data.draw(st.integers(1, len(samples)))
    found = interval(samples, q, m=m)
    if found is None:
        assert m < needed_n(q)
        return

    assert found[0] <= percentile(samples, q) <= found[1]
    assert set(found) <= set(samples)


def test_fewer_effective_samples_widen_the_interval() -> None:
    """The ranks of m samples are stretched to n: half of the information, a wider interval."""
    samples = np.arange(1.0, 201.0)

    assert (86.0, 115.0) == interval(samples, 50.0, m=200)
    assert (80.0, 122.0) == interval(samples, 50.0, m=100)
    with pytest.raises(Refused):
        interval(samples, 50.0, m=201)


def _effective_n(levels: list[int]) -> float:
    """Of the median, by the book."""
    n, middle = len(levels), float(np.median(levels))
    if min(levels) == max(levels):
        return float(n)
    below = np.array([each < middle or (each == middle < max(levels)) for each in levels], float)
    centred = below - below.mean()
    rho = [centred[: n - k] @ centred[k:] / (centred @ centred) for k in range(n)]
    tau = 1.0
    for pair in (rho[k] + rho[k + 1] for k in range(1, n - 1, 2)):
        if pair <= 1e-12:
            break
        tau += 2.0 * pair
    return float(min(n, max(1.0, n / tau)))
