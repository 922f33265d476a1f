"""What a whole file shows of how it was taken."""

import pytest

from farm.trace.analysis.diagnostics import Diagnostics, diagnostics
from tests.farm.trace.analysis.traces import (
    GEMM,
    PLAIN_GEMM,
    WORK,
    Event,
    copy,
    gathered,
    kernel,
    launch,
    launched,
    op,
    span,
    step,
)


def of(*events: Event) -> Diagnostics:
    return diagnostics(gathered(events))


def test_from_launch_to_start_is_told_as_the_median_of_kernels() -> None:
    """Copies and orphans say nothing."""
    work = [each for of_ in (1, 2, 3) for each in launched(100 * of_, 5, of_, before=10 * of_)]

    found = of(*work, launch(1, 4), copy(900, 5, 4), kernel(950, 5))

    assert 20.0 == found.launch_to_start_us_p50


def test_a_launch_takes_the_median_of_all_launches() -> None:
    found = of(*(launch(10 * each, each, length=each) for each in (1, 2, 3, 9)))

    assert 2.5 == found.launch_api_us_p50
    assert found.launch_to_start_us_p50 is None


def test_a_host_that_runs_ahead_shifts_kernels_to_later_steps() -> None:
    """By time they run in a step that did not launch them."""
    marks = [step(each, 100 * each, 100) for each in range(3)]
    work = [launch(10, 1), kernel(20, 30, 1), launch(60, 2), kernel(150, 10, 2)]

    assert 25.0 == of(*marks, *work).step_shift_pct
    assert of(*work).step_shift_pct is None


def test_over_the_host_steps_a_sum_can_be_more_than_the_window_and_a_union_cannot() -> None:
    marks = [step(each, 100 * each, 100) for each in range(2)]
    work = [launch(1, 1), launch(2, 2), kernel(50, 200, 1), kernel(50, 200, 2, stream=8)]

    found = of(*marks, *work)

    assert 0.2 == pytest.approx(found.cpu_window_ms)
    assert 2.0 == found.kernel_sum_over_cpu_window
    assert 0.75 == found.kernel_union_over_cpu_window


def test_without_steps_or_kernels_there_is_nothing_to_hold_them_against() -> None:
    assert of(*launched(20, 5, 1)).cpu_window_ms is None
    found = of(step(1, 0, 50), op("a", 0, 5))
    assert (0.05, None) == (found.cpu_window_ms, found.kernel_sum_over_cpu_window)


def test_active_over_the_span_counts_copies_too() -> None:
    found = of(*launched(100, 50, 1), launch(1, 2), copy(280, 20, 2))

    assert 0.35 == found.active_over_gpu_span
    assert of(op("a", 0, 5)).active_over_gpu_span is None


def test_an_occupancy_of_nothing_is_counted_among_those_that_are_told() -> None:
    told = {"est. achieved occupancy %": 0}, {"est. achieved occupancy %": 31}, {}, {}

    found = of(*(kernel(10 + 10 * at, 5, **each) for at, each in enumerate(told)))

    assert 50.0 == found.occupancy_zero_pct
    assert of(kernel(10, 5)).occupancy_zero_pct is None


def test_shares_of_the_file_are_of_all_kernel_time() -> None:
    """In the window or not."""
    work = [
        *launched(20, 60, 1, name=GEMM),
        *launched(120, 30, 2, name=PLAIN_GEMM),
        kernel(500, 10, name=WORK),
    ]

    found = of(step(0, 0, 100), step(1, 100, 100), span("step/forward", 5, 20), *work)

    assert 60.0 == found.file_tensorcore_pct
    assert 10.0 == found.file_tensorcore_unknown_pct
    assert {"forward": 60.0, "unphased": 30.0, "unattributed": 10.0} == found.file_phases_pct


def test_overlaps_on_one_stream_are_told_in_ms() -> None:
    found = of(launch(1, 1), launch(2, 2), kernel(10, 100, 1), kernel(60, 100, 2))

    assert 0.05 == found.stream_overlap_ms
