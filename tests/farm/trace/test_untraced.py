"""A capture without a trace: phases and a step, no kernel, and no limit that nobody saw."""

import pytest

from farm.trace import untraced
from farm.trace.analysis.known import Known
from tests.farm.trace import captures
from tests.farm.trace.captures import Taken

STAGES = {"preprocess": [1.0], "forward": [6.0], "postprocess": [0.5]}
FOUND = captures.analysis(Taken(events=None, stages_ms=STAGES, plain_ms=[9.0, 10.0, 14.0]))


def flags(*plain_ms: float) -> list[str]:
    taken = Taken(events=None, plain_ms=plain_ms, stages_ms=STAGES)
    return captures.analysis(taken).quality.flags


@pytest.mark.seed("S4.46")
def test_what_only_a_trace_tells_is_null_and_says_that_none_was_taken() -> None:
    names = ("trace", "gpu_util", "launches_per_step", "kernels_per_step", "diagnostics", "timings")

    assert [None] * len(names) == [getattr(FOUND, each) for each in names]
    assert {"not_requested: no trace was taken"} == {FOUND.null_reasons[each] for each in names}
    assert ([], [], [], {}) == (FOUND.kernels, FOUND.ops, FOUND.categories, FOUND.counts)


def test_the_phases_keep_their_wall_times() -> None:
    """B13: they vanished with the trace, or the ops without it."""
    assert [("preprocess", 1.0), ("forward", 6.0), ("postprocess", 0.5)] == [
        (each.phase, each.wall_ms_per_step) for each in FOUND.phases
    ]
    assert [None] * 3 == [each.gpu_ms_per_step for each in FOUND.phases]


def test_the_step_is_the_plain_one_and_the_window_all_of_them() -> None:
    assert (10.0, 33.0, 3) == (FOUND.step_ms, FOUND.window.wall_ms, FOUND.window.real_steps)


def test_no_limit_is_named_that_only_a_trace_would_show() -> None:
    assert ("unknown", "no trace was taken, and the stages alone name no limit", []) == (
        *(FOUND.bound, FOUND.bound_why, FOUND.reasons),
    )
    assert "unknown" == FOUND.metrics["bound"]


def test_a_limit_that_the_stages_show_is_named_with_its_evidence() -> None:
    found = untraced.untraced(
        Known(10.0, 20, stages={"preprocess": 0.0, "forward": 4.0, "postprocess": 6.0})
    )

    assert ("postprocess", "postprocess takes longer than the model") == (
        *(found.bound, found.bound_why),
    )
    (reason,) = found.reasons
    assert ("postprocess_share", 0.6, 0.35) == (reason.metric, reason.value, reason.threshold)


@pytest.mark.parametrize(
    ("plain_ms", "expected"),
    [((10.0, 10.0, 10.0), []), ((10.0, 10.0), ["few_steps"]), ((9.0, 10.0, 14.0), ["unsteady"])],
)
def test_its_steps_are_doubted_as_those_of_a_trace_are(plain_ms, expected) -> None:
    assert expected == flags(*plain_ms)


@pytest.mark.parametrize(("share", "near"), [(0.36, True), (0.4, False)])
def test_a_value_near_its_threshold_is_told(share: float, near: bool) -> None:
    """Within 5 % of 0.35."""
    stages = {"forward": 1.0, "postprocess": 10 * share}

    found = untraced.untraced(Known(10.0, 20, stages=stages))

    assert near == ("near_threshold" in found.quality.flags)
