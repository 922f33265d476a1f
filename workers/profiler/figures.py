"""What a cost and a latency come to, by the names of a course module; every null has its reason."""

from collections.abc import Mapping
from typing import Any, Final

from farm.hardware import changes, gflops_per_second, heuristic_bound, memory_bandwidth_mbs
from farm.schema import null_paths
from workers.profiler.speed import Milliseconds
from workers.record import CostReading

MIB: Final = 2**20
Numbers = dict[str, Any]  # as the course module hands them out: by name, nested where it says so

_FLOPS: Final = ("flops_per_batch",)
_PEAK: Final = ("params_unique_bytes", "buffers_bytes", "activation_peak_bytes")
# The fields of a cost without which a number is null, by its path.
_RESTS_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "parameters": ("params_total",),
    **dict.fromkeys(("flops", "batch_flops", "gflops_per_second"), _FLOPS),
    "parameter_memory_mb": ("params_unique_bytes",),
    "activation_memory_mb": ("activation_peak_bytes",),
    **dict.fromkeys(("peak_memory_mb", "memory_bandwidth_mbs"), _PEAK),
    **dict.fromkeys(("heuristic_bound", "bottleneck"), (*_FLOPS, *_PEAK)),
    "compute_efficiency": _FLOPS,
    "quantisation.candidates": _FLOPS,
    "quantisation.modelled_int8_bytes": ("params_total",),
    "quantisation.actual_bytes": ("params_unique_bytes",),
}
_OTHERWISE: Final = {
    "latency_interval_ms": "below_resolution: fewer than six effective samples",
    "compute_efficiency": "not_probed: no spec gives the peak of this device in this precision",
}


def with_reasons(
    found: Numbers, reading: CostReading, more: Mapping[str, str] | None = None
) -> Numbers:
    """Return the numbers with `null_reasons`: why each null among them is one, by its path.

    more: reasons of what no cost is behind.
    """
    why = {path: _reason(path, reading.reasons) for path in null_paths(found)}
    return {**found, "null_reasons": why | dict(more or {})}


def per_item(flops: int, batch: int) -> int | float:
    """Return the FLOPs of one item, an integer wherever they are one."""
    return flops // batch if flops % batch == 0 else flops / batch


def figures(reading: CostReading, latency: Milliseconds, batch: int) -> Numbers:
    """Return what a call needs and takes; null without a reason yet."""
    flops = reading.flops_per_batch
    return {
        "parameters": reading.params_total,
        "flops": None if flops is None else per_item(flops, batch),
        "batch_flops": flops,
        "flops_status": reading.flops_status,
        "uncounted_ops": reading.uncounted_ops,
        "latency_ms": float(latency),
        "latency_interval_ms": None if latency.lo is None else [latency.lo, latency.hi],
        "gflops_per_second": None if flops is None else gflops_per_second(flops, latency),
        **memory(reading),
    }


def memory(reading: CostReading) -> Numbers:
    """Return MiB of parameters, of activations, and of both with the buffers."""
    parts = [getattr(reading, name) for name in _PEAK]
    weights, _, active = (None if each is None else each / MIB for each in parts)
    return {
        "parameter_memory_mb": weights,
        "activation_memory_mb": active,
        "peak_memory_mb": None if None in parts else sum(parts) / MIB,
    }


def heuristic(found: Numbers) -> Numbers:
    """Return what limits the call by the old rule, and the so-called bandwidth behind it."""
    gflops, peak = found["gflops_per_second"], found["peak_memory_mb"]
    mbs = None if peak is None else memory_bandwidth_mbs(peak * MIB, found["latency_ms"])
    bound = None if gflops is None or mbs is None else heuristic_bound(gflops, mbs)
    return {"memory_bandwidth_mbs": mbs, "heuristic_bound": bound, "bottleneck": bound}


def quantisation(reading: CostReading, kinds: Mapping[str, str]) -> Numbers:
    """Return which layers to quantise, by which rule, and what their weights would take.

    kinds: the type of every module by its name.
    """
    weights = reading.params_total
    return {
        "rule": changes.quantisation_rule("FLOPs"),
        "candidates": None if reading.flops_per_batch is None else _candidates(reading, kinds),
        "modelled_int8_bytes": None if weights is None else changes.modelled_bytes(weights, "int8"),
        "actual_bytes": reading.params_unique_bytes,
    }


def _candidates(reading: CostReading, kinds: Mapping[str, str]) -> list[str]:
    total = sum(reading.flops_by_layer.values()) or 1
    parts = [
        changes.Part(name, kinds.get(name, ""), 100 * each / total)
        for name, each in reading.flops_by_layer.items()
    ]
    words = reading.param_dtypes or {}
    precision = max(words, key=lambda each: words[each], default="unspecified")
    return [each.layer or kinds[""] for each in changes.candidates(parts, precision=precision)]


def _reason(path: str, reasons: Mapping[str, str]) -> str:
    known = (reasons[field] for field in _RESTS_ON.get(path, ()) if field in reasons)
    return next(known, _OTHERWISE.get(path, "not_supported"))
