"""Which metric is read first, and which way it leans."""

import math
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from farm.trace.comparing.figures import IMG_PER_S, PER_ITEM, STEP
from farm.trace.comparing.leaning import headline, leaning, points_apart
from tests.farm.trace.comparing.sides import compared, made, side

TRIALS = [10.0, 10.1, 10.3]


def test_the_step_is_read_first_and_the_throughput_where_only_that_has_trials() -> None:
    rates = side(img_per_s=100.0, img_per_s_trials=[99.0, 101.0])

    assert STEP == headline(side(TRIALS), side(TRIALS))
    assert IMG_PER_S == headline(rates, rates)
    assert STEP == headline(rates, side(TRIALS))
    assert headline(side(step_ms=None), side(step_ms=None)) is None


def test_where_the_batches_differ_it_is_the_time_per_item() -> None:
    assert PER_ITEM == headline(side(TRIALS), side(TRIALS, config={"batch": 20}))
    assert STEP == headline(side(TRIALS), side(TRIALS, config={"batch": None}))


def test_welch_is_that_of_the_logarithms() -> None:
    other = [9.0, 9.1, 9.05, 9.2]

    lean, towards = leaning(STEP, side(TRIALS), side(other))

    told = stats.ttest_ind([*map(math.log, other)], [*map(math.log, TRIALS)], equal_var=False)
    low, high = told.confidence_interval(0.95)
    assert (told.pvalue, told.df) == pytest.approx((lean.p, lean.df))
    assert (math.exp(low), math.exp(high)) == pytest.approx((lean.ratio_lo, lean.ratio_hi))
    ratio = mean(map(math.log, other)) - mean(map(math.log, TRIALS))
    assert (pytest.approx(math.exp(ratio)), "better") == (lean.ratio, towards)


def test_a_larger_throughput_is_better() -> None:
    slow, quick = (side(img_per_s_trials=[each, each * 1.01]) for each in (100.0, 200.0))

    assert "better" == leaning(IMG_PER_S, slow, quick)[1]
    assert "worse" == leaning(IMG_PER_S, quick, slow)[1]


def test_a_single_run_has_a_ratio_and_leans_nowhere() -> None:
    lean, towards = leaning(STEP, side([10.0]), side(TRIALS))

    assert (None, None, None, None, "none") == (
        *(lean.ratio_lo, lean.ratio_hi, lean.p, lean.df),
        towards,
    )
    assert 1.013 == pytest.approx(lean.ratio, abs=1e-3)


def test_a_trial_of_0_leans_nowhere() -> None:
    """A foreign file rounds its throughput, down to nothing."""
    lean, towards = leaning(
        IMG_PER_S, side(img_per_s_trials=[0.0, 1.0]), side(img_per_s_trials=[1.0, 1.0])
    )

    assert (None, "none") == (lean.ratio, towards)


@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=6))
def test_the_same_trials_lean_to_neither_side(trials: list[float]) -> None:
    lean, towards = leaning(STEP, side(trials), side(trials))

    assert (1.0, 1.0) == pytest.approx((lean.ratio, lean.p))
    assert towards in ("same", "none")


def test_two_times_of_traces_have_a_ratio() -> None:
    found = compared(made(), made(0.9))

    assert ("step_ms", "none") == (found.headline, found.leaning)


@pytest.mark.parametrize(
    ("step_ms", "rate", "apart"),
    [
        (30.0, 200.0, True),  # longer, and more of them in a second
        (5.0, 50.0, True),
        (30.0, 30.0, False),
        (10.1, 101.0, False),  # noise
        (30.0, 101.0, False),
        (30.0, None, False),
    ],
)
def test_a_longer_step_with_a_larger_throughput_leans_nowhere(
    step_ms: float, rate: float | None, apart: bool
) -> None:
    before, after = side(step_ms=10.0, img_per_s=100.0), side(step_ms=step_ms, img_per_s=rate)

    found = compared(before, after)

    assert apart == points_apart(before, after)
    assert apart == any("point apart" in each for each in found.warnings)


def test_what_points_apart_leans_nowhere_though_its_trials_do() -> None:
    """The median of steps that come in bursts has none of the waiting."""
    rates = {"img_per_s": 100.0, "img_per_s_trials": [99.0, 101.0]}
    before = side([10.0, 10.01, 10.02], **rates)
    worse = side(
        [30.0, 30.01, 30.02], **rates | {"img_per_s": 30.0, "img_per_s_trials": [29.0, 31.0]}
    )
    apart = side(
        [30.0, 30.01, 30.02], **rates | {"img_per_s": 200.0, "img_per_s_trials": [199.0, 201.0]}
    )

    assert ["worse", "none"] == [compared(before, each).leaning for each in (worse, apart)]
