"""What an attempt found beside its trace, from the records of its children."""

from typing import Any

import numpy as np
import pytest

from farm.schema import Captured, Failure, Traced
from tests.workers import make
from workers import captured, figures
from workers.figures import Taken
from workers.readings import Seen
from workers.record import Record, TraceReading

READING = TraceReading(
    wanted=3,
    iterations=3,
    traced_ns=[70, 71, 72],
    trace_bytes=1234,
)


def clean(stamps: list[int] | None = None, **record: Any) -> Taken:
    arrays = {
        **make.arrays(n=20),
        "completion_ns": np.array([100, 110, 130] if stamps is None else stamps, dtype=np.int64),
    }
    return figures.taken(make.record(**record), arrays, batch=4, neighbours=())


def seen(**record: Any) -> Seen:
    return Seen(record=Record(index=-1, started_at="", phases=[], **record))


def test_plain_steps_come_from_the_clean_child_and_traced_ones_from_the_other() -> None:
    """None of the two is ever taken for the other."""
    told = seen(trace=READING, stages_ns={"forward": [40, 41]})
    found, traced, why = captured.beside([clean()], told)

    assert [10, 20] == found.plain_ns
    assert ([70, 71, 72], {"forward": [40, 41]}) == (found.traced_ns, found.stages_ns)
    assert (Traced(iterations=3, bytes=1234), "") == (traced, why)


def test_waits_are_those_of_the_plain_steps() -> None:
    """Warming up waited too, for loaders that were just starting; a pipeline may wait for none."""
    found, _, _ = captured.beside([clean(waits_ns=[900, 500, 3, 4])], None)
    none, _, _ = captured.beside([clean()], None)
    alone, _, _ = captured.beside([clean([], waits_ns=[900])], None)

    assert ([3, 4], [], []) == (found.waits_ns, none.waits_ns, alone.waits_ns)


@pytest.mark.parametrize("stamps", [[], [7]])
def test_a_pass_that_did_not_run_has_no_step(stamps: list[int]) -> None:
    assert [] == captured.beside([clean(stamps)], None)[0].plain_ns


def test_of_several_clean_children_the_first_that_counts_is_taken() -> None:
    disturbed = (make.edge(1), make.edge(2, wait_ns=900_000_000))
    busy = clean([0, 1, 2], latency_edges=disturbed)

    both, _, _ = captured.beside([busy, clean()], None)
    none, _, _ = captured.beside([busy], None)

    assert ([10, 20], [1, 1]) == (both.plain_ns, none.plain_ns)


def test_what_was_said_of_the_pipeline_is_of_the_child_that_was_last() -> None:
    said = {"pipeline": "detection", "unused": ["workers"], "notes": ["one"]}

    whole, _, _ = captured.beside([clean()], seen(**said, trace=READING))
    plain, _, _ = captured.beside([clean(**said)], None)

    for each in (whole, plain):
        assert said == {"pipeline": each.pipeline, "unused": each.unused, "notes": each.notes}


def test_a_trace_of_fewer_iterations_says_so() -> None:
    """And one of all of them says nothing."""
    fewer = TraceReading(wanted=20, iterations=7, traced_ns=[1] * 7, trace_bytes=10**9)

    some, traced, _ = captured.beside([clean()], seen(trace=fewer, notes=["a loader"]))
    every, _, _ = captured.beside([clean()], seen(trace=READING))

    assert isinstance(traced, Traced)
    assert 7 == traced.iterations
    assert ["a loader", "the trace holds 7 of 20 iterations: more would be too large"] == some.notes
    assert [] == every.notes


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "not_requested"),
        (seen(), "not_requested"),
        (seen(reasons={"trace": "not_supported: too large"}), "not_supported: too large"),
        (
            Seen(failure=Failure(kind="oom", phase="trace", message="no")),
            "phase_failed: oom in phase trace",
        ),
        (
            Seen(failure=Failure(kind="timeout", phase="trace", message="no")),
            "timed_out: timeout in phase trace",
        ),
    ],
)
def test_a_trace_that_is_not_there_has_its_reason(told: Seen | None, why: str) -> None:
    found, traced, reason = captured.beside([clean()], told)

    assert (None, why) == (traced, reason)
    assert ([], [10, 20]) == (found.traced_ns, found.plain_ns)


@pytest.mark.seed("S4.46")
def test_without_a_trace_the_phases_are_timed_all_the_same() -> None:
    """`--no-trace`: it was not requested. One that failed costs them nothing either."""
    stages = {"forward": [4]}
    broken = {"trace": "phase_failed: RuntimeError: no"}

    unasked = captured.beside([clean()], seen(stages_ns=stages))
    failed = captured.beside([clean()], seen(stages_ns=stages, reasons=broken))

    assert ["not_requested", broken["trace"]] == [unasked[2], failed[2]]
    for found, traced, _ in (unasked, failed):
        assert (None, stages, []) == (traced, found.stages_ns, found.notes)


def test_an_attempt_without_children_found_nothing() -> None:
    empty = Captured(
        plain_ns=[],
        waits_ns=[],
        traced_ns=[],
        stages_ns={},
        pipeline="plain",
        unused=[],
        notes=[],
    )

    assert (empty, None, "not_requested") == captured.beside([], None)


@pytest.mark.parametrize(
    ("reasons", "notes"),
    [
        ({"stages": "phase_failed: ValueError: no"}, ["phase_failed: ValueError: no"]),
        ({"stages": "not_applicable: it has one phase"}, []),
        ({}, []),
    ],
)
def test_phases_that_could_not_be_timed_are_told(reasons: dict[str, str], notes: list[str]) -> None:
    """Whatever stands for them came from the profiler."""
    found, _, _ = captured.beside([clean()], seen(trace=READING, reasons=reasons))

    assert [f"the phases were not timed apart: {each}" for each in notes] == found.notes
