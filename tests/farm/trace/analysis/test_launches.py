"""Who launched what: by correlation, and only by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis import launches
from farm.trace.analysis.launches import GRAPH, LAUNCH, MISSING
from tests.farm.trace.analysis.traces import call, event, graph, kernel, launch, seen, trace

CALLS = ("cudaLaunchKernel", "cudaLaunchKernelExC_v11060", "cudaLaunchCooperativeKernel")
OTHERS = ("cuLaunchKernelEx", "hipLaunchKernel", "hipExtModuleLaunchKernel", "muLaunchKernel")
UR = ("urEnqueueKernelLaunch", "zeCommandListAppendLaunchKernel")
NONE = ("cudaLaunchHostFunc", "cudaMemcpyAsync", "myCudaLaunchKernel", "cudaStreamSynchronize")


def of(events):
    return launches.of(trace(events))


def callers(events):
    """Return the start of the call that launched each GPU event, ns, None for an orphan."""
    found = of(events)
    starts = found.calls.start.tolist()
    return [None if each == MISSING else starts[each] for each in found.launch.tolist()]


@pytest.mark.parametrize("name", [*CALLS, *OTHERS, *UR, "CUDALAUNCHKERNEL"])
def test_a_call_that_launches_a_kernel_is_a_launch(name: str) -> None:
    assert LAUNCH.match(name)
    assert not GRAPH.match(name)


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"])
def test_the_launch_of_a_graph_is_a_launch_too(name: str) -> None:
    assert LAUNCH.match(name)
    assert GRAPH.match(name)


@pytest.mark.parametrize("name", NONE)
def test_other_calls_launch_nothing(name: str) -> None:
    assert not LAUNCH.match(name)


def test_a_kernel_belongs_to_the_call_of_its_correlation_however_late_it_runs() -> None:
    """Under run-ahead a later launch stands nearer to it."""
    events = [launch(0, 1), launch(10, 2), kernel(200_000, 5, 1), kernel(200_010, 5, 2)]

    assert [0, 10_000] == callers(events)


def test_of_several_calls_a_launch_counts_first_and_then_the_earliest() -> None:
    pushed = call("cudaPushCallConfiguration", 0, of=5)

    assert [20_000] == callers([pushed, launch(30, 5), launch(20, 5), kernel(40, 5, 5)])
    assert [10_000] == callers(
        [call("cudaMemcpyAsync", 10, of=5), call("cudaEventRecord", 11, of=5), kernel(40, 5, 5)]
    )


def test_a_call_of_the_driver_launches_as_one_of_the_runtime_does() -> None:
    events = [call("cuLaunchKernel", 0, of=1, driver=True), kernel(5, 5, 1)]

    assert [0] == callers(events)
    assert of(events).is_launch.tolist() == [True]


@pytest.mark.parametrize("no_id", [None, 0, -1, 77])
def test_a_gpu_event_whose_call_nobody_saw_is_an_orphan(no_id: int | None) -> None:
    events = [launch(0, 1), launch(1, 0), launch(2, -1), kernel(5, 5, no_id)]

    assert [None] == callers(events)
    assert 1 == seen(events).figures.counts.orphans


def test_a_correlation_as_text_is_the_same_number() -> None:
    assert [0] == callers([launch(0, "12"), kernel(5, 5, 12)])


def test_hip_may_write_the_correlation_as_cid() -> None:
    assert [3000] == callers(
        [
            event("cuda_runtime", "hipLaunchKernel", 3, 1) | {"args": {"cid": 4}},
            event("kernel", "k", 9, 1) | {"args": {"correlation": 4}},
        ]
    )


def test_a_graph_launch_owns_all_kernels_of_its_replay() -> None:
    events = [graph(0, 1), *(kernel(10 + 10 * each, 5, 1) for each in range(12))]

    found = of(events)

    assert [True] == found.is_graph.tolist()
    assert [0] * 12 == callers(events)
    assert 12 == seen(events).figures.counts.max_kernels_per_launch


def test_calls_between_begin_and_end_of_a_capture_are_captured() -> None:
    """On that thread only: they never ran, so they are no launches that left nothing."""
    found = seen(
        [
            launch(0, 1),
            call("cudaStreamBeginCapture", 10),
            launch(20, 2),
            launch(21, 3, thread=2),
            call("cudaStreamEndCapture_v10000", 30),
            launch(40, 4),
            *(kernel(50 + each, 1, each) for each in (1, 3, 4)),
        ]
    )

    counts = found.figures.counts
    assert (3, 1, 0) == (counts.launch_calls, counts.captured_launches, counts.unrecorded_launches)


def test_a_capture_that_nothing_ends_captures_the_rest_of_its_thread() -> None:
    found = of([launch(0, 1), call("hipStreamBeginCapture", 10), launch(20, 2), launch(30, 3)])

    assert [True, False, False, False] == found.is_launch.tolist()


def test_an_end_that_the_stream_refutes_is_cut_where_the_stream_goes_on() -> None:
    """3.4 s on a stream that goes on after half a millisecond."""
    found = of([launch(0, 1), launch(1, 2), kernel(10, 3_400_000, 1), kernel(510, 10, 2)])

    assert [510_000, 520_000] == found.gpu.end.tolist()
    assert 1 == found.clipped


@pytest.mark.parametrize(("over", "clipped"), [(1000, 0), (1000.001, 1)])
def test_an_overrun_of_a_millisecond_stays(over: float, clipped: int) -> None:
    events = [launch(0, 1), launch(1, 2), kernel(10, 100 + over, 1), kernel(110, 5000, 2)]

    assert clipped == of(events).clipped


@pytest.mark.parametrize(
    "second",
    [{"stream": 8}, {"device": 1}, {"of": 1}, {"start": 10}],
    ids=["another stream", "another device", "the same launch", "the same start"],
)
def test_what_may_run_beside_an_event_cuts_nothing(second: dict[str, object]) -> None:
    more = {"start": 510, "length": 10, "of": 2} | second

    assert 0 == of([launch(0, 1), launch(1, 2), kernel(10, 9000, 1), kernel(**more)]).clipped


def test_orphans_without_a_correlation_in_common_cut_each_other() -> None:
    assert 1 == of([launch(0, 9), kernel(10, 9000, 1), kernel(510, 10, 2)]).clipped
    assert 0 == of([launch(0, 9), kernel(10, 9000, 1), kernel(510, 10, 1)]).clipped


@given(st.permutations(range(6)))
def test_the_order_of_the_file_changes_nothing(order: list[int]) -> None:
    events = [
        launch(0, 1),
        launch(0, 1, thread=2),
        call("cudaMalloc", 0, of=1),
        kernel(5, 5000, 1),
        kernel(5, 7, 2),
        kernel(9, 1, 3),
    ]
    straight = of(events)

    found = of([events[each] for each in order])

    assert callers(events) == callers([events[each] for each in order])
    assert straight.gpu.end.tolist() == found.gpu.end.tolist()
    assert straight.calls.end.tolist() == found.calls.end.tolist()


def test_an_event_counts_as_launched_when_its_launch_began_or_else_when_it_started() -> None:
    found = of([launch(2, 1), kernel(50, 5, 1), kernel(60, 5)])

    assert [2000, 60_000] == launches.starts(found).tolist()
