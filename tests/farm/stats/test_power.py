"""How many repeats or pairs a question needs, and what so many could have seen."""

from math import expm1, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from farm.errors import Refused
from farm.stats.power import detectable_change, pairs_needed, repeats_needed

spreads = st.floats(1e-4, 0.2)
wishes = st.floats(5e-3, 0.2)


@given(spreads, wishes)
def test_repeats_are_the_fewest_that_reach_the_width(spread: float, half_width: float) -> None:
    """So many satisfy the formula, and one less does not, or is a single one."""
    found = repeats_needed(spread, half_width=half_width)

    assert found >= 2
    assert _asked(found, spread / half_width) <= found
    assert found == 2 or _asked(found - 1, spread / half_width) > found - 1


def test_repeats_of_a_few_known_cases() -> None:
    """Half the width of the spread takes 18; without any spread two repeats show that."""
    assert 18 == repeats_needed(0.01, half_width=0.005)
    assert 7 == repeats_needed(1.0, half_width=1.0)
    assert 2 == repeats_needed(0.0, half_width=0.001)
    assert repeats_needed(2.0, half_width=1.0) == repeats_needed(0.02, half_width=0.01)


@given(spreads, wishes, st.floats(1.0, 10.0))
def test_more_spread_or_a_narrower_wish_takes_more(
    spread: float, half_width: float, factor: float
) -> None:
    """Both counts grow with the spread and shrink with what is to be seen."""
    few, more = (repeats_needed(spread * each, half_width=half_width) for each in (1.0, factor))
    pairs = pairs_needed(spread, change=half_width)

    assert few <= more
    assert repeats_needed(spread, half_width=half_width * factor) <= few
    assert pairs <= pairs_needed(spread * factor, change=half_width)
    assert pairs_needed(spread, change=half_width * factor) <= pairs


def test_what_cannot_be_reached_is_refused() -> None:
    """A thousandth of the spread would take more than a million repeats."""
    with pytest.raises(Refused, match="no number of repeats"):
        repeats_needed(1.0, half_width=1e-4)
    assert 500_000 < repeats_needed(1.0, half_width=0.0025) < 1_000_000


@pytest.mark.parametrize(("spread", "wanted"), [(-0.1, 0.1), (float("nan"), 0.1), (0.1, 0.0),
                                                (0.1, -1.0), (0.1, float("nan"))])  # fmt: skip
def test_a_spread_is_not_negative_and_a_wish_is_positive(spread: float, wanted: float) -> None:
    """Both planners refuse what is no question."""
    with pytest.raises(Refused):
        repeats_needed(spread, half_width=wanted)
    with pytest.raises(Refused):
        pairs_needed(spread, change=wanted)


@pytest.mark.parametrize(
    ("spread", "change", "expected"),
    [(0.02, 0.02, 21), (0.02, 0.01, 84), (0.01, 0.02, 6), (0.02, 0.05, 6), (0.0, 0.01, 6),
     (0.02, 0.0199, 22), (0.1, 0.1, 21)],
)  # fmt: skip
def test_planned_pairs_are_21_variances(spread: float, change: float, expected: int) -> None:
    """21·σ²/δ² rounded up, whole numbers kept, and never fewer than the first look's six."""
    assert expected == pairs_needed(spread, change=change)


@given(st.floats(1e-3, 0.05), st.integers(2, 200), st.floats(0.002, 0.1))
def test_the_detectable_change_is_that_of_the_t_statistic(
    spread: float, pairs: int, limit: float
) -> None:
    """The quantiles of certainty and of power, in standard errors."""
    t = reference.t(pairs - 1)

    expected = expm1((t.ppf(1 - limit / 2) + t.ppf(0.9)) * spread / sqrt(pairs))

    assert pytest.approx(expected) == detectable_change(spread, pairs=pairs, limit=limit)


def test_planning_and_hindsight_agree() -> None:
    """With as many pairs as were planned for a change, that change is the detectable one."""
    spread, change = 0.01, 0.0025
    planned = pairs_needed(spread, change=change)

    found = detectable_change(sqrt(2.0) * spread, pairs=planned)

    assert 336 == planned
    assert pytest.approx(change, rel=0.01) == found


def _asked(repeats: int, ratio: float) -> float:
    return float((reference.t.ppf(0.975, repeats - 1) * ratio) ** 2)
