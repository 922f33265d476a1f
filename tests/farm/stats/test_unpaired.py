"""Sides that were not measured as pairs: Welch, a leaning, and the rule of the seeds."""

from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as reference

from farm.errors import Refused
from farm.stats.unpaired import (
    Moments,
    log_moments,
    moments,
    sample_std,
    two_se,
    two_se_false_alarm,
    welch,
    welch_log,
)

values = st.lists(st.floats(0.5, 100.0).map(lambda x: round(x, 6)), min_size=2, max_size=12)
OPPOSITE = {"worse": "better", "better": "worse"}
# Golden numbers G9: means 0.94 apart, population deviations 0.37 and 0.30 of three processes
SLOWER = (Moments(3, 10.0, sample_std(0.37, 3)), Moments(3, 10.94, sample_std(0.30, 3)))


def test_moments_are_those_of_a_sample() -> None:
    """Number, mean, deviation with n - 1; a single process has none."""
    assert Moments(3, 2.0, 1.0) == moments([1.0, 2.0, 3.0])
    assert Moments(1, 5.0, None) == moments([5.0])


def test_log_moments_are_those_of_the_logarithms() -> None:
    """What a profile keeps of its process medians."""
    found = log_moments([1.0, 1.0, exp(3.0)])

    assert (3, pytest.approx(1.0), pytest.approx(sqrt(3.0))) == (found.n, found.mean, found.std)
    for odd in (0.0, -1.0):
        with pytest.raises(Refused, match="not positive"):
            log_moments([1.0, odd])


def test_a_population_deviation_is_scaled() -> None:
    """Divided by n where n - 1 was due: at two processes it is short by a factor of √2."""
    assert pytest.approx(float(np.std([1.0, 4.0, 4.0], ddof=1))) == sample_std(
        float(np.std([1.0, 4.0, 4.0])), 3
    )
    assert pytest.approx(sqrt(2.0)) == sample_std(1.0, 2)
    assert sample_std(0.0, 1) is None


@given(values, values)
def test_welch_is_that_of_scipy(a: list[float], b: list[float]) -> None:
    """t, degrees of freedom, p."""
    assume(min(np.std(a), np.std(b)) > 1e-4)
    found = welch(moments(a), moments(b))
    expected = reference.ttest_ind(b, a, equal_var=False)

    assert found is not None
    assert pytest.approx(expected.statistic, rel=1e-6, abs=1e-9) == found.t
    assert pytest.approx(expected.df, rel=1e-6) == found.df
    assert pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12) == found.p


@pytest.mark.seed("S4.87")
def test_the_rule_of_the_seeds_with_sample_deviations() -> None:
    """Golden numbers G9: 0.550 becomes 0.674, and Welch is not sure at 5 %."""
    found, population = two_se(*SLOWER), two_se(Moments(3, 0.0, 0.37), Moments(3, 0.94, 0.30))
    compared = welch(*SLOWER)

    assert pytest.approx(0.674, abs=5e-4) == found.bound
    assert pytest.approx(0.550, abs=5e-4) == population.bound
    assert pytest.approx(0.94) == found.difference
    assert found.exceeds
    assert compared is not None
    assert (2.79, 3.8) == (round(compared.t, 2), round(compared.df, 1))
    assert pytest.approx(0.05, abs=0.002) == compared.p


@pytest.mark.parametrize(
    ("n", "expected"), [(2, 0.1835), (3, 0.116), (5, 0.081), (10, 0.061), (100_000, 0.0455)]
)
def test_the_rule_alarms_falsely_the_more_often_the_fewer_there_are(
    n: int, expected: float
) -> None:
    """Golden numbers G9: exact for equal numbers."""
    assert pytest.approx(expected, abs=5e-4) == two_se_false_alarm(n, n)
    assert two_se(Moments(n, 1.0, 0.1), Moments(n, 1.0, 0.1)).false_alarm == two_se_false_alarm(
        n, n
    )


@given(st.integers(2, 50), st.integers(2, 50))
def test_the_rate_lies_between_those_of_equal_numbers(n_a: int, n_b: int) -> None:
    """It does not matter which side is which; the smaller side sets the limit."""
    rate = two_se_false_alarm(n_a, n_b)
    degrees = reference.t(2 * max(n_a, n_b) - 2), reference.t(min(n_a, n_b) - 1)

    assert pytest.approx(rate) == two_se_false_alarm(n_b, n_a)
    assert 2 * degrees[0].sf(2.0) <= rate * (1 + 1e-9)
    assert rate <= 2 * degrees[1].sf(2.0) * (1 + 1e-9)


def test_the_degrees_of_unequal_numbers_are_those_of_welch() -> None:
    """Two against six of equal variance: (1/2 + 1/6)² over 1/4 + 1/180."""
    df = (1 / 2 + 1 / 6) ** 2 / (1 / 4 + 1 / 36 / 5)

    assert pytest.approx(2 * reference.t(df).sf(2.0)) == two_se_false_alarm(2, 6)


def test_a_difference_must_exceed_the_bound() -> None:
    """At the bound it does not yet."""
    a, b = Moments(2, 0.0, 1.0), Moments(2, 2.0, 1.0)

    assert (2.0, False) == (two_se(a, b).bound, two_se(a, b).exceeds)
    assert two_se(a, Moments(2, -2.001, 1.0)).exceeds


@pytest.mark.seed("S4.86")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Moments(1, 1.0, None), Moments(5, 2.0, 0.1)),
        (Moments(5, 1.0, 0.1), Moments(1, 2.0, None)),
        (Moments(1, 1.0, None), Moments(1, 2.0, None)),
    ],
)
def test_a_single_repeat_supports_no_call(a: Moments, b: Moments) -> None:
    """The difference is there, and everything that needs a spread is not."""
    rule, ratio = two_se(a, b), welch_log(a, b)

    assert (1.0, None, None, None, "single_repeat") == (
        rule.difference,
        rule.bound,
        rule.exceeds,
        rule.false_alarm,
        rule.reason,
    )
    assert welch(a, b) is None
    assert pytest.approx(exp(1.0)) == ratio.ratio
    assert (None, None, None, "none", "single_repeat") == (
        ratio.lo,
        ratio.hi,
        ratio.p,
        ratio.leaning,
        ratio.reason,
    )
    with pytest.raises(Refused, match="single repeat"):
        two_se_false_alarm(a.n, b.n)


@given(values, values)
def test_the_ratio_has_the_interval_of_welch(a: list[float], b: list[float]) -> None:
    """On logarithms, and back."""
    assume(min(np.std(a), np.std(b)) > 1e-4)
    found = welch_log(log_moments(a), log_moments(b))
    expected = reference.ttest_ind(np.log(b), np.log(a), equal_var=False)
    interval = expected.confidence_interval(0.95)

    assert pytest.approx(exp(np.log(b).mean() - np.log(a).mean())) == found.ratio
    assert pytest.approx(exp(interval.low), rel=1e-6) == found.lo
    assert pytest.approx(exp(interval.high), rel=1e-6) == found.hi
    assert pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12) == found.p
    assert "" == found.reason


@given(values, values, st.floats(0.01, 100.0))
def test_a_leaning_has_no_unit_and_turns_with_the_sides(
    a: list[float], b: list[float], unit: float
) -> None:
    """Scaling both sides changes nothing; swapping them inverts the ratio and the leaning."""
    found = welch_log(log_moments(a), log_moments(b))
    swapped = welch_log(log_moments(b), log_moments(a))
    scaled = welch_log(log_moments(unit * np.array(a)), log_moments(unit * np.array(b)))
    assume(abs(abs(log(found.ratio)) - 0.01) > 2e-4)  # 1 % up is not 1 % down
    assert found.lo is not None
    assert found.hi is not None
    assume(min(abs(log(found.lo)), abs(log(found.hi))) > 1e-9)

    assert OPPOSITE.get(found.leaning, found.leaning) == swapped.leaning
    assert pytest.approx(1.0 / found.ratio) == swapped.ratio
    assert pytest.approx(1.0 / found.lo) == swapped.hi
    assert pytest.approx(found.ratio) == scaled.ratio
    assert pytest.approx(found.lo) == scaled.lo


@pytest.mark.parametrize(
    ("ratio", "spread", "expected"),
    [
        (1.05, 0.005, "worse"),
        (0.95, 0.005, "better"),
        (1.0, 0.002, "same"),
        (1.009, 0.001, "same"),
        (0.991, 0.001, "same"),
        (1.011, 0.001, "worse"),
        (0.989, 0.001, "better"),
        (1.0, 0.05, "none"),
        (1.02, 0.05, "none"),
        (0.999, 0.02, "none"),
    ],
)
def test_sides_lean_where_their_interval_lies(ratio: float, spread: float, expected: str) -> None:
    """Off 1 by 1 % and more, within 2 % of it, or neither."""
    a, b = Moments(5, 0.0, spread), Moments(5, log(ratio), spread)

    assert expected == welch_log(a, b).leaning
    assert OPPOSITE.get(expected, expected) == welch_log(a, b, larger_is="better").leaning


def test_sides_without_spread_have_an_interval_of_no_width() -> None:
    """Equal counts of equal processes: certain either way."""
    equal = welch(Moments(2, 1.0, 0.0), Moments(3, 1.0, 0.0))
    apart = welch(Moments(2, 1.0, 0.0), Moments(3, 2.0, 0.0))
    below = welch(Moments(2, 2.0, 0.0), Moments(3, 1.0, 0.0))

    assert equal is not None
    assert apart is not None
    assert below is not None
    assert (0.0, 1.0, 3.0) == (equal.t, equal.p, equal.df)
    assert (inf, 0.0, 1.0) == (apart.t, apart.p, apart.difference)
    assert (-inf, 0.0, -1.0) == (below.t, below.p, below.difference)
    found = welch_log(Moments(2, 1.0, 0.0), Moments(3, 2.0, 0.0))
    assert found.lo == found.ratio == found.hi
    assert "worse" == found.leaning
