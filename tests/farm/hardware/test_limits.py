"""The laws of the words for what limits a step, and of the numbers beside them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.hardware import (
    gflops_per_second,
    heuristic_bound,
    measured_bound,
    memory_bandwidth_mbs,
    share_of_peak,
)

TIMES = st.floats(1e-6, 1e6)
MAYBE = st.one_of(st.none(), TIMES)


# ── the rule of thumb ────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S2.5", "S2.6")
@pytest.mark.parametrize(
    ("gflops", "mbs", "expected"),
    [(1.0, 10_000, "memory"), (50, 100, "compute"), (1.0, 100.0, "compute")],
)
def test_the_heuristic_compares_strictly(gflops: float, mbs: float, expected: str) -> None:
    assert expected == heuristic_bound(gflops, mbs)


@pytest.mark.seed("S2.18")
def test_the_inverted_comparison_stays_out() -> None:
    """The classic mistake: much traffic for little arithmetic called `compute`, and the reverse."""
    assert "memory" == heuristic_bound(1.0, 10_000.0)
    assert "memory" != heuristic_bound(10_000.0, 1.0)


@pytest.mark.seed("S2.18")
def test_equality_is_compute_and_the_next_number_is_memory() -> None:
    """The other form of it: `>=` in place of `>`, or the factor on the wrong side."""
    assert "compute" == heuristic_bound(3.0, 300.0)
    assert "memory" == heuristic_bound(3.0, math.nextafter(300.0, math.inf))
    assert "compute" == heuristic_bound(3.0, 3.01)


@given(st.floats(0, 1e9), st.floats(0, 1e12))
def test_the_heuristic_is_memory_exactly_above_a_hundredfold(gflops: float, mbs: float) -> None:
    assert (mbs > 100 * gflops) == (heuristic_bound(gflops, mbs) == "memory")


@pytest.mark.seed("S2.24")
def test_its_two_numbers_are_those_of_the_formula() -> None:
    """10⁹ FLOPs in 2 ms are 500 GFLOP/s; 100 MiB over 2 ms are 50,000 MiB/s, and no bandwidth."""
    assert 500.0 == gflops_per_second(1e9, 2.0)
    assert 50_000.0 == memory_bandwidth_mbs(100 * 2**20, 2.0)


# ── measured times against the roofs ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("compute", "memory", "expected"),
    [
        (8.0, 1.0, "compute"),
        (1.0, 8.0, "memory"),
        (5.0, 5.0, "balanced"),
        (5.0, 4.01, "balanced"),
        (5.0, 3.99, "compute"),
        (4.0, 5.0, "memory"),  # a quarter apart exactly: no longer balanced
        (2.9, 1.0, "overhead"),
        (3.0, 1.0, "compute"),
        (0.0, 9.0, "memory"),
        (0.0, 0.0, "overhead"),
        (10.4, 1.0, "compute"),
    ],
)
def test_a_cpu_step_of_10_ms_is_called(compute: float, memory: float, expected: str) -> None:
    found = measured_bound(10.0, compute_ms=compute, memory_ms=memory)

    assert (expected, "", False) == (found.bound, found.reason, found.roof_violation)


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ({"busy": 0.9, "transfer_ms": 3.0, "kernel_ms": 3.0}, "transfer"),
        ({"busy": 0.1, "transfer_ms": 3.0, "kernel_ms": 1.0}, "transfer"),
        ({"busy": 0.79, "transfer_ms": 1.0, "kernel_ms": 3.0}, "launch"),
        ({"busy": 0.8, "transfer_ms": 0.0, "kernel_ms": 0.0}, "compute"),
        ({"busy": 0.95, "transfer_ms": None, "kernel_ms": 5.0}, "compute"),
    ],
)
def test_on_a_gpu_the_first_of_the_order_holds(trace: dict[str, float], expected: str) -> None:
    found = measured_bound(10.0, compute_ms=9.0, memory_ms=1.0, on_gpu=True, **trace)

    assert expected == found.bound


def test_a_gpu_without_a_trace_has_no_bound() -> None:
    found = measured_bound(10.0, compute_ms=9.0, memory_ms=1.0, on_gpu=True)

    assert found.bound is None
    assert found.reason.startswith("not_probed")


def test_a_bound_of_a_trace_needs_no_peaks() -> None:
    found = measured_bound(10.0, compute_ms=None, memory_ms=None, on_gpu=True, busy=0.5)

    assert "launch" == found.bound


@given(MAYBE, MAYBE, MAYBE, MAYBE, MAYBE, MAYBE)
def test_a_cpu_step_is_never_launch_or_transfer(
    time: float | None,
    compute: float | None,
    memory: float | None,
    busy: float | None,
    transfer: float | None,
    kernel: float | None,
) -> None:
    """Whatever a trace says of a GPU that stands beside it: 0 % busy is no finding (C10, B16)."""
    found = measured_bound(
        time,
        compute_ms=compute,
        memory_ms=memory,
        busy=busy,
        transfer_ms=transfer,
        kernel_ms=kernel,
    )

    assert found.bound not in ("launch", "transfer")
    assert (found.bound is None) == bool(found.reason)


@given(TIMES, TIMES, TIMES, st.booleans(), st.floats(0, 1))
def test_quicker_than_the_roof_is_an_error_and_nothing_else(
    time: float, compute: float, memory: float, on_gpu: bool, busy: float
) -> None:
    found = measured_bound(time, compute_ms=compute, memory_ms=memory, on_gpu=on_gpu, busy=busy)

    violated = max(compute, memory) / time > 1.05
    assert violated is found.roof_violation
    assert violated == found.reason.startswith("error: ")
    assert violated == (found.bound is None)


def test_one_side_is_enough_to_see_a_violation() -> None:
    """A step that answers from memory of an earlier call beats its compute roof (pitfall 21)."""
    found = measured_bound(1.0, compute_ms=2.0, memory_ms=None)

    assert found.roof_violation
    assert found.bound is None


@pytest.mark.parametrize(("compute", "memory"), [(None, 1.0), (1.0, None), (None, None)])
def test_a_bound_needs_both_sides(compute: float | None, memory: float | None) -> None:
    found = measured_bound(2.0, compute_ms=compute, memory_ms=memory)

    assert (None, "not_probed", False) == (found.bound, found.reason, found.roof_violation)


# ── shares of a peak ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S2.20")
def test_efficiency_is_a_share_of_the_device_s_own_peak() -> None:
    """50 GFLOP in 1 s are half of 100 GFLOP/s and a thousandth of 50 TFLOP/s."""
    assert 0.5 == share_of_peak(50e9, 100e9, 1000.0)
    assert 0.001 == share_of_peak(50e9, 50e12, 1000.0)


@pytest.mark.seed("S2.20")
@pytest.mark.parametrize(
    ("amount", "peak", "time"), [(None, 1.0, 1.0), (1.0, None, 1.0), (1.0, 1.0, None)]
)
def test_without_a_peak_there_is_no_efficiency(
    amount: float | None, peak: float | None, time: float | None
) -> None:
    assert share_of_peak(amount, peak, time) is None
