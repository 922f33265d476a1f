"""What a file holds, and what its devices and its host did in the window, in whole nanoseconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis import measures
from farm.trace.analysis.measures import OfDevice
from tests.farm.trace.analysis.traces import (
    COMM,
    Event,
    call,
    copy,
    gathered,
    graph,
    kernel,
    launch,
    launched,
    op,
    repeated,
    seen,
    span,
    step,
)


def device(*events: Event) -> OfDevice:
    return measures.of_devices(gathered(events))[0]


def test_busy_is_the_union_of_kernels_and_spread_their_sum() -> None:
    """Two streams that overlap by half."""
    found = device(*launched(10, 100, 1), *launched(60, 100, 2, stream=8))

    assert (150_000, 200_000) == (found.busy, found.spread)


def test_active_is_the_union_of_all_work() -> None:
    found = device(*launched(10, 100, 1), launch(1, 2), copy(90, 100, 2))

    assert (100_000, 180_000) == (found.busy, found.active)


def test_a_collective_is_free_where_no_other_kernel_runs_beside_it() -> None:
    """Another collective beside it, or a copy, does not count."""
    found = device(
        *launched(10, 100, 1, name=COMM),
        *launched(50, 100, 2, name=COMM, stream=8),
        *launched(20, 10, 3, stream=9),
        launch(1, 4),
        copy(60, 30, 4),
    )

    assert 130_000 == found.free_comm


def test_a_copy_is_free_where_no_kernel_runs_beside_it() -> None:
    found = device(*launched(10, 40, 1), launch(1, 2), copy(30, 50, 2), copy(60, 40, 2, stream=21))

    assert 50_000 == found.free_copy


def test_the_host_counts_what_starts_in_its_window() -> None:
    """A call that begins in the first step is of none."""
    found = seen(
        repeated(
            3,
            100,
            lambda number, at: [
                *launched(at + 20, 30, 2 * number + 1),
                graph(at + 60, 2 * number + 2),
                kernel(at + 70, 10, 2 * number + 2),
                call("cudaMalloc", at + 80),
                op("a", at + 5, 50),
                op("b", at + 10, 20),
                span("step/dataload", at + 90, 10),
            ],
        )
    )

    host = found.figures.host
    assert (4, 2, 2, 4) == (host.launches, host.graph_launches, host.mallocs, host.ops)
    assert (100_000, 140_000, 100_000) == (host.op_ns, host.op_total_ns, host.op_cover)
    assert 20_000 == host.dataload


def test_dataload_spans_of_several_threads_count_once() -> None:
    found = seen([span("step/dataload", 10, 50), span("## data_load ##", 30, 50, thread=2)])

    assert 70_000 == found.figures.host.dataload


def test_without_launches_each_kernel_counts_as_one() -> None:
    """`kernel_ts`."""
    found = seen([kernel(10 + 20 * each, 10) for each in range(5)])

    assert 5 == found.figures.host.launches


def test_a_file_is_counted_as_a_whole() -> None:
    events = [
        *(step(each, 1000 * each, 1000) for each in range(2)),
        *launched(20, 10, 1),
        *launched(30, 10, 2, device=1),
        graph(40, 3),
        *(kernel(50 + 10 * each, 5, 3, stream=8) for each in range(4)),
        launch(60, 4),
        copy(100, 5, 5),
        kernel(120, 5, 6, kind="gpu_memset"),
        kernel(130, 5),
    ]

    found = seen(events).figures.counts

    assert (
        measures.Counts(
            kernels=7,
            memcpys=1,
            memsets=1,
            launch_calls=4,
            graph_launches=1,
            captured_launches=0,
            unrecorded_launches=1,
            orphans=1,
            max_kernels_per_launch=4,
            steps=2,
            devices=2,
            streams=3,
            stream_overlaps=0,
            graph_replays_short=0,
            graph_replays_checked=1,
        )
        == found
    )


def replays(*sizes: int, per_step: int = 1) -> measures.Counts:
    """Return the counts of graph replays of so many kernels, some in each step of 1 ms."""
    marks = [step(each, 1000 * each, 1000) for each in range(len(sizes) // per_step)]
    calls = [
        graph(1000 * (at // per_step) + 10 * (at % per_step), at + 1) for at in range(len(sizes))
    ]
    nodes = [
        kernel(1000 * (at // per_step) + 400 + each, 0.5, at + 1)
        for at, size in enumerate(sizes)
        for each in range(size)
    ]
    return seen([*marks, *calls, *nodes]).figures.counts


@pytest.mark.parametrize(("size", "short"), [(10, 0), (5, 0), (4, 1), (0, 1)])
def test_a_replay_with_less_than_half_of_the_fullest_is_short(size: int, short: int) -> None:
    found = replays(10, 10, size)

    assert (short, 3) == (found.graph_replays_short, found.graph_replays_checked)


def test_replays_are_held_against_those_at_the_same_place_in_their_step() -> None:
    """Each step replays a large graph and then a small one."""
    found = replays(10, 2, 10, 2, 10, 2, per_step=2)

    assert (0, 6) == (found.graph_replays_short, found.graph_replays_checked)


def test_replays_outside_of_steps_are_not_checked() -> None:
    found = seen([graph(10, 1), kernel(20, 1, 1), graph(30, 2)]).figures.counts

    assert 0 == found.graph_replays_checked


def test_kernels_of_one_stream_that_overlap_are_told_with_how_long() -> None:
    """Each against all that began before it."""
    found = gathered(
        [
            launch(0, 1),
            launch(1, 2),
            launch(2, 3),
            launch(3, 4),
            kernel(10, 100, 1),
            kernel(60, 10, 2),
            kernel(105, 50, 3),
            kernel(105, 50, 4, stream=8),
        ]
    )

    assert [5_000, 10_000] == sorted(measures.overlaps(found).tolist())


def test_an_overlap_keeps_the_union_right() -> None:
    """50 µs of each kernel beside the next (programmatic dependent launch)."""
    kernels = [kernel(100 + 100 * each, 150, each + 1) for each in range(4)]

    found = seen([*(launch(each, each + 1) for each in range(4)), *kernels])

    assert 3 == found.figures.counts.stream_overlaps
    assert (450_000, 600_000) == (found.figures.devices[0].busy, found.figures.devices[0].spread)


WORK = st.lists(
    st.tuples(st.integers(5, 80), st.integers(0, 30), st.integers(7, 9)), min_size=1, max_size=8
)


@given(WORK)
def test_busy_is_at_most_active_and_at_most_the_window(work: list[tuple[int, int, int]]) -> None:
    """However many streams overlap: utilisation is never above 1."""
    events = [
        each
        for of, (start, length, stream) in enumerate(work, 1)
        for each in launched(start, length, of, before=3, stream=stream)
    ]

    found = gathered([*events, launch(0, 99), copy(30, 10, 99)])

    (one,) = measures.of_devices(found)
    points = {
        now
        for start, length, _ in work
        for now in range(start, start + length)
        if 1000 * now < found.window.end
    }
    assert 1000 * len(points) == one.busy
    assert one.busy <= one.active <= found.window.length_ns
