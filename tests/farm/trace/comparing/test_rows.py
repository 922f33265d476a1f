"""The rows of a comparison: the change, which way it goes, and what supports that."""

import math
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from farm.trace.comparing.figures import METRICS
from farm.trace.comparing.rows import SINGLE, rows
from tests.farm.trace.comparing.sides import compared, made, row, side, spread


@pytest.mark.seed("S4.85")
def test_the_rows_are_those_of_the_seed_and_ours_and_tell_the_difference() -> None:
    before, after = side([10.0], img_per_s=1000.0), side([8.0], busy=0.9, img_per_s=1250.0)

    found = compared(before, after)

    told = {each.metric: (each.before, each.after, each.change) for each in found.rows}
    assert (1000.0, 1250.0, 250.0) == told["img_per_s"]
    assert (1.0, 0.8) == pytest.approx(told["ms_per_item"][:2])
    assert (10.0, 8.0, -2.0) == told["step_ms"]
    assert (0.5, 0.9) == pytest.approx(told["gpu_util"][:2])
    assert (5.0, 1.0) == pytest.approx(told["host_overhead_ms"][:2])
    assert (20.0, 20.0, 0.0) == told["launches_per_step"]
    phases = ["to_device", "forward", "backward", "optimizer"]
    walls = [f"{each}_wall_ms" for each in phases]
    assert [*(each.name for each in METRICS), *walls] == [*told]
    assert (2.5, 2.5, 0.0) == told["forward_wall_ms"]
    assert 0.8 == pytest.approx(row(found, "step_ms").ratio)
    assert ("host / launch", "compute") == (found.before.bound, found.after.bound)


@pytest.mark.seed("S4.86", "S4.89")
@pytest.mark.parametrize(("here", "there"), [(1, 1), (1, 5), (5, 1)])
def test_a_single_run_on_a_side_supports_no_call(here: int, there: int) -> None:
    """However far the two are apart, and however narrow the other side is."""
    found = row(compared(side([10.0] * here), side([99.0] * there)), "step_ms")

    assert ("none", 89.0) == (found.call, found.change)
    assert found.rule is not UNSET
    assert (SINGLE, None, None, None) == (
        found.rule.words,
        found.rule.two_se,
        found.rule.exceeds,
        found.rule.false_alarm,
    )


# Means 0.94 apart, with population deviations of 0.37 and 0.30: G9.
BEFORE = [10.0 + 0.37 * math.sqrt(1.5) * each for each in (-1.0, 0.0, 1.0)]
AFTER = [10.94 + 0.30 * math.sqrt(1.5) * each for each in (-1.0, 0.0, 1.0)]


@pytest.mark.seed("S4.87")
def test_the_rule_takes_sample_deviations_and_tells_how_often_it_is_wrong() -> None:
    """G9 and B27: 0.550 is the bound of population deviations, 0.674 the one of samples."""
    found = row(compared(side(BEFORE), side(AFTER)), "step_ms")

    assert found.rule is not UNSET
    assert 0.674 == pytest.approx(found.rule.two_se, abs=5e-4)
    assert (0.94, True, "worse") == (pytest.approx(found.change), found.rule.exceeds, found.call)
    assert 0.116 == pytest.approx(found.rule.false_alarm, abs=5e-4)
    assert (3, 3) == (found.rule.before_n, found.rule.after_n)
    assert (stdev(BEFORE), stdev(AFTER)) == pytest.approx(
        (found.rule.before_std, found.rule.after_std)
    )
    words = "|+0.94| ms > 2 SE = 0.6736 ms; equal sides exceed it in 11.6 % of comparisons"
    assert words == found.rule.words


def test_between_the_bound_of_populations_and_that_of_samples_nothing_is_called() -> None:
    """B27: 0.60 apart."""
    nearer = [each - 0.34 for each in AFTER]

    found = row(compared(side(BEFORE), side(nearer)), "step_ms")

    assert found.rule is not UNSET
    assert (0.60, False, "none") == (pytest.approx(found.change), found.rule.exceeds, found.call)
    assert "≤ 2 SE" in found.rule.words


@pytest.mark.parametrize(("n", "expected"), [(2, 0.183), (3, 0.116), (5, 0.081), (10, 0.061)])
def test_the_false_alarm_rate_is_that_of_this_n(n: int, expected: float) -> None:
    trials = [10.0 + at for at in range(n)]

    found = row(compared(side(trials), side(trials)), "step_ms").rule

    assert found is not UNSET
    assert expected == pytest.approx(found.false_alarm, abs=1e-3)


@pytest.mark.parametrize(
    ("metric", "field", "up", "down"),
    [
        ("img_per_s", "img_per_s", "better", "worse"),
        ("step_ms", "step_ms", "worse", "better"),
        ("host_overhead_ms", "host_overhead_ms_per_step", "worse", "better"),
        ("peak_vram_mb", "peak_vram_mb", "worse", "better"),
        ("gpu_util", "gpu_util", "none", "none"),
        ("tensorcore_pct", "tensorcore_pct", "none", "none"),
    ],
)
def test_a_change_that_exceeds_the_rule_goes_where_its_metric_says(
    metric: str, field: str, up: str, down: str
) -> None:
    """A share is neither better nor worse: less of it may be a quicker device."""
    few, many = [1.0, 1.1], [2.0, 2.1]
    low, high = (
        side(**{field: mean(each), "spread": {metric: spread(each)}}) for each in (few, many)
    )

    assert (up, down) == (
        row(compared(low, high), metric).call,
        row(compared(high, low), metric).call,
    )


def test_counts_compare_exactly_and_need_no_trials() -> None:
    """But for the last bit, which a mean may round."""
    few, many = side(launches_per_step=20.0), side(launches_per_step=21.0)
    third = side(launches_per_step=sum([0.1] * 3))

    found = row(compared(few, many), "launches_per_step")

    assert (True, 1.0, "worse", UNSET) == (found.exact, found.change, found.call, found.rule)
    assert "better" == row(compared(many, few), "launches_per_step").call
    assert "same" == row(compared(few, few), "launches_per_step").call
    assert "same" == row(compared(third, side(launches_per_step=0.3)), "launches_per_step").call


def test_what_is_incomparable_has_its_numbers_and_no_call() -> None:
    found = row(
        compared(side([1.0, 1.1], mode="training"), side([2.0, 2.1], mode="inference")), "step_ms"
    )

    assert ("none", 1.0) == (found.call, pytest.approx(found.change))


def test_a_ratio_to_0_is_none() -> None:
    found = row(compared(side(launches_per_step=0.0), side()), "launches_per_step")

    assert (20.0, None) == (found.change, found.ratio)


VALUES = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=6)


@given(VALUES, VALUES)
def test_swapping_the_sides_turns_each_change_round(one: list[float], other: list[float]) -> None:
    there, back = (
        rows(*pair, comparable=True)
        for pair in ((side(one), side(other, busy=0.9)), (side(other, busy=0.9), side(one)))
    )
    turned = {"better": "worse", "worse": "better"}

    for forth, back_ in zip(there, back, strict=True):
        assert (forth.before, forth.after) == (back_.after, back_.before)
        assert (forth.change is None) == (back_.change is None)
        assert forth.change is None or forth.change == -(back_.change or 0.0)
        assert turned.get(forth.call, forth.call) == back_.call
        if forth.rule is not UNSET and back_.rule is not UNSET:
            assert (forth.rule.two_se, forth.rule.exceeds) == (
                pytest.approx(back_.rule.two_se),
                back_.rule.exceeds,
            )


@given(VALUES)
def test_nothing_differs_from_itself(trials: list[float]) -> None:
    found = rows(side(trials), side(trials), comparable=True)

    assert {0.0, None} >= {each.change for each in found}
    assert {"none", "same"} >= {each.call for each in found}
    assert not any(each.rule.exceeds for each in found if each.rule is not UNSET)
    assert {0.0, None} >= {each.change for each in rows(made(), made(), comparable=True)}
