"""Figures over processes: headline, spread between processes, pooled percentiles, stability."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.stats.percentiles import percentile, published_n
from farm.stats.processes import Headline, headline, pooled, proc_cv, stability

medians = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=12)
GOOD = {
    "iqr_rel": 0.01,
    "drift": 0.005,
    "proc_cv": 0.005,
    "caused_share": 0.0,
    "bimodal": False,
    "n": 100,
    "repeats": 3,
}


def test_headline_of_three_processes_is_their_median_with_a_t_interval() -> None:
    """Golden numbers G13."""
    found = headline([10.1, 10.0, 10.3])

    assert 10.1 == found.value
    assert pytest.approx(9.761, abs=5e-4) == found.lo
    assert pytest.approx(10.518, abs=5e-4) == found.hi
    assert "" == found.reason


def test_a_single_process_has_no_interval() -> None:
    """The spread between processes cannot be seen from one."""
    assert Headline(7.0, None, None, "single_repeat") == headline([7.0])
    assert proc_cv([7.0]) is None


def test_from_six_processes_on_the_extremes_of_six_bound_the_median() -> None:
    """Order statistics, each process once: six are bounded by the smallest and the largest."""
    found = headline([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])

    assert (3.5, 1.0, 6.0) == (found.value, found.lo, found.hi)


@given(medians)
def test_a_headline_lies_inside_its_interval(values: list[float]) -> None:
    """The point is never outside, equal processes included."""
    found = headline(values)

    assert min(values) <= found.value <= max(values)
    if len(values) == 1:
        assert found.lo is None
    else:
        assert found.lo is not None
        assert found.hi is not None
        assert found.lo <= found.value <= found.hi


def test_proc_cv_is_the_spread_of_logarithms() -> None:
    """Two processes 2 % apart: ln 1.02 over the square root of 2."""
    assert pytest.approx(np.log(1.02) / np.sqrt(2.0)) == proc_cv([1.0, 1.02])
    assert 0.0 == proc_cv([3.0, 3.0, 3.0])


def test_effective_sizes_of_repeats_add_up(rng: np.random.Generator) -> None:
    """No repeat alone bounds p90 with 20 samples, three of them together do."""
    repeats = [1.0 + 0.01 * rng.permutation(20) / 20 for _ in range(3)]

    alone, together = pooled(repeats[:1], 90.0), pooled([np.ones(20)] * 3, 90.0)

    assert alone.lo is None
    assert alone.reason.startswith("below_resolution: needs 36 effective samples, has ")
    assert not alone.reliable
    assert (1.0, 1.0, 1.0, True, "") == (
        together.value,
        together.lo,
        together.hi,
        together.reliable,
        together.reason,
    )


def test_no_p99_interval_below_368() -> None:
    """The point stays, the interval does not exist."""
    found = pooled([np.full(367, 2.0)], 99.0)

    assert (2.0, None, None) == (found.value, found.lo, found.hi)
    assert "below_resolution: needs 368 effective samples, has 367" == found.reason
    assert pooled([np.full(368, 2.0)], 99.0).reliable


def test_processes_that_disagree_have_no_pooled_interval() -> None:
    """More than 5 % between process medians: no pool stands for them."""
    apart = pooled([np.full(100, 1.0), np.full(100, 1.1)], 90.0)
    near = pooled([np.full(100, 1.0), np.full(100, 1.05)], 90.0)

    assert "processes_disagree" == apart.reason
    assert (None, None, False) == (apart.lo, apart.hi, apart.reliable)
    assert near.reliable


def test_a_pool_tells_what_stands_behind_it(rng: np.random.Generator) -> None:
    """Effective samples of all repeats, and the least and the greatest percentile of one alone."""
    repeats = [level * (1.0 + 0.01 * rng.random(200)) for level in (1.0, 1.02, 1.01)]
    own = [percentile(each, 95.0) for each in repeats]

    found = pooled(repeats, 95.0)

    assert sum(published_n(each, 95.0) for each in repeats) == found.n_eff
    assert (min(own), max(own)) == (found.least, found.most)
    assert found.least <= found.value <= found.most


def test_any_percentile_can_be_asked_for() -> None:
    """p99.9 from 3,688 samples on; the extremes have a value and never an interval."""
    thousand = [np.resize([1.0, 1.01], 1230)] * 3

    assert pooled(thousand, 99.9).reliable
    assert "below_resolution: needs 3688 effective samples, has 2460" == (
        pooled(thousand[:2], 99.9).reason
    )
    for q, value in ((0.0, 1.0), (100.0, 1.01)):
        extreme = pooled(thousand, q)
        assert (value, None, False) == (extreme.value, extreme.lo, extreme.reliable)
        assert "below_resolution: no number of samples bounds an extreme" == extreme.reason


@given(
    st.lists(
        st.lists(st.floats(1.0, 1.02), min_size=1, max_size=40),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([50.0, 90.0, 95.0]),
)
def test_a_pooled_point_lies_inside_its_interval(repeats: list[list[float]], q: float) -> None:
    """And an interval is there exactly when the percentile is reliable."""
    found = pooled(repeats, q)

    assert found.reliable == (found.lo is not None) == (found.reason == "")
    if found.lo is not None and found.hi is not None:
        assert found.lo <= found.value <= found.hi


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "stable"),
        ({"iqr_rel": 0.02, "drift": -0.01, "proc_cv": 0.01, "caused_share": 0.01}, "stable"),
        ({"repeats": 2}, "stable"),
        ({"iqr_rel": 0.021}, "acceptable"),
        ({"drift": -0.011}, "acceptable"),
        ({"proc_cv": 0.011}, "acceptable"),
        ({"caused_share": 0.011}, "acceptable"),
        ({"caused_share": None}, "acceptable"),
        ({"bimodal": True}, "acceptable"),
        ({"repeats": 1, "proc_cv": None}, "acceptable"),
        ({"proc_cv": None}, "noisy"),
        ({"drift": None}, "noisy"),
        ({"iqr_rel": 0.10, "drift": 0.02, "proc_cv": 0.03}, "acceptable"),
        ({"iqr_rel": 0.101}, "noisy"),
        ({"drift": -0.021}, "noisy"),
        ({"proc_cv": 0.031}, "noisy"),
        ({"n": 6}, "stable"),
        ({"n": 5}, "unknown"),
        ({"n": 5, "iqr_rel": 1.0}, "unknown"),
    ],
)
def test_stability_follows_the_table(change: dict[str, object], expected: str) -> None:
    """Every limit of measurement §8, from both sides; an unknown reading never passes."""
    assert expected == stability(**{**GOOD, **change})  # type: ignore[arg-type]
