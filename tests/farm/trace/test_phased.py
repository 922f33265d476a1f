"""The phases of a capture: their order, their timers, and the reasons of what they lack."""

from tests.farm.trace import captures, g8
from tests.farm.trace.captures import Taken

STAGES = {"preprocess": [1.0], "forward": [6.0], "postprocess": [0.5]}


def test_phases_stand_in_the_order_of_a_step() -> None:
    """C16, also those that only a timer knows."""
    events = captures.host(("optimizer", "forward", "dataload"))
    timed = {"backward": [1.0], "to_device": [1.0]}

    found = captures.analysis(Taken(events=events, stages_ms=timed), "train")

    words = [each.phase for each in found.phases]
    assert ["dataload", "to_device", "forward", "backward", "optimizer"] == words
    assert words == [each.phase for each in found.phases_gpu]


def test_a_phase_that_only_a_timer_knows_has_each_of_its_metrics() -> None:
    """C11: `get` prints null for it, and not that it is unknown; other reasons stay in place."""
    found = captures.analysis(Taken(events=None, stages_ms=STAGES))

    names = ("gpu_ms", "kernels", "ops")
    assert [None] * 3 == [found.metrics[f"forward_{each}"] for each in names]
    assert {"not_requested: no trace was taken"} == {
        found.null_reasons[f"metrics.forward_{each}"] for each in names
    }


def test_the_reason_of_a_phase_moves_with_it() -> None:
    """Work outside of all phases has no span; a phase that is timed alone comes before it."""
    outside = g8.span("aten::late", 25_000, 100, cat="cpu_op")
    made = [g8.span(f"ProfilerStep#{at}", 1000 + at * 10_000, 10_000) for at in range(4)]

    found = captures.analysis(Taken(events=[*made, outside], stages_ms={"forward": [1.0]}))

    assert ["forward", "unphased"] == [each.phase for each in found.phases]
    why = "not_applicable: no span on the host is of this phase"
    assert why == found.null_reasons["phases.1.wall_ms_per_step"]
    assert "phases.0.wall_ms_per_step" not in found.null_reasons
