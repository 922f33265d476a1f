"""The structure of a trace: attribution, devices, what is in the window."""

import pytest

from tests.farm.trace.analysis.traces import (
    GEMM,
    WORK,
    call,
    copy,
    gathered,
    kernel,
    launch,
    launched,
    op,
    step,
)


def test_one_launch_in_the_file_makes_all_attribution_by_launch() -> None:
    assert "launch" == gathered([launch(0, 1), kernel(10, 5), kernel(20, 5)]).attribution


def test_without_a_launch_kernels_count_where_they_ran() -> None:
    assert "kernel_ts" == gathered([call("cudaMalloc", 0), kernel(10, 5)]).attribution


def test_the_trace_of_a_cpu_needs_no_launch() -> None:
    assert "launch" == gathered([op("a", 0, 5)]).attribution


def test_devices_are_numbered_by_their_number() -> None:
    found = gathered([kernel(3, 1, device=each) for each in (10, 9, "gpu", 1)])

    assert ["1", "9", "10", "gpu"] == found.devices
    assert [{"1": 0, "9": 1, "10": 2}.get(each, 3) for each in ("10", "9", "gpu", "1")] == [
        found.device[at] for at in _by_device(found)
    ]


def _by_device(found) -> list[int]:
    """Return which row is of each device, in the order of the test above."""
    outer = [found.trace.lanes[each].outer for each in found.gpu.lane.tolist()]
    return [outer.index(each) for each in ("10", "9", "gpu", "1")]


def test_a_device_is_the_argument_and_without_it_the_process() -> None:
    bare = kernel(3, 1) | {"pid": 3, "tid": "stream 7", "args": {}}

    assert ["0", "3"] == gathered([bare, kernel(5, 1)]).devices


def test_a_gpu_event_is_in_the_window_if_it_starts_in_it() -> None:
    """The first step is left out with all that it launched."""
    marks = [step(each, 100 * each, 100) for each in range(2)]

    found = gathered([*marks, *launched(20, 30, 1), *launched(120, 40, 2), kernel(30, 50, 99)])

    assert [False, False, True] == found.in_window.tolist()


def test_a_length_is_cut_at_the_end_of_the_window() -> None:
    marks = [step(each, 100 * each, 100) for each in range(2)]
    orphan = kernel(155, 50, 99, stream=8)

    found = gathered([*marks, *launched(20, 30, 1), *launched(120, 40, 2), orphan])

    assert [30_000, 40_000, 5_000] == found.length_ns.tolist()
    assert (50_000, 160_000) == (found.window.begin, found.window.end)


def test_a_host_event_is_in_the_window_if_it_starts_in_that_of_the_host() -> None:
    marks = [step(each, 100 * each, 100) for each in range(2)]
    ops = [op("before", 99, 50), op("at", 100, 1), op("last", 199, 50), op("after", 200, 1)]

    found = gathered([*marks, *launched(20, 30, 1), *launched(120, 40, 2), *ops])

    assert [False, True, True, False] == found.in_host_window(found.ops).tolist()


def test_kernels_have_the_kind_of_their_name_and_copies_are_no_kernels() -> None:
    found = gathered([kernel(3, 1, name=GEMM), kernel(5, 1, name=WORK), copy(9, 1)])

    assert ["gemm", "other"] == found.category[:2].tolist()
    assert ["yes", "unknown"] == found.unit[:2].tolist()
    assert [True, True, False] == found.is_kernel.tolist()


@pytest.mark.parametrize("word", ["unphased", "unattributed", "forward"])
def test_a_span_with_a_name_of_ours_makes_no_second_phase(word: str) -> None:
    found = gathered([op("a", 0, 5), step(1, 0, 5) | {"name": f"step/{word}"}])

    assert 1 == len([each for each in found.words if each == word])
