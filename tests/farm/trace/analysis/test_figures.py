"""The metrics of a trace by name: exact where they can be, of golden traces as they should be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis.figures import Figures, figures
from farm.trace.analysis.known import Known
from tests.farm.trace import g8
from tests.farm.trace.analysis.traces import (
    COMM,
    GEMM,
    PLAIN_GEMM,
    call,
    copy,
    gathered,
    kernel,
    launch,
    launched,
    made,
    op,
    repeated,
    seen,
    span,
    step,
)


@pytest.mark.seed("S4.56", "S4.58", "S4.59")
def test_the_golden_trace_that_is_half_busy_waits_for_the_host() -> None:
    """G8."""
    found = made(g8.events()).analysis

    shares = {each.name: each.pct for each in found.categories}
    assert ("host / launch", 10.0, 0.5) == (found.bound, found.step_ms, found.gpu_util)
    assert 15.0 == pytest.approx(found.tensorcore_pct)
    assert shares == pytest.approx(
        {"gemm": 30.0, "layout": 30.0, "elementwise": 15.0, "norm": 15.0, "other": 10.0}
    )


@pytest.mark.seed("S4.61", "S4.62")
def test_the_golden_trace_has_its_launches_and_its_overhead() -> None:
    """G8."""
    found = made(g8.events()).analysis

    assert (20.0, 20.0) == (found.launches_per_step, found.kernels_per_step)
    assert 5.0 == pytest.approx(found.host_overhead_ms_per_step)
    assert 0.1 == pytest.approx(found.memcpy_ms_per_step)
    assert 5.0 == pytest.approx(found.metrics["idle_host_ms"])


def test_the_golden_trace_that_is_nearly_busy_computes() -> None:
    """G8."""
    found = made(g8.events(busy=0.9)).analysis

    assert ("compute", pytest.approx(0.9)) == (found.bound, found.gpu_util)


@pytest.mark.seed("S4.67")
def test_the_golden_trace_that_allocates_in_each_step_is_marked() -> None:
    """G8."""
    found = made(g8.events(busy=0.9, mallocs=6)).analysis

    assert ("memory-pressure", True, 6.0) == (
        found.bound,
        found.memory_pressure,
        found.cuda_mallocs_per_step,
    )


@pytest.mark.seed("S4.58", "S4.67")
def test_the_golden_trace_of_two_streams_is_never_more_than_busy() -> None:
    """G8: 12 ms of kernels in a step of 10 ms."""
    found = made(g8.events(busy=1.2, streams=2)).analysis

    assert 12.0 == pytest.approx(found.metrics["kernel_sum_ms"], rel=0.01)
    assert (1.0, "compute", False) == (found.gpu_util, found.bound, found.memory_pressure)
    assert 1.2 == pytest.approx(found.metrics["gpu_concurrency"], rel=0.01)


def test_a_step_takes_the_median_and_shares_are_of_the_mean() -> None:
    """Periods of 100, 100 and 400 µs."""
    ends = (100, 200, 300, 700)
    events = [each for at, end in enumerate(ends) for each in launched(end - 50, 50, at + 1)]
    marks = [step(at, end - 95, 90) for at, end in enumerate(ends)]

    found = seen([*marks, *events]).figures.metrics

    assert (0.1, 0.2) == pytest.approx((found.step_ms, found.step_ms_mean))
    assert 0.25 == pytest.approx(found.gpu_util)
    assert 0.8660254 == pytest.approx(found.step_ms_cv)


def test_one_step_has_no_deviation() -> None:
    assert seen(launched(10, 5, 1)).figures.metrics.step_ms_cv is None


def test_numbers_of_several_devices_are_their_mean() -> None:
    """Also the devices that only copied, and those whose kernels lie outside of the window."""
    found = seen([*launched(20, 80, 1), *launched(20, 20, 2, device=1)]).figures.metrics

    assert {"0": 1.0, "1": 0.25} == found.gpu_util_by_device
    assert 0.625 == found.gpu_util
    assert 0.05 == pytest.approx(found.gpu_busy_ms)
    assert 0.03 == pytest.approx(found.idle_ms)


def test_a_collective_is_exposed_where_no_other_kernel_runs() -> None:
    found = seen([*launched(10, 100, 1, name=COMM), *launched(50, 20, 2, stream=8)]).figures

    assert 0.08 == pytest.approx(found.metrics.exposed_comm_ms)


def test_a_copy_is_exposed_where_no_kernel_runs() -> None:
    found = seen([*launched(10, 50, 1), launch(1, 2), copy(40, 60, 2)]).figures

    assert 0.04 == pytest.approx(found.metrics.exposed_memcpy_ms)
    assert 0.06 == pytest.approx(found.metrics.memcpy_ms)


@pytest.mark.seed("S4.59")
def test_matrix_units_are_told_of_all_kernels_and_of_those_that_could_use_them() -> None:
    events = [
        *launched(100, 30, 1, name=GEMM),
        *launched(200, 10, 2, name=PLAIN_GEMM),
        *launched(300, 40, 3),
        *launched(400, 20, 4, name="attn_fwd"),
    ]

    found = seen(events).figures.metrics

    shares = (found.tensorcore_pct, found.tensorcore_unknown_pct, found.tensorcore_of_gemm_pct)
    assert (30.0, 60.0, 50.0) == pytest.approx(shares)


@pytest.mark.parametrize(("major", "known"), [(6, False), (7, True), ("9", True), (None, True)])
def test_a_device_without_matrix_units_has_no_share_of_them(major: object, known: bool) -> None:
    properties = [{"id": 0, "computeMajor": major}, {"id": 1, "computeMajor": 9}, "odd"]

    found = made(launched(20, 80, 1, name=GEMM), deviceProperties=properties).analysis

    assert known is (found.tensorcore_pct is not None)
    assert known is not ("tensorcore_pct" in found.null_reasons)


def test_only_synchronous_allocations_count() -> None:
    names = ("cudaMalloc", "cudaFree", "hipMalloc", "hipFree", "cuMemAlloc", "cuMemFree_v2")
    others = (
        "cudaMallocAsync",
        "cudaMallocHost",
        "cudaFreeHost",
        "cuMemAllocHost",
        "cudaFreeAsync",
    )
    calls = [call(each, 20 + at) for at, each in enumerate((*names, *others))]

    found = seen([*calls, *launched(12, 80, 1)]).figures.metrics

    assert 6.0 == found.cuda_mallocs_per_step


@pytest.mark.parametrize(("reserved", "expected"), [(951, "memory-pressure"), (949, "compute")])
@pytest.mark.seed("S4.67")
def test_a_device_that_is_nearly_full_is_under_pressure(reserved: int, expected: str) -> None:
    told = {"Device Type": 1, "Total Allocated": 1, "Total Reserved": reserved}
    memory = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1, "args": told}
    properties = [{"id": 0, "totalGlobalMem": 1000}, {"id": 1, "totalGlobalMem": 1}]

    found = seen([*g8.events(busy=0.9), memory], deviceProperties=properties)

    assert expected == found.figures.bound.word


def test_with_clock_skew_the_idle_split_is_null_with_its_reason() -> None:
    late = [launch(10, 1), kernel(20, 980, 1), call("cudaDeviceSynchronize", 50, 100)]

    found = made([step(1, 0, 2000), *late]).analysis

    assert found.metrics["idle_host_ms"] is None
    assert found.metrics["idle_ms"] is None
    assert "error: clock skew" == found.null_reasons["metrics.idle_host_ms"]


def test_on_a_cpu_numbers_of_a_gpu_are_null() -> None:
    """C10: nothing is said about a GPU, not even that it is idle."""
    found = made([step(each, 100 * each, 100) for each in range(3)] + [op("a", 110, 80)]).analysis

    for name in ("gpu_util", "gpu_busy_ms", "idle_ms", "idle_host_ms", "tensorcore_pct"):
        assert found.metrics[name] is None
        assert found.null_reasons[f"metrics.{name}"].startswith("not_applicable")
    assert 0.4 == pytest.approx(found.metrics["op_cover"])


@pytest.mark.parametrize("length", [0, 5])
def test_a_trace_of_one_event_has_numbers(length: float) -> None:
    found = seen(launched(20, length, 1)).figures

    assert 1 == found.counts.kernels
    assert (1.0 if length else None) == found.metrics.gpu_util


@given(st.integers(1, 30), st.integers(1, 10**7))
def test_a_share_of_exactly_a_fifth_reaches_a_threshold_of_a_fifth(n: int, part: int) -> None:
    """Of whole nanoseconds: n steps of five parts each, of which the device waits one for data."""
    us = part / 1000

    def of_step(number: int, start: float) -> list[dict[str, object]]:
        of = number + 1
        return [
            launch(start + 0.001, of),
            kernel(start + us, 4 * us, of),
            span("step/dataload", start, us),
        ]

    found = seen(repeated(n + 1, 5 * us, of_step)).figures

    assert "dataloader" == found.bound.word
    assert 0.2 == found.bound.reasons[0].value


# ── what a capture knows better ──────────────────────────────────────────────────────────────────


def captured(events: list[g8.Event], known: Known) -> Figures:
    return figures(gathered(events), known)


def test_the_plain_step_of_a_capture_stands_before_the_traced_one() -> None:
    """Shares are those of the traced steps, whose mean is 10 ms."""
    found = captured(g8.events(), Known(8.0, 20, wall_ms=160.0, step_cv=0.03)).metrics

    assert (8.0, 0.03, "capture") == (found.step_ms, found.step_ms_cv, found.step_ms_source)
    assert (10.0, 0.5) == pytest.approx((found.step_ms_mean, found.gpu_util))
    assert 3.0 == pytest.approx(found.host_overhead_ms)


def test_what_the_host_adds_is_of_the_mean_step() -> None:
    """Of data in bursts the median step has none of the waiting, and nothing would be left."""
    bursts = Known(8.0, 20, wall_ms=800.0, dataload_ms=32.0, dataload_frac=0.8)

    found = captured(g8.events(), bursts).metrics

    assert (8.0, 32.0) == (found.step_ms, found.dataload_ms)
    assert 3.0 == pytest.approx(found.host_overhead_ms)  # 40 in all, 5 of them on the GPU


def test_a_capture_without_a_plain_step_leaves_that_of_the_trace() -> None:
    found = captured(g8.events(), Known(None)).metrics

    assert (10.0, "gpu_period") == (found.step_ms, found.step_ms_source)


@pytest.mark.parametrize(
    ("known", "expected"),
    [(Known(10.0), 2.5), (Known(10.0, dataload_ms=0.5, dataload_frac=0.05), 0.5)],
)
def test_the_clean_wait_for_data_stands_before_the_traced_one(
    known: Known, expected: float
) -> None:
    """An inference loads none, so what its spans tell is left."""

    def of_step(_: int, start: float) -> list[dict[str, object]]:
        return [span("step/dataload", start, 2500), op("aten::add", start, 100)]

    found = captured(repeated(4, 10_000, of_step), known)

    assert expected == pytest.approx(found.metrics.dataload_ms)
    assert ("dataloader" if expected == 2.5 else "cpu") == found.bound.word


@pytest.mark.seed("S4.67")
def test_allocations_in_the_steps_of_a_capture_are_those_of_steady_ones() -> None:
    """They come after its warm-up, so one step in the trace is enough to tell."""
    one = g8.events(steps=1, busy=0.9, mallocs=6)

    assert "memory-pressure" == captured(one, Known(10.0)).bound.word
    assert "memory-pressure" != seen(one).figures.bound.word
