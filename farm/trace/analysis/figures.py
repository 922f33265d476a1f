"""The metrics of a trace by name, from what was measured of its devices and its host."""

from typing import Any, Final, NamedTuple

import numpy as np

from farm.trace.analysis import bounds, clocks, measures
from farm.trace.analysis.bounds import Bound
from farm.trace.analysis.evidence import evidence
from farm.trace.analysis.gathering import Gathered
from farm.trace.analysis.idle import Idle
from farm.trace.analysis.known import Known
from farm.trace.analysis.measures import Counts, OfDevice, OfHost, mean
from farm.trace.analysis.memory import Peaks
from farm.trace.analysis.metrics import MS, Metrics


class Figures(NamedTuple):
    """All that a trace says in numbers, and what limits it. skewed: the clocks disagree."""

    metrics: Metrics
    bound: Bound
    counts: Counts
    devices: list[OfDevice]
    host: OfHost
    skewed: bool


def figures(found: Gathered, known: Known | None = None) -> Figures:
    """Return the numbers of a trace and its bound; known: what its capture knows better."""
    devices, host, counts = (
        measures.of_devices(found),
        measures.of_host(found),
        measures.counts(found),
    )
    skewed = clocks.disagree(found)
    peaks = measures.peaks(found)
    values = _times(found, host) | _of_host(found, host) | _memory(peaks)
    values |= _captured(known)
    step_ms, dataload_ms = values["step_ms"], values["dataload_ms"]
    values |= _of_devices(found, devices, skewed=skewed)
    busy = values["gpu_busy_ms"] or 0.0
    # The parts are means, and of data that come in bursts the median step has none of the waiting.
    whole_ms = step_ms if known is None or known.mean_ms is None else known.mean_ms
    values["host_overhead_ms"] = max(whole_ms - busy - dataload_ms, 0.0)
    metrics = Metrics(**values)
    seen = evidence(found, metrics, counts, devices, skewed=skewed, known=known)
    return Figures(metrics, bounds.bound(seen), counts, devices, host, skewed)


def _times(found: Gathered, host: OfHost) -> dict[str, Any]:
    window, steps = found.window, np.array(found.window.step_ns) / MS
    cv = float(steps.std(ddof=1) / steps.mean()) if steps.size >= 2 and steps.mean() else None
    mean_ms = window.length_ns / window.n / MS
    return {
        "step_ms": float(np.median(steps)),
        "step_ms_mean": mean_ms,
        "step_ms_cv": cv,
        "step_ms_source": window.source,
        "dataload_ms": host.dataload / window.n / MS,
        "dataload_frac": host.dataload / window.length_ns if window.length_ns else 0.0,
    }


def _captured(known: Known | None) -> dict[str, Any]:
    """Return the numbers of the clean steps, which stand in place of those of traced ones."""
    found: dict[str, Any] = {}
    if known is None:
        return found
    if known.step_ms is not None:
        found |= {"step_ms": known.step_ms, "step_ms_cv": known.step_cv}
        found["step_ms_source"] = "capture"
    if known.dataload_ms is not None:
        found |= {"dataload_ms": known.dataload_ms, "dataload_frac": known.dataload_frac}
    return found


def _of_host(found: Gathered, host: OfHost) -> dict[str, Any]:
    n, length = found.window.n, found.window.host_end - found.window.host_begin
    return {
        "launches_per_step": host.launches / n,
        "graph_launches_per_step": host.graph_launches / n,
        "cuda_mallocs_per_step": host.mallocs / n,
        "ops_per_step": host.ops / n,
        "ops_self_ms": host.op_ns / n / MS,
        "ops_total_ms": host.op_total_ns / n / MS,
        "op_cover": host.op_cover / length if length else 0.0,
    }


def _memory(peaks: Peaks) -> dict[str, Any]:
    return {
        "peak_allocated_bytes": peaks.allocated,
        "peak_reserved_bytes": peaks.reserved,
        "peak_relative_bytes": peaks.relative,
    }


_OF_GPU: Final = (
    *("gpu_busy_ms", "gpu_util_raw", "gpu_util", "gpu_active", "gpu_concurrency"),
    *("kernel_sum_ms", "mean_kernel_us", "exposed_comm_ms", "exposed_memcpy_ms", "memcpy_ms"),
    *("tensorcore_pct", "tensorcore_unknown_pct", "tensorcore_of_gemm_pct", "idle_ms"),
)


def _of_devices(found: Gathered, devices: list[OfDevice], *, skewed: bool) -> dict[str, Any]:
    kernels = found.is_kernel & found.in_window
    n, length = found.window.n, found.window.length_ns
    nothing = dict.fromkeys((*_OF_GPU, *(f"idle_{each}_ms" for each in Idle._fields)))
    counted = {
        "kernels_per_step": int(np.count_nonzero(kernels)) / n,
        "unique_kernels": int(np.unique(found.gpu.name[kernels]).size),
        "gpu_util_by_device": {},
    }
    if not found.is_kernel.any() or not length:
        return nothing | counted
    copies = ~found.is_kernel & found.in_window
    busy = mean([each.busy for each in devices])
    known = [each for each in devices if each.busy]
    lengths = found.length_ns
    return (
        nothing
        | counted
        | {
            "gpu_busy_ms": busy / n / MS,
            "gpu_util_raw": busy / length,
            "gpu_util": min(1.0, busy / length),
            "gpu_util_by_device": {each.device: min(1.0, each.busy / length) for each in devices},
            "gpu_active": mean([each.active for each in devices]) / length,
            "gpu_concurrency": mean([each.spread / each.busy for each in known]) if known else None,
            "kernel_sum_ms": mean([each.spread for each in devices]) / n / MS,
            "mean_kernel_us": float(lengths[kernels].mean()) / 1e3 if kernels.any() else None,
            "exposed_comm_ms": mean([each.free_comm for each in devices]) / n / MS,
            "exposed_memcpy_ms": mean([each.free_copy for each in devices]) / n / MS,
            "memcpy_ms": int(lengths[copies].sum()) / len(devices) / n / MS,
        }
        | _matrix_units(found)
        | (_idle(devices, n) if not skewed else {})
    )


def _idle(devices: list[OfDevice], n: int) -> dict[str, Any]:
    parts = {
        f"idle_{name}_ms": mean([getattr(each.idle, name) for each in devices]) / n / MS
        for name in Idle._fields
    }
    return parts | {"idle_ms": mean([sum(each.idle) for each in devices]) / n / MS}


def _matrix_units(found: Gathered) -> dict[str, Any]:
    """Return the shares of kernel time; none on a device that has no matrix units."""
    kernels, lengths = found.is_kernel & found.in_window, found.length_ns
    whole = int(lengths[kernels].sum())
    if not whole or not _has_matrix_units(found):
        return {}
    able = kernels & np.isin(found.category, ("gemm", "attention"))
    yes = int(lengths[kernels & (found.unit == "yes")].sum())
    could = int(lengths[able].sum())
    return {
        "tensorcore_pct": 100 * yes / whole,
        "tensorcore_unknown_pct": 100
        * int(lengths[kernels & (found.unit == "unknown")].sum())
        / whole,
        "tensorcore_of_gemm_pct": 100 * yes / could if could else None,
    }


def _has_matrix_units(found: Gathered) -> bool:
    """Tell if some device may have them: NVIDIA's came with compute capability 7."""
    majors = [each.get("computeMajor") for each in found.properties]
    return not majors or any(not isinstance(each, int) or each >= 7 for each in majors)
