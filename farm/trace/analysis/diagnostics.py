"""Numbers of a whole file that show how it was taken, and what is odd about it."""

from typing import Final

import numpy as np
from msgspec import Struct

from farm.trace.analysis import intervals, measures
from farm.trace.analysis.gathering import Gathered
from farm.trace.analysis.launches import MISSING

_US: Final = 1e3  # ns
_MS: Final = 1e6


class Diagnostics(Struct, frozen=True, kw_only=True):
    """Of the whole file, in its window or not; None where nothing of the kind is in it.

    launch_to_start: from the start of a call to that of its kernel. step_shift: kernel time that
    starts in another host step than its launch. …_over_cpu_window: of all kernels, over the host
    steps from the first to the last. occupancy_zero: kernels that carry 0; never judge by it.
    """

    launch_to_start_us_p50: float | None
    launch_api_us_p50: float | None
    step_shift_pct: float | None
    cpu_window_ms: float | None
    kernel_sum_over_cpu_window: float | None
    kernel_union_over_cpu_window: float | None
    active_over_gpu_span: float | None
    occupancy_zero_pct: float | None
    stream_overlap_ms: float
    file_tensorcore_pct: float | None
    file_tensorcore_unknown_pct: float | None
    file_phases_pct: dict[str, float]


def diagnostics(found: Gathered) -> Diagnostics:
    """Return them."""
    launches, gpu, kernel = found.launches, found.gpu, found.is_kernel
    length = gpu.end - gpu.start
    whole = int(length[kernel].sum())
    known = kernel & (launches.launch != MISSING)
    after = gpu.start[known] - launches.calls.start[launches.launch[known]]
    calls = (launches.calls.end - launches.calls.start)[launches.is_launch]
    shifted = kernel & (found.owner >= 0) & (found.steps.holding(gpu.start) != found.owner)
    occupancy = gpu.occupancy[kernel]
    occupancy = occupancy[~np.isnan(occupancy)]
    span = int(gpu.end.max() - gpu.start.min()) if gpu.start.size else 0
    active = intervals.total(intervals.union(gpu.start, gpu.end))

    def of_time(chosen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> float | None:
        return 100 * int(length[kernel & chosen].sum()) / whole if whole else None

    phases = {word: of_time(found.phase == at) for at, word in enumerate(found.words)}
    return Diagnostics(
        launch_to_start_us_p50=float(np.median(after)) / _US if after.size else None,
        launch_api_us_p50=float(np.median(calls)) / _US if calls.size else None,
        step_shift_pct=of_time(shifted) if found.steps.start.size else None,
        **_over_steps(found),
        active_over_gpu_span=active / span if span else None,
        occupancy_zero_pct=100 * float(np.mean(occupancy == 0)) if occupancy.size else None,
        stream_overlap_ms=int(measures.overlaps(found).sum()) / _MS,
        file_tensorcore_pct=of_time(found.unit == "yes"),
        file_tensorcore_unknown_pct=of_time(found.unit == "unknown"),
        file_phases_pct={word: share for word, share in phases.items() if share},
    )


def _over_steps(found: Gathered) -> dict[str, float | None]:
    """Return what a reader by host time would say: the sum of all streams, and their union."""
    names = ("cpu_window_ms", "kernel_sum_over_cpu_window", "kernel_union_over_cpu_window")
    if not found.steps.start.size:
        return dict.fromkeys(names)
    begin, end = int(found.steps.start.min()), int(found.steps.end.max())
    gpu, kernel = found.gpu, found.is_kernel
    begun = kernel & (gpu.start >= begin) & (gpu.start < end)
    busy = intervals.clip(intervals.union(gpu.start[kernel], gpu.end[kernel]), begin, end)
    length = end - begin
    if not kernel.any() or not length:
        return dict.fromkeys(names) | {"cpu_window_ms": length / _MS}
    values = (
        length / _MS,
        int((gpu.end - gpu.start)[begun].sum()) / length,
        intervals.total(busy) / length,
    )
    return dict(zip(names, values, strict=True))
