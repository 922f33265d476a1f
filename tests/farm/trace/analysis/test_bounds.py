"""The word for what limits a step: refusals first, then the first rule that holds."""

from typing import Any

import pytest

from farm.trace.analysis import bounds
from farm.trace.analysis.bounds import REFUSALS, Evidence

NOTHING = Evidence(
    categories={"kernel": 1000},
    kernels=1000,
    launch_calls=1000,
    unrecorded=0,
    replays_short=0,
    replays_checked=0,
    steps=5,
    skewed=False,
    steady=True,
    on_gpu=False,
    mallocs=0.0,
    allocator_retries=0,
    reserved=None,
    dataload=0.0,
    idle_dataload=0.0,
    comm=0.0,
    util=0.5,
    memcpy=0.0,
    idle=0.5,
    idle_sync=0.1,
    idle_host=0.2,
    idle_wait=0.2,
    op_cover=0.4,
    stages={},
    step_ms=10.0,
)
CPU = NOTHING._replace(
    categories={"cpu_op": 5},
    kernels=0,
    launch_calls=0,
    idle=None,
    idle_dataload=None,
    idle_sync=None,
    idle_host=None,
    idle_wait=None,
    comm=None,
    memcpy=None,
    util=None,
)


def word(seen: Evidence = NOTHING, **more: Any) -> str:
    return bounds.bound(seen._replace(**more)).word


def inference(**stages: float) -> dict[str, Any]:
    return {"stages": stages}


@pytest.mark.parametrize(
    ("expected", "more"),
    [
        ("memory-pressure", {"mallocs": 5.0}),
        ("memory-pressure", {"allocator_retries": 1}),
        ("memory-pressure", {"reserved": 0.96}),
        ("dataloader", {"idle_dataload": 0.20}),
        ("postprocess", inference(preprocess=1, forward=3, postprocess=3.5)),
        ("preprocess", inference(preprocess=3.5, forward=3.5, postprocess=1)),
        ("communication", {"comm": 0.20}),
        ("compute", {"util": 0.80}),
        ("memcpy", {"memcpy": 0.10}),
        ("sync", {"idle_sync": 0.25}),
        ("host / launch", {"idle_host": 0.25}),
        ("gpu-wait", {"idle_wait": 0.25}),
        ("mixed", {}),
    ],
)
@pytest.mark.seed("S4.63")
def test_a_rule_holds_from_its_threshold_on(expected: str, more: dict[str, Any]) -> None:
    found = bounds.bound(NOTHING._replace(**more))

    assert expected == found.word
    assert found.why
    assert found.reasons
    assert not found.is_refusal


@pytest.mark.parametrize(
    "more",
    [
        {"mallocs": 4.99},
        {"allocator_retries": 0},
        {"reserved": 0.949},
        {"idle_dataload": 0.1999},
        inference(preprocess=1, forward=3, postprocess=3.49),
        inference(preprocess=1, forward=4, postprocess=3.9),
        {"comm": 0.1999},
        {"util": 0.7999},
        {"memcpy": 0.0999},
        {"idle_sync": 0.2499},
        {"idle_host": 0.2499},
        {"idle_wait": 0.2499},
    ],
)
def test_below_its_threshold_no_rule_holds(more: dict[str, Any]) -> None:
    assert "mixed" == word(**more)


RULES: list[tuple[str, dict[str, Any]]] = [
    ("memory-pressure", {"mallocs": 6.0}),
    ("dataloader", {"idle_dataload": 0.3}),
    ("postprocess", inference(forward=3, postprocess=5)),
    ("communication", {"comm": 0.3}),
    ("compute", {"util": 0.9}),
    ("memcpy", {"memcpy": 0.3}),
    ("sync", {"idle_sync": 0.25}),
    ("host / launch", {"idle_host": 0.25}),
    ("gpu-wait", {"idle_wait": 0.25}),
]


def test_the_first_rule_that_holds_decides() -> None:
    """All hold at once, then all but the first, and so on."""
    found = []
    for at in range(len(RULES)):
        more: dict[str, Any] = {}
        for _, each in RULES[at:]:
            more |= each
        found.append(word(**more))

    assert [name for name, _ in RULES] == found


@pytest.mark.seed("S4.67")
def test_allocations_say_nothing_of_one_step_or_of_no_step() -> None:
    """The first step always allocates; retries and a full device tell in any case."""
    assert "mixed" == word(steady=False, mallocs=500.0)
    assert "memory-pressure" == word(steady=False, allocator_retries=2)
    assert "memory-pressure" == word(steady=False, reserved=0.97)


@pytest.mark.seed("S4.67")
def test_memory_pressure_never_comes_from_utilisation() -> None:
    assert "compute" == word(util=1.0)


@pytest.mark.parametrize("kind", ["mtia_ccp_events", "hpu_op", "privateuse1_kernel"])
def test_a_device_that_nothing_reads_is_refused(kind: str) -> None:
    assert "unsupported-device" == word(CPU, categories={"cpu_op": 5, kind: 9}, launch_calls=5)
    assert "mixed" == word(categories={"kernel": 1000, kind: 9})


@pytest.mark.parametrize("more", [{"launch_calls": 1}, {"on_gpu": True}])
def test_kernels_that_were_launched_and_not_recorded_are_refused(more: dict[str, Any]) -> None:
    assert "no-gpu-data" == word(CPU, **more)


def test_too_little_data_is_refused() -> None:
    assert "too-little-data" == word(steps=0, kernels=49)
    assert "mixed" == word(steps=0, kernels=50)
    assert "mixed" == word(steps=1, kernels=1)
    assert "too-little-data" == word(CPU, steps=0)


@pytest.mark.parametrize(("lost", "expected"), [(100, "mixed"), (101, "under-recorded")])
def test_more_than_a_tenth_of_the_launches_without_work_is_refused(
    lost: int, expected: str
) -> None:
    assert expected == word(unrecorded=lost)


@pytest.mark.parametrize(("short", "expected"), [(1, "mixed"), (2, "under-recorded")])
def test_more_than_a_tenth_of_short_replays_is_refused(short: int, expected: str) -> None:
    assert expected == word(replays_short=short, replays_checked=10)


def test_a_refusal_stands_above_every_rule_and_names_no_limit() -> None:
    all_hold: dict[str, Any] = {}
    for _, each in RULES:
        all_hold |= each

    found = bounds.bound(NOTHING._replace(**all_hold, unrecorded=500))

    assert "under-recorded" == found.word
    assert found.is_refusal
    assert "500 of 1000" in found.why
    assert {*REFUSALS} == {
        *("unsupported-device", "no-gpu-data", "too-little-data", "under-recorded", "clock-skew"),
    }


@pytest.mark.parametrize("rule", ["idle_dataload", "idle_sync", "idle_host", "idle_wait"])
def test_with_clock_skew_nobody_is_blamed_for_a_gap(rule: str) -> None:
    assert "clock-skew" == word(skewed=True, **{rule: 0.5})


def test_with_clock_skew_the_rules_that_need_no_gap_still_hold() -> None:
    free = [each for each in RULES if not any(name.startswith("idle") for name in each[1])]

    assert [name for name, _ in free] == [word(skewed=True, **more) for _, more in free]
    assert 5 == len(free)


def test_the_trace_of_a_cpu_knows_four_words() -> None:
    assert "dataloader" == word(CPU, dataload=0.20, op_cover=0.9)
    assert "postprocess" == word(CPU, **inference(forward=3, postprocess=5))
    assert "compute" == word(CPU, op_cover=0.5)
    assert "cpu" == word(CPU, op_cover=0.4999)


def test_without_idle_time_no_share_of_it_decides() -> None:
    assert "mixed" == word(idle=0.0, idle_sync=0.0, idle_host=0.0, idle_wait=0.0)


@pytest.mark.parametrize(
    ("near", "more"),
    [
        (True, {"util": 0.80}),
        (True, {"util": 0.84}),
        (False, {"util": 0.8401}),
        (True, {"comm": 0.2008}),
        (False, {"comm": 0.22}),
        (True, {"idle_sync": 0.26}),
    ],
)
def test_near_is_within_five_percent_of_the_threshold(near: bool, more: dict[str, Any]) -> None:
    assert near is bounds.bound(NOTHING._replace(**more)).near


@pytest.mark.parametrize(("cover", "near"), [(0.475, True), (0.474, False)])
def test_what_just_misses_its_threshold_is_near_too(cover: float, near: bool) -> None:
    """The answer `cpu`, and `mixed`, come from what stayed below."""
    assert near is bounds.bound(CPU._replace(op_cover=cover)).near
    assert near is bounds.bound(NOTHING._replace(idle=1.0, idle_host=cover)).near


@pytest.mark.seed("S4.63")
def test_the_reason_holds_the_metric_its_value_and_the_threshold() -> None:
    (reason,) = bounds.bound(NOTHING._replace(comm=0.37)).reasons

    assert ("exposed_comm", 0.37, 0.20) == (reason.metric, reason.value, reason.threshold)
    shares = bounds.bound(NOTHING).reasons
    assert [0.2, 0.4, 0.4] == [each.value for each in shares]
