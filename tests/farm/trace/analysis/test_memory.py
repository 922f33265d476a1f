"""Peaks of device memory, as totals tell them or as changes add up."""

from itertools import permutations

import pytest

from farm.trace.analysis.memory import Peaks, peaks
from tests.farm.trace.analysis.traces import made, memory, op, trace

CUDA, HIP, HOST = 1, 6, 0


def of(*events):
    return peaks(trace([op("a", 0, 1), *events]).allocations)


def total(time: float, allocated: int, reserved: int, kind: int = CUDA):
    return memory(
        time, Bytes=1, Total_Allocated=allocated, Total_Reserved=reserved, Device_Type=kind
    )


def change(time: float, size: int, kind: int = CUDA, device: int = 0):
    return memory(time, Bytes=size, Device_Type=kind, Device_Id=device)


@pytest.mark.parametrize("kind", [CUDA, HIP])
def test_the_peaks_are_the_largest_totals_of_devices(kind: int) -> None:
    found = of(total(1, 10, 80, kind), total(2, 70, 75, kind), total(3, 900, 900, HOST))

    assert Peaks(70, 80, None) == found


def test_totals_count_more_than_changes() -> None:
    assert Peaks(10, 80, None) == of(total(1, 10, 80), change(2, 5000))


def test_without_totals_the_running_sum_of_all_changes_counts() -> None:
    """In the order of time, whatever that of the file."""
    changes = [change(1, 100), change(2, -40), change(3, 70), change(4, -130)]

    for order in permutations(changes):
        assert Peaks(None, None, 130) == of(*order)


def test_changes_of_one_instant_count_together() -> None:
    assert 100 == of(change(1, 100), change(2, -60), change(2, 60)).relative
    assert 100 == of(change(1, 100), change(2, 60), change(2, -60)).relative


def test_each_device_has_a_sum_of_its_own() -> None:
    assert 100 == of(change(1, 100), change(2, 90, device=1)).relative


def test_more_freed_than_allocated_is_no_peak_below_nothing() -> None:
    assert 0 == of(change(1, -100), change(2, 50)).relative


@pytest.mark.parametrize("events", [[], [change(1, 100, HOST)], [memory(1, Bytes=5)]])
def test_without_events_of_a_device_nothing_is_known(events) -> None:
    assert Peaks(None, None, None) == of(*events)


@pytest.mark.seed("S4.60")
def test_the_peak_is_told_in_bytes_and_in_decimal_megabytes() -> None:
    found = made([op("a", 0, 1), total(1, 6_629_508_096, 12_782_141_440)]).analysis

    assert 6_629_508_096 == found.metrics["peak_allocated_bytes"]
    assert 12_782_141_440 == found.metrics["peak_reserved_bytes"]
    assert 6629.508096 == found.peak_vram_mb == found.metrics["peak_vram_mb"]


def test_a_peak_that_no_event_tells_is_null_with_its_reason() -> None:
    found = made([op("a", 0, 1)]).analysis

    assert found.peak_vram_mb is None
    assert found.null_reasons["peak_vram_mb"].startswith("not_probed")
