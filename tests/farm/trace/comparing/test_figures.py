"""The numbers of a side: of several trials their mean, and of one trial among them none."""

from typing import Any

import pytest
from msgspec import UNSET, structs

from farm.trace.analysis.record import Aggregation, Analysis
from farm.trace.comparing import figures
from farm.trace.comparing.figures import IMG_PER_S, METRICS, PER_ITEM, STEP, figure
from tests.farm.trace.comparing.sides import compared, made, row, side, spread

BY_NAME = {each.name: each for each in METRICS}


def test_a_metric_of_one_run_is_what_the_analysis_says() -> None:
    found = {each.name: figure(made(), each) for each in METRICS}

    assert pytest.approx(10.0) == found["step_ms"].value
    assert (pytest.approx(0.5), pytest.approx(5.0)) == (
        found["gpu_util"].value,
        found["host_overhead_ms"].value,
    )
    assert (20.0, ()) == (found["launches_per_step"].value, found["launches_per_step"].trials)


def test_what_is_not_told_is_none_with_the_reason_of_the_analysis() -> None:
    assert "not_probed: a trace does not tell; a capture does" == figure(made(), IMG_PER_S).why
    assert "not_probed: the batch is not told" == figure(made(), PER_ITEM).why
    assert figure(made(), BY_NAME["peak_vram_mb"]).why.startswith("not_probed: the trace tells")
    assert "not_probed" == figure(side(img_per_s=None, null_reasons={}), IMG_PER_S).why


def inferred(p50: float, **more: Any) -> Analysis:
    """An inference with latencies and two stages."""
    times = {"latency_p50_ms": p50, "latency_p90_ms": 2 * p50, "latency_p99_ms": 3 * p50}
    rows = [
        structs.replace(made().phases[0], phase=name, wall_ms_per_step=ms)
        for name, ms in (("preprocess", p50 / 2), ("postprocess", None))
    ]
    return side(mode="inference", metrics=made().metrics | times, phases=rows, **more)


def test_two_inferences_are_compared_by_their_latencies_and_by_the_stages_that_both_time() -> None:
    found = {each.metric: (each.before, each.after) for each in compared(*pair()).rows}

    assert [(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)] == [
        found[f"latency_{each}_ms"] for each in ("p50", "p90", "p99")
    ]
    assert (0.5, 1.0) == found["preprocess_wall_ms"]
    assert "postprocess_wall_ms" not in found
    mixed = compared(inferred(1.0), side(mode="training"))
    assert "latency_p50_ms" not in {each.metric for each in mixed.rows}


def test_the_latencies_of_trials_have_the_rule_of_all_others() -> None:
    before, after = (
        structs.replace(each, spread={"latency_p50_ms": spread([ms, ms + 0.01])})
        for each, ms in zip(pair(), (1.0, 2.0), strict=True)
    )

    assert "worse" == row(compared(before, after), "latency_p50_ms").call


def pair() -> tuple[Analysis, Analysis]:
    return inferred(1.0), inferred(2.0)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("token", "token", "tokens/s"),
        ("token", None, "items/s"),
        ("token", "image", "items/s"),
        (None, None, "items/s"),
    ],
)
def test_the_throughput_counts_what_both_sides_count(one, other, expected) -> None:
    sides = [side(config={"item": each}, img_per_s=5.0) for each in (one, other)]

    assert expected == row(compared(*sides), "img_per_s").unit


def test_ms_per_item_is_the_step_over_the_batch() -> None:
    found = figure(side([9.0, 11.0]), PER_ITEM)

    assert (1.0, (0.9, 1.1)) == (pytest.approx(found.value), pytest.approx(found.trials))


def test_ms_per_item_is_that_of_the_throughput_where_there_is_one() -> None:
    """It counts the waiting that the median of steps in bursts has none of: the two rows agree."""
    found = figure(side(step_ms=10.0, img_per_s=50.0), PER_ITEM)
    several = figure(side([9.0, 11.0], img_per_s=99.0, img_per_s_trials=[50.0, 100.0]), PER_ITEM)

    assert (20.0, ()) == (found.value, found.trials)
    assert (15.0, (20.0, 10.0)) == (several.value, several.trials)


@pytest.mark.parametrize("batch", [0, -1, True, "8", 2.5, None])
def test_a_batch_that_counts_nothing_is_unknown(batch: object) -> None:
    assert figures.batch(side(config={"batch": batch})) is None


def test_the_mean_of_the_trials_is_taken_and_never_the_last_beside_it() -> None:
    """B15: one key held the last trial, its twin the mean of all."""
    found = side(
        step_ms=37.0,
        img_per_s=99.0,
        spread={"step_ms": spread([9.0, 11.0])},
        img_per_s_trials=[1.0, 3.0],
    )

    assert (10.0, 2.0) == (figure(found, STEP).value, figure(found, IMG_PER_S).value)


def test_of_several_trials_a_foreign_file_tells_only_what_it_has_of_all() -> None:
    """Its other numbers are those of one trial; its time per item follows from the throughput."""
    foreign = side(
        step_ms=3744.0, img_per_s_trials=[5.0, 4.0], bound_reported="compute", config={"batch": 4}
    )

    assert (2, None) == (figures.count(foreign), figure(foreign, STEP).value)
    assert figure(foreign, STEP).why.startswith("not_supported: of several trials")
    assert (None, None) == (
        figure(foreign, BY_NAME["gpu_util"]).value,
        figure(foreign, BY_NAME["launches_per_step"]).value,
    )
    assert (225.0, (200.0, 250.0)) == figure(foreign, PER_ITEM)[:2]


def test_a_foreign_throughput_of_0_gives_no_time_per_item() -> None:
    foreign = side(img_per_s_trials=[0.0, 0.1], bound_reported="compute")

    assert figure(foreign, PER_ITEM).value is None


def test_numbers_of_ours_are_means_also_where_no_trial_is_listed() -> None:
    ours = side([9.0, 11.0], gpu_util=0.25)

    assert (0.25, ()) == figure(ours, BY_NAME["gpu_util"])[:2]


def test_the_trials_are_counted_however_they_are_told() -> None:
    put = Aggregation(n=5, profiles=[], representative_profile="", note="", bounds=[])

    counted = [
        made(),
        side([1.0, 2.0]),
        side(img_per_s_trials=[1.0, 2.0, 3.0]),
        side(img_per_s_n=4),
        side(aggregation=put),
    ]
    assert [1, 2, 3, 4, 5] == [figures.count(each) for each in counted]
    assert made().aggregation is UNSET
