"""What a job took besides its time on the host: memory, energy, and time on its device."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from msgspec import UNSET, UnsetType

from farm.schema import Energy, GpuTime, Memory, PassTelemetry, Telemetry, Throttle
from farm.stats import processes, spread
from workers.energy import combined
from workers.figures import Taken
from workers.record import CudaPeaks, Watched

_CUDA: Final = (
    *("allocated_peak_bytes", "reserved_peak_bytes", "requested_peak_bytes"),
    *("inactive_split_peak_bytes", "alloc_retries"),
)
_THROTTLES: Final = Throttle.__struct_fields__
_BY_DEVICE: Final = "cuda_allocated_peak_bytes_by_visible_device"
_ENERGY: Final = set(Energy.__struct_fields__)


def memory(repeats: Sequence[Taken]) -> tuple[Memory, dict[str, str]]:
    """Return the memory block: the largest reading of any repeat that counts, in bytes.

    Of several visible devices the totals are those of the one that held most.
    """
    readings = [each.record.memory for each in repeats if each.record.memory is not None]

    def largest(name: str) -> int | None:
        found = [getattr(each, name) for each in readings]
        return max((value for value in found if value is not None), default=None)

    after, peak = largest("rss_after_load_bytes"), largest("rss_peak_bytes")
    devices = [each for reading in readings for each in reading.cuda or ()]
    cuda, why_not = _cuda(devices)
    block = Memory(
        cpu_rss_after_load_bytes=after,
        cpu_rss_peak_bytes=peak,
        cpu_rss_peak_lifetime_bytes=largest("rss_peak_lifetime_bytes"),
        cpu_pss_bytes=largest("pss_bytes"),
        cpu_inference_delta_bytes=peak - after if peak is not None and after is not None else None,
        **cuda,
    )
    why = "not_supported" if readings else "phase_failed"
    nulls = {name: why for name in block.__struct_fields__ if getattr(block, name) is None}
    return block, nulls | why_not


def telemetry(repeats: Sequence[Taken]) -> tuple[Telemetry | UnsetType, dict[str, str]]:
    """Return what the device did in the passes of the repeats that count, absent on a CPU slot."""
    watched = [each for taken in repeats for each in taken.record.watched]
    if not watched:
        return UNSET, {}
    seen = [each.seen for each in watched]
    nulls = {
        f"passes.{at}.{path}": why
        for at, each in enumerate(watched)
        for path, why in each.reasons.items()
    }
    whole = {
        "sm_clock_median_hz": _middle(seen, "sm_clock_median_hz"),
        "sm_clock_p5_hz": _of(min, seen, "sm_clock_p5_hz"),
        "sm_clock_p95_hz": _of(max, seen, "sm_clock_p95_hz"),
        "mem_clock_median_hz": _middle(seen, "mem_clock_median_hz"),
        "temp_start_c": seen[0].temp_start_c,
        "temp_max_c": _of(max, seen, "temp_max_c"),
        "power_mean_w": _middle(seen, "power_mean_w"),
        "base_clock_hz": watched[0].base_clock_hz,
    }
    throttled = {name: _sum([getattr(each.throttle, name) for each in seen]) for name in _THROTTLES}
    nulls |= {name: _why(watched, name) for name, value in whole.items() if value is None}
    nulls |= {
        f"throttle.{name}": _why(watched, f"throttle.{name}")
        for name, value in throttled.items()
        if value is None
    }
    block = Telemetry(
        passes=seen,
        throttle=Throttle(**throttled),
        event_reasons=sorted({name for each in seen for name in each.event_reasons}),
        **whole,
    )
    return block, nulls


def _known(seen: Sequence[PassTelemetry], name: str) -> list[float]:
    return [value for each in seen if (value := getattr(each, name)) is not None]


def _middle(seen: Sequence[PassTelemetry], name: str) -> float | None:
    known = _known(seen, name)
    return float(np.median(known)) if known else None


def _of(
    which: Callable[[list[float]], float], seen: Sequence[PassTelemetry], name: str
) -> float | None:
    known = _known(seen, name)
    return which(known) if known else None


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum, None where one is not known: what is missing may be all of it."""
    known = [each for each in values if each is not None]
    return sum(known) if len(known) == len(values) else None


def _why(watched: Sequence[Watched], name: str) -> str:
    found = (each.reasons[name] for each in watched if name in each.reasons)
    return next(found, "not_probed")


def _cuda(devices: Sequence[CudaPeaks]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields of torch's allocator, none where the job had no such device."""
    if not devices:
        return {}, {}
    fields: dict[str, Any] = {}
    nulls: dict[str, str] = {}
    for name in _CUDA:
        known = [value for each in devices if (value := getattr(each, name)) is not None]
        fields[f"cuda_{name}"] = max(known, default=None)
        if not known:
            nulls[f"cuda_{name}"] = devices[0].reasons.get(name, "not_supported")
    by_device: dict[str, int | None] = {}
    for each in devices:
        at, value = str(each.visible_index), each.allocated_peak_bytes
        former = by_device.get(at)
        by_device[at] = value if former is None else max(former, value or 0)
    for at, value in by_device.items():
        if value is None:
            nulls[f"{_BY_DEVICE}.{at}"] = "not_probed"
    return {**fields, _BY_DEVICE: by_device}, nulls


def energy(repeats: Sequence[Taken], *, wanted: int) -> tuple[Energy | None, dict[str, str]]:
    """Return the energy block over one window a repeat; None where there is no energy at all.

    The reasons of its nulls by field, or under "" why there is none.
    """
    readings = [each.record.energy for each in repeats if each.record.energy is not None]
    if not readings:
        told = [each.record.reasons.get("energy", "") for each in repeats]
        return None, {"": next(filter(None, told), "not_requested")}
    found = combined(readings, wanted=wanted)
    if found.energy_gross_j is None:
        return None, {"": found.why}
    block = Energy(**{name: getattr(found, name) for name in Energy.__struct_fields__})
    return block, {name: why for name, why in found.reasons.items() if name in _ENERGY}


def gpu_time(repeats: Sequence[Taken]) -> tuple[GpuTime | None, dict[str, str]]:
    """Return the device-time block: the median of process medians, in ms; None without events.

    The reasons of its nulls by field, or under "" why there is none.
    """
    read = [each for each in repeats if each.record.device is not None]
    if not read:
        why = repeats[0].record.reasons.get("gpu_time", "not_supported")
        return None, {"": why}
    timed = [np.asarray(each.arrays["gpu_time_ns"]) / 1e6 for each in read]
    timed = [each for each in timed if each.size]
    queued = [np.asarray(each.arrays["enqueue_ns"]) / 1e6 for each in read]
    queued = [each for each in queued if each.size]
    head = processes.headline([float(np.median(each)) for each in timed]) if timed else None
    devices = [each.record.device for each in read if each.record.device is not None]
    pooled = np.concatenate(timed) if timed else None
    block = GpuTime(
        n=0 if pooled is None else int(pooled.size),
        p50_ms=None if head is None else head.value,
        p50_lo_ms=None if head is None else head.lo,
        p50_hi_ms=None if head is None else head.hi,
        std_ms=None if pooled is None else spread.std(pooled),
        enqueue_p50_ms=float(np.median([np.median(each) for each in queued])) if queued else None,
        enqueue_bound=any(each.enqueue_bound for each in devices),
        reliable=bool(timed) and all(each.reliable for each in devices),
    )
    why = next((each.reason for each in devices if each.reason), "phase_failed")
    reasons = dict.fromkeys(GpuTime.__struct_fields__, why)
    if head is not None:
        reasons |= {"p50_lo_ms": head.reason, "p50_hi_ms": head.reason, "std_ms": "single_sample"}
    return block, {name: reasons[name] for name in reasons if getattr(block, name) is None}
