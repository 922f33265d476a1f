"""The window of a trace, case by case, and who owns what in it."""

import numpy as np
import pytest

from farm.trace.analysis import windows
from tests.farm.trace.analysis.traces import (
    Event,
    copy,
    event,
    gathered,
    kernel,
    launch,
    launched,
    op,
    step,
    trace,
)


def of(events: list[Event]) -> windows.Window:
    return gathered(events).window


def ran_ahead(n: int) -> list[Event]:
    """Steps of 2 ms on the host, each of which launches 10 ms for the device."""
    return [
        one
        for each in range(n)
        for one in (
            step(each, 2000 * each, 2000),
            launch(2000 * each + 5, each + 1),
            kernel(100 + 10_000 * each, 10_000, each + 1),
        )
    ]


def test_with_two_steps_the_window_is_from_the_end_of_the_first_to_that_of_the_last() -> None:
    """On the clock of the device, whatever the host says."""
    found = of(ran_ahead(6))

    assert (10_100_000, 60_100_000) == (found.begin, found.end)
    assert (2_000_000, 12_000_000) == (found.host_begin, found.host_end)
    assert (5, "gpu_period") == (found.n, found.source)
    assert (10_000_000,) * 5 == found.step_ns


def test_a_step_that_ends_before_its_predecessor_ends_with_it() -> None:
    """The end of a step is the running maximum."""
    late = [step(0, 0, 10), launch(1, 1), kernel(5, 100, 1)]
    early = [step(1, 10, 10), launch(11, 2), kernel(20, 5, 2, stream=8)]
    last = [step(2, 20, 10), launch(21, 3), kernel(150, 50, 3)]

    found = of([*late, *early, *last])

    assert (105_000, 200_000) == (found.begin, found.end)
    assert (0, 95_000) == found.step_ns


def test_steps_that_own_nothing_are_no_steps_of_the_device() -> None:
    """Of five steps the second and the fourth launch something: one period."""
    marks = [step(each, 100 * each, 100) for each in range(5)]

    found = of([*marks, *launched(150, 60, 1), *launched(350, 60, 2)])

    assert (210_000, 410_000, 1) == (found.begin, found.end, found.n)
    assert (200_000, 400_000) == (found.host_begin, found.host_end)


def test_copies_belong_to_a_step_as_kernels_do() -> None:
    marks = [step(each, 100 * each, 100) for each in range(2)]
    calls = [launch(10, 1), launch(110, 2)]

    found = of([*marks, *calls, copy(20, 10, 1), copy(120, 300, 2)])

    assert (30_000, 420_000) == (found.begin, found.end)


@pytest.mark.parametrize(("length", "end"), [(20, 1000_000), (2000, 2500_000)])
def test_one_step_is_the_window_up_to_the_end_of_its_work(length: float, end: int) -> None:
    """Also if the other steps launch nothing."""
    found = of([step(1, 0, 1000), step(2, 1000, 1000), launch(490, 1), kernel(500, length, 1)])

    assert (0, end) == (found.begin, found.end)
    assert (0, 1000_000) == (found.host_begin, found.host_end)
    assert (1, "one_step", (end,)) == (found.n, found.source, found.step_ns)


def test_without_steps_the_window_is_all_that_the_device_did() -> None:
    found = of([launch(3, 1), kernel(100, 50, 1), copy(300, 20, 1), op("a", 0, 9000)])

    assert (100_000, 320_000, 1) == (found.begin, found.end, found.n)
    assert (3_000, 320_000) == (found.host_begin, found.host_end)
    assert ("gpu_span", (220_000,)) == (found.source, found.step_ns)


def test_a_launch_after_the_first_kernel_does_not_shorten_the_window_of_the_host() -> None:
    found = of([kernel(100, 50), launch(120, 1), kernel(200, 50, 1)])

    assert (100_000, 250_000) == (found.host_begin, found.host_end)


def test_work_that_no_step_owns_is_as_without_steps() -> None:
    """All of it was launched before the first step."""
    found = of([launch(0, 1), step(1, 50, 100), kernel(60, 40, 1)])

    assert ("gpu_span", 60_000, 100_000) == (found.source, found.begin, found.end)


def test_on_a_cpu_the_first_of_several_steps_is_left_out() -> None:
    marks = [step(each, start, length) for each, start, length in ((1, 0, 900), (2, 900, 300))]

    found = of([*marks, step(3, 1300, 500)])

    assert (900_000, 1_800_000) == (found.begin, found.end) == (found.host_begin, found.host_end)
    assert (2, "cpu_step", (300_000, 500_000)) == (found.n, found.source, found.step_ns)


def test_on_a_cpu_one_step_is_the_window() -> None:
    found = of([step(1, 100, 900), op("a", 0, 5000)])

    assert (100_000, 1_000_000, 1, "cpu_step") == (found.begin, found.end, found.n, found.source)


def test_on_a_cpu_without_steps_the_window_is_all_that_the_host_did() -> None:
    found = of([op("a", 100, 900), op("b", 500, 2000), event("cuda_runtime", "x", 50, 1)])

    assert (50_000, 2_500_000, 1, "cpu_span") == (found.begin, found.end, found.n, found.source)


def test_of_steps_with_one_number_the_earliest_counts() -> None:
    """Whether annotations or operators mark them, on any thread."""
    twice = [step(1, 100, 10), step(1, 50, 10, thread=2), step(2, 60, 10)]
    old = event("cpu_op", "ProfilerStep#3", 70, 10)

    found = windows.steps(trace([*twice, old]))

    assert [50_000, 60_000, 70_000] == found.start.tolist()


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000])
def test_a_step_with_an_absurd_number_is_no_step(number: str) -> None:
    found = gathered([event("user_annotation", f"ProfilerStep#{number}", 0, 10)])

    assert 0 == found.steps.start.size


def test_a_step_holds_the_instants_from_its_start_up_to_before_its_end() -> None:
    found = windows.steps(trace([step(1, 10, 10), step(2, 30, 10)]))

    asked = np.array([9_999, 10_000, 19_999, 20_000, 30_000, 40_000])
    assert [-1, 0, 0, -1, 1, -1] == found.holding(asked).tolist()


def test_a_step_owns_what_was_launched_in_it_wherever_that_runs() -> None:
    """By its time the second kernel runs in the first step of the host, by its launch in none."""
    marks = [step(0, 0, 100), step(1, 100, 100)]

    found = gathered([*marks, launch(90, 1), kernel(150, 10, 1), kernel(50, 10, 99)])

    assert [-1, 0] == found.owner.tolist()


def test_without_any_launch_the_own_start_counts() -> None:
    """`kernel_ts`, even where another call has the correlation."""
    marks = [step(0, 0, 100), step(1, 100, 100)]
    prior = event("cuda_runtime", "cudaMemcpyAsync", 10, 1) | {"args": {"correlation": 1}}

    found = gathered([*marks, prior, kernel(150, 10, 1), kernel(50, 10)])

    assert "kernel_ts" == found.attribution
    assert [0, 1] == found.owner.tolist()
