"""What the verbs print with --json: documents with a schema, and a reason for each null."""

from farm import schema
from farm.trace.analysis import answers
from farm.trace.analysis.answers import KernelsRead, MetricsRead, OpsRead, PhasesRead, WhatIf

KINDS = (MetricsRead, PhasesRead, KernelsRead, OpsRead, WhatIf)


def test_each_answer_says_first_what_it_is() -> None:
    tags = [each.__struct_config__.tag for each in KINDS]

    assert [
        *("farm.trace_metrics/v1", "farm.trace_phases/v1", "farm.trace_kernels/v1"),
        *("farm.trace_ops/v1", "farm.what_if/v1"),
    ] == tags


def test_an_answer_comes_back_as_it_was() -> None:
    found = MetricsRead(
        trace="a", metrics={"x": None, "y": 1.5}, null_reasons={"metrics.x": "not_probed"}
    )

    data = schema.encode(found)

    assert data.startswith(b'{"schema":"farm.trace_metrics/v1",')
    assert found == schema.decode(data, MetricsRead)


def test_a_projection_has_the_keys_of_the_page() -> None:
    """`traces.md` §10; the images per second too, which only a capture knows."""
    expected = {"bound", "mechanism", "removed", "step_ms", "img_per_s", "caveat"}

    assert expected <= {*answers.WhatIf.__struct_fields__}
    assert ("gpu_ms", "exclusive_gpu_ms", "launches") == answers.RemovedWork.__struct_fields__
    assert ("now", "projected", "best", "worst") == answers.StepTimes.__struct_fields__
    assert ("now", "projected") == answers.Rates.__struct_fields__
