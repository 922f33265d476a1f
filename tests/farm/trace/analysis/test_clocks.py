"""Whether the clocks of host and device agree."""

import pytest

from farm.trace.analysis import clocks
from tests.farm.trace.analysis.traces import Event, call, gathered, kernel, launch


def skewed(*events: Event) -> bool:
    return clocks.disagree(gathered(events))


def many(n: int, early: int, by: float) -> list[Event]:
    """Return n kernels, of which some start before their launch by some µs."""
    calls = [launch(1000 + 100 * each, each + 1) for each in range(n)]
    starts = [1000 + 100 * each + (-by if each < early else 5) for each in range(n)]
    return [*calls, *(kernel(at, 10, each + 1) for each, at in enumerate(starts))]


@pytest.mark.parametrize(("early", "expected"), [(0, False), (1, False), (2, True)])
def test_more_than_one_percent_of_work_that_starts_before_its_launch_is_skew(
    early: int, expected: bool
) -> None:
    """The device clock is early. Exactly one percent is none."""
    assert expected is skewed(*many(100, early, 2))


@pytest.mark.parametrize(("by", "expected"), [(1, False), (1.001, True)])
def test_a_microsecond_before_the_launch_is_no_skew(by: float, expected: bool) -> None:
    assert expected is skewed(*many(10, 5, by))


def waited(returns: float, *, name: str = "cudaDeviceSynchronize", **more: object) -> list[Event]:
    """Return work that ends at 1000, and a wait for it that returns then."""
    wait = call(name, 50, returns - 50)
    return [launch(10, 1), kernel(20, 980, 1), wait, *([more["beside"]] if more else [])]


@pytest.mark.parametrize(("returns", "expected"), [(1010, False), (900, False), (899.999, True)])
def test_a_wait_for_the_device_that_returns_before_its_work_ends_is_skew(
    returns: float, expected: bool
) -> None:
    """The device clock is late. A tenth of a millisecond stays."""
    assert expected is skewed(*waited(returns))


@pytest.mark.parametrize(
    "name", ["hipDeviceSynchronize", "cuCtxSynchronize", "muDeviceSynchronize"]
)
def test_other_waits_for_the_whole_device_tell_as_much(name: str) -> None:
    assert skewed(*waited(500, name=name))


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaEventSynchronize"])
def test_a_wait_for_a_part_of_the_device_tells_nothing(name: str) -> None:
    assert not skewed(*waited(500, name=name))


def test_work_that_was_launched_after_the_wait_began_is_not_waited_for() -> None:
    beside = [launch(60, 2, thread=2), kernel(1000, 5000, 2)]

    assert not skewed(*waited(1010), *beside)


def test_of_earlier_work_the_latest_end_counts() -> None:
    long = [launch(5, 2), kernel(20, 5000, 2, stream=8)]

    assert skewed(*waited(1010), *long)


def test_with_several_devices_nobody_knows_which_was_waited_for() -> None:
    assert not skewed(*waited(500), launch(5, 2), kernel(20, 5, 2, device=1))


def test_without_launches_nothing_tells() -> None:
    assert not skewed(kernel(20, 5), call("cudaDeviceSynchronize", 0, 1))
