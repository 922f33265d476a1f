"""Memory, energy and device time over the repeats of a job."""

import msgspec
import numpy as np
import pytest

from tests.workers.make import MIB, arrays, record
from workers import figures, resources
from workers.energy import absent
from workers.figures import Taken
from workers.record import CudaPeaks, DeviceReading, EnergyReading, MemoryReading


def taken(index: int = 0, *, gpu_ms: float | None = None, **changes: object) -> Taken:
    found = dict(arrays(seed=index))
    if gpu_ms is not None:
        found["gpu_time_ns"] = np.full(50, int(gpu_ms * 1e6))
        found["enqueue_ns"] = np.full(50, 100_000)
    made = record(index, **changes)
    return figures.taken(made, found, batch=4, neighbours=())


def peaks(index: int, allocated: int | None) -> CudaPeaks:
    reasons = {} if allocated is not None else {"allocated_peak_bytes": "not_probed"}
    return CudaPeaks(
        visible_index=index,
        allocated_peak_bytes=allocated,
        reserved_peak_bytes=allocated,
        requested_peak_bytes=None,
        inactive_split_peak_bytes=0,
        alloc_retries=0,
        reasons={**reasons, "requested_peak_bytes": "not_supported: another allocator"},
    )


def memory(*cuda: CudaPeaks) -> MemoryReading:
    return MemoryReading(
        rss_after_load_bytes=100 * MIB,
        rss_peak_bytes=130 * MIB,
        rss_peak_lifetime_bytes=150 * MIB,
        pss_bytes=90 * MIB,
        cuda=list(cuda) or None,
    )


def window(joules: float) -> EnergyReading:
    return EnergyReading(
        energy_gross_j=joules,
        energy_net_j=joules / 2,
        energy_per_iteration_j=joules / 100,
        energy_per_item_j=joules / 400,
        power_mean_w=joules / 5,
        power_idle_w=joules / 10,
        window_s=5.0,
        update_period_ms=20.0,
        energy_method="counter",
        energy_scope="device",
        temperature_before_c=40.0,
        temperature_after_c=41.0,
        windows=1,
        iterations=100,
        edge_j=0.1,
        reasons={"energy_uncertainty_j": "single_repeat"},
    )


def test_a_job_without_a_cuda_device_has_no_field_of_one() -> None:
    block, nulls = resources.memory([taken()])

    assert block.cuda_allocated_peak_bytes is msgspec.UNSET
    assert {} == nulls


@pytest.mark.seed("S1.30")
def test_device_memory_is_the_allocators_peak_by_visible_device() -> None:
    """Of two devices each, and the larger as the total; what is not counted is null."""
    used = [
        taken(0, memory=memory(peaks(0, 10 * MIB), peaks(1, 30 * MIB))),
        taken(1, memory=memory(peaks(0, 20 * MIB), peaks(1, 25 * MIB))),
    ]

    block, nulls = resources.memory(used)

    assert 30 * MIB == block.cuda_allocated_peak_bytes
    assert {"0": 20 * MIB, "1": 30 * MIB} == block.cuda_allocated_peak_bytes_by_visible_device
    assert block.cuda_requested_peak_bytes is None
    assert {"cuda_requested_peak_bytes": "not_supported: another allocator"} == nulls


def test_a_device_whose_peak_is_unknown_is_null_and_not_zero() -> None:
    block, nulls = resources.memory([taken(memory=memory(peaks(0, None)))])

    assert {"0": None} == block.cuda_allocated_peak_bytes_by_visible_device
    assert "not_probed" == nulls["cuda_allocated_peak_bytes"]
    assert "not_probed" == nulls["cuda_allocated_peak_bytes_by_visible_device.0"]


def test_energy_is_the_median_of_the_windows() -> None:
    used = [taken(i, energy=window(100.0 + i)) for i in range(3)]

    block, nulls = resources.energy(used, wanted=3)

    assert block is not None
    assert (101.0, 3) == (block.energy_gross_j, block.windows)
    assert {} == nulls


def test_energy_that_nobody_asked_for_or_that_cannot_be_had_is_null() -> None:
    """With the reason of each."""
    reason = "no_permission: energy_uj cannot be read"

    other = taken(reasons={"energy": "not_supported: no counter of this device is read"})

    assert (None, {"": "not_requested"}) == resources.energy([taken()], wanted=1)
    assert (None, {"": other.record.reasons["energy"]}) == resources.energy([other], wanted=1)
    assert (None, {"": reason}) == resources.energy([taken(energy=absent(reason))], wanted=1)


def test_the_first_repeat_that_says_why_there_is_no_energy_is_heard() -> None:
    """It need not be the first of all: energy that was asked for is never `not_requested`."""
    broke = taken(1, reasons={"energy": "phase_failed: RuntimeError: no"})

    assert (None, {"": "phase_failed: RuntimeError: no"}) == (
        resources.energy([taken(), broke], wanted=2)
    )


def test_device_time_is_the_median_of_process_medians() -> None:
    on = DeviceReading(enqueue_bound=False, reliable=True)
    used = [taken(i, gpu_ms=5.0 + i, device=on) for i in range(3)]

    block, nulls = resources.gpu_time(used)

    assert block is not None
    assert (6.0, 0.1, 150, True) == (block.p50_ms, block.enqueue_p50_ms, block.n, block.reliable)
    assert {} == nulls


def test_device_time_that_cannot_be_had_is_null_with_the_childs_reason() -> None:
    none = taken(reasons={"gpu_time": "not_supported: this device has no events"})
    blocked = DeviceReading(enqueue_bound=True, reliable=False, reason="below_resolution: a step")

    assert (None, {"": "not_supported: this device has no events"}) == resources.gpu_time([none])
    block, nulls = resources.gpu_time([_no(blocked)])
    assert block is not None
    assert (None, True) == (block.p50_ms, block.enqueue_bound)
    assert "below_resolution: a step" == nulls["p50_ms"]


def _no(reading: DeviceReading) -> Taken:
    found = {**arrays(), "gpu_time_ns": np.array([]), "enqueue_ns": np.full(5, 1000)}
    return figures.taken(record(device=reading), found, batch=4, neighbours=())
