"""The six causes of idle time: each alone, and all together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis import measures
from farm.trace.analysis.idle import Idle
from tests.farm.trace.analysis.traces import (
    Event,
    call,
    copy,
    gathered,
    graph,
    kernel,
    launch,
    launched,
    seen,
    span,
    step,
)

LOADING = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def causes(*events: Event) -> dict[str, int]:
    """Return the causes of the first device that are not nothing, µs."""
    split = seen(events).figures.devices[0].idle
    return {name: took // 1000 for name, took in split._asdict().items() if took}


def gap(launched_at: float, **of: Any) -> list[Event]:
    """Return a gap of the device from 20 to 40, and when the work after it was launched."""
    return [launch(0, 1), kernel(10, 10, 1), launch(launched_at, 2), kernel(40, 10, 2, **of)]


def test_a_gap_before_work_that_was_launched_in_it_is_the_hosts() -> None:
    assert {"host": 20} == causes(*gap(30))


@pytest.mark.parametrize(
    ("at", "cause"), [(19, "kernel_wait"), (20, "kernel_wait"), (20.001, "host")]
)
def test_a_gap_before_work_that_was_launched_by_then_is_waiting(at: float, cause: str) -> None:
    assert {cause: 20} == causes(*gap(at))


def test_a_gap_within_a_graph_is_the_graphs() -> None:
    assert {"graph": 20} == causes(graph(0, 1), kernel(10, 10, 1), kernel(40, 10, 1))


def test_a_gap_before_the_first_kernel_of_a_graph_is_waiting() -> None:
    assert {"kernel_wait": 20} == causes(
        launch(0, 1), graph(2, 2), kernel(10, 10, 1), kernel(40, 10, 2)
    )


def test_several_kernels_of_a_launch_that_is_no_graph_leave_no_gap_of_a_graph() -> None:
    assert {"kernel_wait": 20} == causes(launch(0, 1), kernel(10, 10, 1), kernel(40, 10, 1))


def test_a_gap_before_an_orphan_is_nobodys() -> None:
    assert {"unknown": 20} == causes(launch(0, 1), kernel(10, 10, 1), kernel(40, 10, 99))


def test_a_late_host_that_waited_for_data_is_the_loaders() -> None:
    """The part under the span, on whatever thread it is; the rest is the host's."""
    assert {"dataload": 20} == causes(
        *gap(35), span(LOADING, 5, 28), span(LOADING, 30, 20, thread=2)
    )
    assert {"dataload": 5, "host": 15} == causes(*gap(35), span("step/dataload", 22, 5))


def test_a_late_host_that_was_in_a_synchronisation_when_the_gap_opened_is_its_fault() -> None:
    waiting = call("cudaStreamSynchronize", 15, 6)

    assert {"sync": 20} == causes(*gap(35), waiting)
    assert {"sync": 15, "dataload": 5} == causes(*gap(35), waiting, span(LOADING, 22, 5))


@pytest.mark.parametrize(("start", "length"), [(15, 5), (20.5, 10)])
def test_a_synchronisation_that_does_not_cover_the_first_instant_is_not_blamed(
    start: float, length: float
) -> None:
    assert {"host": 20} == causes(*gap(35), call("cudaStreamSynchronize", start, length))


@pytest.mark.parametrize(
    "name",
    [
        *("cudaDeviceSynchronize", "hipStreamSynchronize", "cuCtxSynchronize", "cudaMemcpy"),
        *("cudaEventSynchronize", "hipMemcpy", "hipMemcpyWithStream", "cuMemcpyDtoH"),
        *("cuMemcpyDtoH_v2", "hipMemcpyDtoH"),
    ],
)
def test_these_calls_block(name: str) -> None:
    assert {"sync": 20} == causes(*gap(35), call(name, 15, 10))


@pytest.mark.parametrize("name", ["cudaMemcpyAsync", "hipMemcpyDtoHAsync", "cudaStreamWaitEvent"])
def test_these_calls_do_not(name: str) -> None:
    assert {"host": 20} == causes(*gap(35), call(name, 15, 10))


def test_waiting_is_not_blamed_on_a_host_that_was_early() -> None:
    """It launched, then it waited: what the device did not start is not its fault."""
    assert {"kernel_wait": 20} == causes(
        *gap(15), call("cudaStreamSynchronize", 16, 10), span(LOADING, 20, 20)
    )


def test_the_gap_after_the_last_work_is_the_hosts() -> None:
    assert {"host": 40} == causes(step(1, 10, 50), launch(11, 1), kernel(10, 10, 1))


def test_of_several_that_start_together_the_earliest_launch_counts() -> None:
    assert {"kernel_wait": 20} == causes(*gap(35), launch(12, 3), kernel(40, 5, 3, stream=8))
    assert {"host": 20} == causes(*gap(35), kernel(40, 5, 99, stream=8))


def test_copies_fill_gaps_and_end_them() -> None:
    assert {"host": 15} == causes(*gap(36), launch(2, 3), copy(20, 5, 3))
    assert {"kernel_wait": 5, "host": 5} == causes(*gap(36), launch(2, 3), copy(25, 10, 3))


def test_an_empty_event_neither_cuts_a_gap_nor_ends_one() -> None:
    found = seen([*gap(35), launch(2, 3), kernel(30, 0, 3)])

    assert 3 == found.figures.counts.kernels
    assert Idle(host=20_000) == found.figures.devices[0].idle


def test_without_any_launch_all_gaps_are_the_hosts() -> None:
    assert {"host": 20} == causes(kernel(10, 10), kernel(40, 10))


def test_each_device_has_gaps_of_its_own() -> None:
    found = seen([*gap(35), *launched(30, 20, 3, device=1)])

    assert [20_000, 20_000] == [sum(each.idle) for each in found.figures.devices]
    assert 0.02 == pytest.approx(found.figures.metrics.idle_ms)


def test_a_device_of_which_only_empty_events_are_known_is_idle_throughout() -> None:
    found = seen([*gap(35), launch(2, 3), kernel(30, 0, 3, device=1)])

    assert [20_000, 40_000] == [sum(each.idle) for each in found.figures.devices]


ANY = st.lists(
    st.tuples(
        st.sampled_from(("work", "graph", "orphan", "load", "wait", "copy")),
        st.integers(0, 120),
        st.integers(0, 25),
        st.integers(0, 90),
        st.integers(7, 8),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=12,
)


def whole(drawn: list[tuple[str, int, int, int, int, int]]) -> list[Event]:
    """Return a trace of what was drawn, with a kernel at each end."""
    found = [*launched(10, 5, 1000), *launched(190, 5, 1001)]
    for number, (kind, start, length, before, stream, device) in enumerate(drawn, 1):
        at = start + 20
        where: dict[str, Any] = {"stream": stream, "device": device}
        if kind == "load":
            found.append(span(LOADING, at, length))
        elif kind == "wait":
            found.append(call("cudaStreamSynchronize", at, length))
        elif kind == "orphan":
            found.append(kernel(at, length, **where))
        elif kind == "copy":
            found += [launch(max(0, at - before), number), copy(at, length, number)]
        elif kind == "graph":
            nodes = [kernel(at + shift, 3, number, **where) for shift in (0, 10, 30)]
            found += [graph(max(0, at - before), number), *nodes]
        else:
            found += [launch(max(0, at - before), number), kernel(at, length, number, **where)]
    return found


@given(ANY)
def test_the_six_causes_add_up_to_all_time_in_which_a_device_did_nothing(
    drawn: list[tuple[str, int, int, int, int, int]],
) -> None:
    found = seen(whole(drawn))

    window = found.found.window
    for device in found.figures.devices:
        assert window.length_ns == sum(device.idle) + device.active
        assert all(each >= 0 for each in device.idle)


@given(ANY)
def test_the_gaps_are_the_time_in_which_a_device_did_nothing_piece_by_piece(
    drawn: list[tuple[str, int, int, int, int, int]],
) -> None:
    """By start, none upon another or upon work, and of each cause as much as the numbers say."""
    found = seen(whole(drawn))

    for number, gaps in enumerate(measures.gaps(found.found)):
        mine = found.found.device == number
        for start, end, after in zip(
            gaps.start.tolist(), gaps.end.tolist(), [*gaps.start.tolist()[1:], 2**62], strict=True
        ):
            assert start < end <= after
            works = (found.found.gpu.start[mine] < end) & (found.found.gpu.end[mine] > start)
            lasts = found.found.gpu.end[mine] > found.found.gpu.start[mine]
            assert not (works & lasts).any()
        split = found.figures.devices[number].idle
        length = gaps.end - gaps.start
        assert list(split) == [int(length[gaps.cause == at].sum()) for at in range(len(split))]


def test_a_gap_is_cut_where_its_cause_changes() -> None:
    (gaps,) = measures.gaps(gathered([*gap(35), span("step/dataload", 22, 5)]))

    assert [(20_000, 22_000), (22_000, 27_000), (27_000, 40_000)] == list(
        zip(gaps.start.tolist(), gaps.end.tolist(), strict=True)
    )
    assert ["host", "dataload", "host"] == [Idle._fields[each] for each in gaps.cause.tolist()]
