"""The tables of a trace: kernels, operators, phases, categories."""

import pytest

from farm.trace.analysis import tables
from farm.trace.analysis.tables import KernelRow
from tests.farm.trace.analysis.traces import (
    COMM,
    GEMM,
    PLAIN_GEMM,
    WORK,
    Event,
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

SHORT = "void at::native::vectorized_elementwise_kernel<4, Add>(int)"


def of_step(number: int, at: float) -> list[Event]:
    """Return a step of 1 ms: two phases, three kernels, three operators."""
    of = 10 * number
    return [
        span("step/forward", at, 400),
        span("step/backward", at + 400, 400),
        op("aten::mm", at + 5, 100),
        op("aten::add", at + 50, 20),
        op("MmBackward0", at + 450, 100),
        launch(at + 10, of + 1),
        kernel(at + 20, 300, of + 1, name=GEMM),
        launch(at + 55, of + 2),
        kernel(at + 320, 100, of + 2, name=SHORT),
        launch(at + 500, of + 3),
        kernel(at + 510, 100, of + 3, name=SHORT),
    ]


TRACE = repeated(4, 1000, of_step)


@pytest.mark.seed("S4.65", "S4.80")
def test_kernels_of_one_name_are_a_row_per_step_the_costliest_first() -> None:
    rows = made(TRACE).analysis.kernels

    assert [
        KernelRow(
            kernel=GEMM,
            raw_name=GEMM,
            category="gemm",
            tensorcore=True,
            matrix_unit="yes",
            ms_per_step=pytest.approx(0.3),
            pct_of_gpu=60.0,
            count_per_step=1.0,
        ),
        KernelRow(
            kernel="at::native::vectorized_elementwise_kernel",
            raw_name=SHORT,
            category="elementwise",
            tensorcore=False,
            matrix_unit="no",
            ms_per_step=pytest.approx(0.2),
            pct_of_gpu=40.0,
            count_per_step=2.0,
        ),
    ] == rows


@pytest.mark.seed("S4.81")
def test_under_a_phase_shares_are_of_its_kernels() -> None:
    rows = made(TRACE).analysis.kernels_by_phase["backward"]

    assert [(SHORT, 100.0, 1.0)] == [
        (each.raw_name, each.pct_of_gpu, each.count_per_step) for each in rows
    ]


def test_kernels_that_took_as_long_are_in_the_order_of_their_names() -> None:
    rows = tables.kernel_rows(
        gathered([*launched(10, 5, 1, name="b"), *launched(20, 5, 2, name="a")])
    )

    assert ["a", "b"] == [each.raw_name for each in rows]


def test_nothing_is_cut() -> None:
    """However many there are."""
    events = [
        each for at in range(1, 101) for each in launched(20 * at, 5, at, name=f"kernel_{at}_of")
    ]

    assert 100 == len(tables.kernel_rows(gathered(events)))


@pytest.mark.seed("S4.83", "S4.84")
def test_operators_of_a_phase_share_its_own_time() -> None:
    found = made(TRACE).analysis

    assert [("MmBackward0", 100.0)] == [
        (each.op, each.pct_of_cpu_ops) for each in found.ops_by_phase["backward"]
    ]
    assert [("aten::mm", 0.08, 1.0), ("aten::add", 0.02, 1.0)] == [
        (each.op, round(each.ms_per_step, 9), each.launches_per_step)
        for each in found.ops_by_phase["forward"]
    ]


@pytest.mark.seed("S4.71")
def test_a_phase_shows_its_time_on_both_sides_its_kernels_and_its_operators() -> None:
    forward, backward, *rest = made(TRACE).analysis.phases

    assert ["forward", "backward"] == [forward.phase, backward.phase]
    assert (0.4, 0.4) == pytest.approx((forward.gpu_ms_per_step, forward.wall_ms_per_step))
    assert (2.0, 2.0, 2.0) == (
        forward.kernels_per_step,
        forward.ops_per_step,
        forward.launches_per_step,
    )
    assert 0.1 == pytest.approx(backward.gpu_ms_per_step)
    assert (1.0, 1.0, 1) == (
        backward.kernels_per_step,
        backward.ops_per_step,
        backward.unique_kernels,
    )
    assert [] == rest


def test_the_time_of_a_phase_is_a_union_and_the_sum_stands_beside_it() -> None:
    (row,) = tables.phase_rows(gathered([*launched(20, 100, 1), *launched(20, 100, 2, stream=8)]))

    assert (0.1, 0.2) == pytest.approx((row.gpu_ms_per_step, row.kernel_sum_ms_per_step))


def test_a_phase_without_a_span_has_no_wall_time() -> None:
    """Whatever only operators tell; and what is in no phase."""
    events = [op("MmBackward0", 0, 50), *launched(20, 5, 1)]

    found = made(events).analysis

    (row,) = found.phases
    assert ("backward", None) == (row.phase, row.wall_ms_per_step)
    assert found.null_reasons["phases.0.wall_ms_per_step"].startswith("not_applicable")


def test_the_kernels_of_all_phases_are_the_kernels_of_the_trace() -> None:
    found = made([*TRACE, kernel(1700, 40, 999, stream=9)]).analysis

    whole = found.metrics["kernel_sum_ms"]
    assert whole == pytest.approx(sum(each.kernel_sum_ms_per_step for each in found.phases))
    assert whole == pytest.approx(sum(each.ms_per_step for each in found.kernels))
    assert "unattributed" == found.phases[-1].phase


@pytest.mark.seed("S4.64")
def test_the_mix_is_told_by_category_the_largest_first() -> None:
    events = [
        *launched(20, 30, 1, name=GEMM),
        *launched(60, 20, 2, name=PLAIN_GEMM),
        *launched(90, 40, 3, name=COMM),
        *launched(140, 10, 4, name=WORK),
    ]

    rows = tables.category_rows(gathered(events))

    assert [("gemm", 50.0), ("comm", 40.0), ("other", 10.0)] == [
        (each.name, each.pct) for each in rows
    ]
    assert 0.05 == pytest.approx(rows[0].ms_per_step)


def test_the_trace_of_a_cpu_has_no_kernels_and_no_mix() -> None:
    found = made([step(1, 0, 100), op("a", 0, 50), op("b", 10, 20)]).analysis

    assert ([], []) == (found.kernels, found.categories)
    assert ["a", "b"] == [each.op for each in found.ops]


def test_a_launch_outside_of_operators_is_none_of_theirs() -> None:
    found = seen(
        [step(1, 0, 99), op("a", 0, 10), launch(20, 1), launch(5, 2, thread=2), kernel(30, 5, 1)]
    )

    (row,) = tables.op_rows(*found)
    assert 0.0 == row.launches_per_step
