"""From a trace to the one document that every verb reads."""

import io
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.errors import Bad
from farm.trace.analysis.analysing import analysed
from farm.trace.analysis.record import Analysis
from farm.trace.reading import reader
from tests.farm.trace import g8
from tests.farm.trace.analysis.traces import (
    ELEMENTWISE,
    GEMM,
    Event,
    call,
    event,
    graph,
    kernel,
    launch,
    launched,
    made,
    memory,
    op,
    span,
    step,
)

GOLDEN = g8.events()
ALONE = [
    [event("python_function", "f", 0, 5)],
    [kernel(0, 5)],
    [event("hpu_op", "matmul", 5, 5)],
    [op("a", 5, 0)],
    [kernel(5, 0), kernel(9, 0)],
    [step(1, 5, 0), launch(5, 1), kernel(9, 0, 1)],
    [step(1, 0, 5), step(2, 5, 0), launch(6, 2, length=0)],
]


@pytest.mark.parametrize("events", ALONE)
def test_hardly_anything_in_a_file_still_makes_a_document(events: list[Event]) -> None:
    """What is of no use, or takes no time, makes refusals and no error."""
    found = made(events).analysis

    assert found.bound_why
    assert 0.0 <= found.step_ms


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', "{}", ""])
def test_without_an_event_nothing_is_analysed(text: str) -> None:
    """G8: exit 1, not 0 with a verdict."""
    with pytest.raises(Bad) as caught:
        analysed(reader.of(io.BytesIO(text.encode())), name="none.json")

    assert 1 == caught.value.exit_code


def test_a_device_of_unknown_kind_alone_is_refused() -> None:
    assert "unsupported-device" == made([event("hpu_op", "matmul", 5, 5)]).analysis.bound


@pytest.mark.parametrize("events", [GOLDEN, *ALONE])
def test_every_null_has_its_reason_and_nothing_else_has_one(events: list[Event]) -> None:
    found = made(events).analysis

    nulls = schema.null_paths(msgspec.to_builtins(found))
    assert {*nulls} == {*found.null_reasons}
    assert all(each.partition(":")[0] in schema.NULL_CODES for each in found.null_reasons.values())


@pytest.mark.parametrize("events", [GOLDEN, *ALONE])
def test_the_document_can_be_written_and_read_again(events: list[Event]) -> None:
    found = made(events).analysis

    assert found == msgspec.json.decode(msgspec.json.encode(found), type=Analysis)


@pytest.mark.seed("S4.56", "S4.61")
def test_the_numbers_stand_where_the_original_had_them_and_by_name() -> None:
    """Throughput is what a capture knows: null in a trace, with its reason."""
    found = made(GOLDEN).analysis

    assert found.step_ms == found.metrics["step_ms"] == 10.0
    assert found.host_overhead_ms_per_step == found.metrics["host_overhead_ms"]
    assert found.img_per_s is None is found.metrics["img_per_s"]
    assert found.null_reasons["img_per_s"].startswith("not_probed")
    assert (90.0, 9) == (found.window.wall_ms, found.window.real_steps)


def test_a_stage_has_its_time_by_name() -> None:
    """And percentiles of latency are what a capture knows."""
    stages = [
        span("step/preprocess", 0, 100),
        span("step/forward", 100, 600),
        span("step/postprocess", 700, 200),
    ]

    found = made([step(1, 0, 1000), *stages, *launched(150, 50, 1)]).analysis.metrics

    assert (0.1, 0.6, 0.2) == pytest.approx(
        tuple(found[f"{each}_ms"] for each in ("preprocess", "forward", "postprocess"))
    )
    assert 0.05 == pytest.approx(found["forward_gpu_ms"])
    assert {"latency_p50_ms", "latency_p90_ms", "latency_p99_ms"} < {*found}


@pytest.mark.parametrize("word", ["step", "gpu_busy", "idle"])
def test_no_number_of_a_trace_gives_way_to_a_phase_of_that_name(word: str) -> None:
    plain = made(GOLDEN).analysis.metrics
    spans = [span(f"step/{word}", 20_000, 7)]

    found = made([*GOLDEN, *spans]).analysis.metrics

    assert plain[f"{word}_ms"] == found[f"{word}_ms"]


def test_the_same_numbers_stand_in_metrics_and_at_the_top() -> None:
    found = made(GOLDEN).analysis
    top = msgspec.to_builtins(found)

    same = [name for name in found.metrics if name in top]

    assert {"step_ms", "gpu_util", "bound", "memory_pressure", "peak_vram_mb"} < {*same}
    assert [top[name] for name in same] == [found.metrics[name] for name in same]


def test_each_device_has_its_utilisation_by_name() -> None:
    found = made([*launched(20, 80, 1), *launched(20, 20, 2, device=1)]).analysis.metrics

    assert (1.0, 0.25) == (found["gpu_util_0"], found["gpu_util_1"])


# Everything that could depend on what comes first: ties of all kinds, crossing ranges, pairs.
SMALL = [
    step(1, 0, 500),
    step(2, 500, 500),
    step(2, 500, 500, thread=2),
    span("step/forward", 10, 300),
    span("step/other", 10, 300),
    span("step/backward", 10, 300, thread=2),
    op("aten::mm", 20, 100, external=4),
    op("aten::add", 20, 100, external=4),
    op("aten::sub", 60, 100, external=3),
    op("MmBackward0", 520, 100, thread=2),
    launch(20, 1),
    launch(20, 1, thread=2),
    launch(30, 2),
    launch(30, 3),
    launch(530, 4, thread=2),
    launch(530, 5, thread=2),
    graph(540, 6),
    call("cudaStreamSynchronize", 40, 30),
    call("cudaDeviceSynchronize", 900, 200),
    kernel(50, 100, 1, name=GEMM),
    kernel(50, 100, 2, name=ELEMENTWISE),
    kernel(50, 100, 3, stream=8),
    kernel(50, 9000, 77, stream=8),
    kernel(600, 100, 4, name=GEMM),
    kernel(600, 100, 5, stream=8, device=1),
    kernel(650, 10, 6, stream="stream 9"),
    kernel(680, 10, 6, stream=9),
    memory(5, Bytes=100, Device_Type=1, Device_Id=0),
    memory(5, Bytes=-100, Device_Type=1, Device_Id=0),
    memory(6, Bytes=50, Device_Type=1, Device_Id=0),
    *({"ph": "B", "cat": "cpu_op", "name": each, "ts": 700, "pid": 0, "tid": 1} for each in "xy"),
    *({"ph": "E", "ts": 800 + each, "pid": 0, "tid": 1} for each in (0, 50)),
]


@given(st.permutations(SMALL), st.permutations(("ph", "cat", "name", "ts", "dur", "args")))
def test_neither_the_order_of_events_nor_that_of_keys_changes_anything(
    events: list[Event], keys: list[str]
) -> None:
    turned = [{name: each[name] for name in keys if name in each} | each for each in events]

    assert made(SMALL).analysis == made(turned).analysis


@given(st.lists(st.sampled_from(SMALL), unique_by=id, min_size=1, max_size=12))
def test_any_few_events_make_a_document_with_a_reason_for_each_null(events: list[Event]) -> None:
    """Of whatever is missing: steps, launches, kernels, the other half of a pair."""
    found = made([*events, span("anything", 5, 1)]).analysis

    assert {*schema.null_paths(msgspec.to_builtins(found))} == {*found.null_reasons}
    assert found == msgspec.json.decode(msgspec.json.encode(found), type=Analysis)


@given(st.sampled_from([64, 1000, 1 << 19]))
def test_the_size_of_chunks_changes_nothing(chunk: int) -> None:
    file = io.BytesIO(json.dumps({"traceEvents": SMALL}).encode())

    assert (
        made(SMALL).analysis == analysed(reader.of(file, chunk=chunk), name="small.json").analysis
    )
