"""The paired comparison: looks, limits, verdicts, and the evidence beside them."""

from math import expm1, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as reference

from farm.errors import Refused
from farm.stats.compare import (
    LEAST_CHANGE,
    LOOKS,
    clock_explains,
    paired_look,
)
from farm.stats.pairs import sign_flip_p

WORSE = [0.031, 0.018, 0.027, 0.022, 0.035, 0.019]
SAME = [0.004, -0.003, 0.002, -0.005, 0.001, 0.003]
OPEN = [0.06, -0.05, 0.04, -0.02, 0.05, -0.01]
OPPOSITE = {"worse": "better", "better": "worse"}
shifts = st.floats(-0.2, 0.2).map(lambda x: round(x, 6))


def series(pairs: int) -> st.SearchStrategy[list[float]]:
    return st.lists(shifts, min_size=pairs, max_size=pairs)


some = st.sampled_from(LOOKS).flatmap(series)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_six_pairs_of_which_each_is_slower_are_worse(alpha: float) -> None:
    """Golden numbers G12, the first series: for both alphas at the first look."""
    look = paired_look(WORSE, alpha=alpha)

    assert "worse" == look.verdict
    assert pytest.approx(0.02566, abs=5e-6) == look.change
    assert pytest.approx(2.705e-4, abs=5e-8) == look.p
    assert 0.03125 == sign_flip_p(WORSE)


def test_six_pairs_that_hardly_differ_are_the_same() -> None:
    """Golden numbers G12, the second series: both one-sided tests against 2 %."""
    look = paired_look(SAME)
    mirrored = paired_look([-each for each in SAME])

    assert "same" == look.verdict == mirrored.verdict
    assert pytest.approx(0.828, abs=5e-4) == look.p
    assert pytest.approx(2.07e-5, abs=5e-8) == look.p_same == mirrored.p_same
    assert pytest.approx(1.76e-5, abs=5e-8) == _one_sided(SAME, -1.0)


def test_six_pairs_that_scatter_go_on() -> None:
    """Golden numbers G12, the third series; and at the last look there is nowhere to go."""
    assert "go on" == paired_look(OPEN).verdict
    assert "inconclusive" == paired_look(OPEN * 5).verdict


@given(some, st.sampled_from([0.05, 0.01]))
def test_p_is_that_of_a_t_test(values: list[float], alpha: float) -> None:
    """p, p_same and the interval are those that scipy finds for the same series."""
    assume(np.std(values) > 1e-9)
    look = paired_look(values, alpha=alpha)
    test = reference.ttest_1samp(values, 0.0)
    interval = test.confidence_interval(1.0 - look.limit)

    assert pytest.approx(test.pvalue, rel=1e-6, abs=1e-12) == look.p
    assert pytest.approx(max(_one_sided(values, 1.0), _one_sided(values, -1.0))) == look.p_same
    assert pytest.approx(expm1(interval.low)) == look.lo
    assert pytest.approx(expm1(interval.high)) == look.hi
    assert (len(values), alpha, LEAST_CHANGE) == (look.pairs, look.alpha, look.threshold)


@given(some, st.sampled_from([0.05, 0.01]), st.floats(0.0, 0.1), st.booleans())
def test_a_verdict_follows_the_rule(
    values: list[float], alpha: float, floor: float, bimodal: bool
) -> None:
    """A change certain and large enough, else sameness certain enough, else on to the next look."""
    look = paired_look(values, alpha=alpha, floor=floor, bimodal=bimodal)
    counts = look.p <= look.limit and abs(look.change) >= max(0.01, floor)
    changed = "worse" if look.change > 0.0 else "better"
    last = "inconclusive" if look.pairs == 30 else "go on"
    same = "same" if look.p_same <= look.limit_same else last

    expected = last if bimodal and look.pairs == 6 else changed if counts else same

    assert expected == look.verdict


@given(some)
def test_swapping_the_sides_swaps_the_verdict(values: list[float]) -> None:
    """Nothing favours a side; a change of 1 % down is one of 1.0101 % up, so that edge is left."""
    look, mirrored = paired_look(values), paired_look([-each for each in values])
    assume(abs(abs(look.change) - LEAST_CHANGE) > 2e-4)

    assert OPPOSITE.get(look.verdict, look.verdict) == mirrored.verdict
    assert pytest.approx(look.p) == mirrored.p
    assert pytest.approx(1.0 / (1.0 + look.change)) == 1.0 + mirrored.change
    assert pytest.approx(1.0 / (1.0 + look.lo)) == 1.0 + mirrored.hi


@given(some, st.randoms(use_true_random=False))
def test_the_order_of_pairs_does_not_matter(values: list[float], source: object) -> None:
    """A look sees the pairs and not their history."""
    shuffled = list(values)
    source.shuffle(shuffled)  # type: ignore[attr-defined]

    assert pytest.approx(paired_look(values).p, abs=1e-12) == paired_look(shuffled).p


@pytest.mark.parametrize(
    ("alpha", "limits"),
    [
        (0.05, [0.0100, 0.0086, 0.0117, 0.0143, 0.0249]),
        (0.01, [0.0020, 0.0016, 0.0020, 0.0024, 0.0043]),
    ],
)
def test_limits_are_those_of_the_table(alpha: float, limits: list[float]) -> None:
    """Five looks at 6, 10, 15, 20 and 30 pairs; `same` is spent from 0.05 in either case."""
    looks = [paired_look(np.resize(OPEN, pairs), alpha=alpha) for pairs in (6, 10, 15, 20, 30)]

    assert limits == [each.limit for each in looks]
    assert [0.0100, 0.0092, 0.0126, 0.0157, 0.0271] == [each.limit_same for each in looks]


@pytest.mark.parametrize("pairs", [1, 2, 5, 7, 29, 31, 60])
def test_nobody_looks_between_the_looks(pairs: int) -> None:
    """A look more would be a chance more to err."""
    with pytest.raises(Refused, match=f"no look is taken at {pairs} pairs"):
        paired_look(np.resize(WORSE, pairs))


@pytest.mark.parametrize("alpha", [0.1, 0.02, 0.0, float("nan")])
def test_another_alpha_is_refused(alpha: float) -> None:
    """The limits were simulated for two."""
    with pytest.raises(Refused, match="is not offered"):
        paired_look(WORSE, alpha=alpha)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_difference_that_is_no_number_is_refused(odd: float) -> None:
    """An infinite ratio is no measurement."""
    with pytest.raises(Refused, match="not finite"):
        paired_look([*WORSE[:5], odd])


def test_a_certain_change_below_one_percent_is_none() -> None:
    """However sure one is: 0.99 % goes on to `same`, 1 % is worse."""
    jitter = 1e-5 * np.array([1.0, -1.0, 2.0, -2.0, 1.0, -1.0])

    assert "same" == paired_look(log(1.0099) + jitter).verdict
    assert "worse" == paired_look(log(1.0101) + jitter).verdict
    assert "same" == paired_look(log(0.9901) + jitter).verdict
    assert "better" == paired_look(log(0.9899) + jitter).verdict


def test_a_change_below_the_timer_is_none() -> None:
    """Where the timer takes 3 % of a step, a change must be that large."""
    look = paired_look(WORSE, floor=0.03)

    assert ("go on", 0.03) == (look.verdict, look.threshold)
    assert "worse" == paired_look(WORSE, floor=0.0256).verdict
    assert 0.01 == paired_look(WORSE, floor=0.001).threshold


def test_six_pairs_of_a_side_with_two_modes_decide_nothing() -> None:
    """Six may all have fallen into one mode; from ten on there is a verdict."""
    assert "go on" == paired_look(WORSE, bimodal=True).verdict
    assert "go on" == paired_look(SAME, bimodal=True).verdict
    assert "worse" == paired_look(np.resize(WORSE, 10), bimodal=True).verdict


def test_equal_processes_are_the_same_and_equal_changes_are_certain() -> None:
    """Without any spread there is no doubt."""
    none, some_change = paired_look([0.0] * 6), paired_look([0.0625] * 6)

    assert ("same", 1.0, 0.0, 0.0) == (none.verdict, none.p, none.change, none.p_same)
    assert ("worse", 0.0) == (some_change.verdict, some_change.p)
    assert some_change.lo == some_change.change == some_change.hi


def test_a_look_says_what_it_could_have_seen() -> None:
    """A wide series could see a large change only, a narrow one no less than what counts."""
    wide = paired_look(OPEN * 5)
    spread = float(np.std(OPEN * 5, ddof=1))
    t = reference.t(29)

    expected = expm1((t.ppf(1 - 0.0249 / 2) + t.ppf(0.9)) * spread / sqrt(30))

    assert pytest.approx(expected) == wide.detectable
    assert 0.01 == paired_look([0.0] * 6).detectable
    assert 0.5 == paired_look(OPEN, floor=0.5).detectable


@given(some, st.floats(1.1, 5.0))
def test_more_scatter_hides_larger_changes(values: list[float], factor: float) -> None:
    """What could have been seen grows with the spread."""
    wider = [factor * each for each in values]

    assert paired_look(values).detectable <= paired_look(wider).detectable + 1e-12


# ── the clock of a GPU ───────────────────────────────────────────────────────────────────────────


def test_a_change_that_the_clock_explains_is_incomparable() -> None:
    """Slower time at a lower clock: the product of both did not change."""
    look = paired_look(WORSE)

    assert clock_explains(look, SAME)
    assert clock_explains(look, OPEN)
    assert clock_explains(look, [-each for each in WORSE])
    assert clock_explains(look, [0.2 * each for each in WORSE])
    assert not clock_explains(look, WORSE)


def test_the_clock_explains_a_gain_likewise() -> None:
    """In either direction the change must be there at an equal clock."""
    better = [-each for each in WORSE]

    assert not clock_explains(paired_look(better), better)
    assert clock_explains(paired_look(better), WORSE)


def test_the_clock_explains_no_change_that_nobody_calls() -> None:
    """`same` and `go on` are not made incomparable."""
    assert not clock_explains(paired_look(SAME), WORSE)
    assert not clock_explains(paired_look(OPEN), SAME)


def test_clocked_pairs_are_those_of_the_look() -> None:
    """One for each pair."""
    with pytest.raises(Refused, match="5 clocked pairs of 6"):
        clock_explains(paired_look(WORSE), WORSE[:5])


def _one_sided(values: list[float], side: float) -> float:
    """p of "the change is 2 % or more towards this side"."""
    towards = "less" if side > 0 else "greater"
    return float(reference.ttest_1samp(values, side * log(1.02), alternative=towards).pvalue)
