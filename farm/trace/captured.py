"""The analysis of a capture: its trace, with what its clean passes and its stage timers say.

Where both tell a number, that of the clean pass stands: no profiler slowed it down.
"""

from collections.abc import Mapping
from statistics import fmean, median, stdev
from typing import Any, Final

from msgspec import UNSET, UnsetType, structs, to_builtins

from farm.schema import (
    Captured,
    Latency,
    Memory,
    Profile,
    Quality,
    SystemCard,
    Throughput,
    null_paths,
    validity,
)
from farm.stats import percentiles
from farm.trace import phased
from farm.trace.analysis.analysing import analysed
from farm.trace.analysis.known import Known
from farm.trace.analysis.quality import Confidence, confidence
from farm.trace.analysis.record import Analysis, Percentiles, PhaseGpu, Setting
from farm.trace.reading.reader import Trace
from farm.trace.untraced import untraced

_MS: Final = 1e6  # ns
_MB: Final = 1e6  # as the original's
_SLOWED: Final = 1.25  # times as long as a plain step
_TOP: Final = 10
_POINTS: Final = ("p50", "p90", "p99")
_NO_KERNEL: Final = "not_applicable: the trace has no kernel of a GPU"
_NO_GPU: Final = "not_applicable: no GPU computed"
_TRAINED: Final = "not_applicable: a training has no latency"
_SIDE: Final = "imgsz"  # which says nothing of a model that takes no images
_NOT_TRAINED: Final = "not_applicable: a training has no postprocessing"
_NO_NMS: Final = "not_applicable: the model brings no postprocessing of its own"
_NOT_TIMED: Final = "not_probed: its stages were not timed without the profiler"


def known(profile: Profile, beside: Captured) -> Known:
    """Return what the analysis of a trace takes from the clean passes instead."""
    memory, facts = profile.memory, profile.execution.resolved
    waits, plain = beside.waits_ns, beside.plain_ns
    held = int(facts.get("cuda_memory_bytes") or 0)
    reserved = memory.cuda_reserved_peak_bytes if isinstance(memory, Memory) else UNSET
    retries = memory.cuda_alloc_retries if isinstance(memory, Memory) else UNSET
    return Known(
        step_ms=median(plain) / _MS if plain else None,
        steps=len(plain),
        wall_ms=sum(plain) / _MS,
        step_cv=stdev(plain) / fmean(plain) if len(plain) > 1 and any(plain) else None,
        dataload_ms=fmean(waits) / _MS if waits else None,
        dataload_frac=sum(waits) / sum(plain) if waits and sum(plain) else None,
        stages=phased.stages(beside) if profile.job.workload.mode == "inference" else {},
        on_gpu="cuda_device" in facts,
        allocator_retries=retries if isinstance(retries, int) else 0,
        reserved=reserved / held if isinstance(reserved, int) and held else None,
    )


def analysis(
    trace: Trace | None,
    profile: Profile,
    beside: Captured,
    *,
    card: SystemCard | None,
    asked: Mapping[str, Setting],
    name: str,
) -> Analysis:
    """Return the analysis of a capture, without its trace where none was taken.

    asked: what was asked for in words, which stands first in `config`. card: None where nobody has
    it any more. name: of the trace. Raises Bad if nothing in the trace can be analysed.
    """
    seen = known(profile, beside)
    base = untraced(seen) if trace is None else analysed(trace, name=name, known=seen).analysis
    return dressed(base, profile, beside, card=card, asked=asked)


def dressed(
    base: Analysis,
    profile: Profile,
    beside: Captured,
    *,
    card: SystemCard | None,
    asked: Mapping[str, Setting],
) -> Analysis:
    """Return an analysis with throughput, latency, stages, memory, doubts, configuration and card.

    base: of the trace, or `untraced`. asked: as of `analysis`.
    """
    inference = profile.job.workload.mode == "inference"
    numbers, reasons = _numbers(profile, beside)
    flags, phases = _flags(base, profile, beside), phased.phases(base, beside)
    intervals = _intervals(profile, beside)
    made = structs.replace(
        base,
        model=profile.job.workload.model.name,
        mode="inference" if inference else "training",
        img_per_s=numbers["img_per_s"],
        peak_vram_mb=numbers["peak_vram_mb"],
        metrics=base.metrics | numbers | phased.metrics(phases),
        quality=structs.replace(base.quality, flags=flags),
        confidence=_confidence(profile, flags),
        phases=phases,
        phases_gpu=[PhaseGpu(phase=p.phase, gpu_ms_per_step=p.gpu_ms_per_step) for p in phases],
        top_kernels=base.kernels[:_TOP],
        config=_config(profile, beside, card, asked),
        intervals={name: pair for name, (pair, _) in intervals.items()},
        latency=_latency(profile) if inference else UNSET,
        stages_ms=dict(phased.stages(beside)) if inference and beside.stages_ns else UNSET,
        card=UNSET if card is None else structs.replace(card, null_reasons={}),
    )
    reasons = phased.untimed(phases) | phased.placed(base, phases) | reasons
    reasons |= {f"intervals.{name}": why for name, (_, why) in intervals.items() if why}
    told = card.null_reasons if card is not None else {}
    reasons |= {f"card.{path}": why for path, why in told.items()}
    reasons |= {
        f"config.{name}": "not_probed" for name, each in made.config.items() if each is None
    }
    return reasoned(made, reasons, usual=_untraced(profile))


def _untraced(profile: Profile) -> str:
    """Return why a number of the device is not there: no trace, or nothing of a GPU in it."""
    why = profile.null_reasons.get("trace", _NO_KERNEL)
    return why if ":" in why else f"{why}: no trace was taken"


def reasoned(made: Analysis, reasons: Mapping[str, str], *, usual: str) -> Analysis:
    """Return it with the reason of each null in it, and no other; usual: where none is told."""
    paths = null_paths({**to_builtins(made), "null_reasons": {}})
    return structs.replace(made, null_reasons={path: reasons.get(path, usual) for path in paths})


# ── parts ────────────────────────────────────────────────────────────────────────────────────────


def _numbers(profile: Profile, beside: Captured) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the metrics that only a capture has, and the reasons of those that it has not."""
    flow, memory = profile.throughput, profile.memory
    rate = flow.throughput_items_per_s if isinstance(flow, Throughput) else None
    why_rate = profile.null_reasons.get("throughput.throughput_items_per_s", "not_requested")
    found: dict[str, Any] = {"img_per_s": rate, "throughput_img_s": rate}
    reasons = dict.fromkeys(found, why_rate)
    latency = _latency(profile) if profile.job.workload.mode == "inference" else UNSET
    for point in _POINTS:
        name = f"latency_{point}_ms"
        found[name] = getattr(latency, f"{point}_ms") if isinstance(latency, Percentiles) else None
        reasons[name] = _TRAINED
    post = phased.stages(beside).get("postprocess")
    found["nms_ms"] = post
    reasons["nms_ms"] = _NOT_TRAINED
    if profile.job.workload.mode == "inference":
        reasons["nms_ms"] = _NO_NMS if beside.pipeline == "plain" else _NOT_TIMED
    found["plain_steps"] = len(beside.plain_ns)
    found["plain_step_ms_mean"] = fmean(beside.plain_ns) / _MS if beside.plain_ns else None
    reasons["plain_step_ms_mean"] = "not_requested: no clean step was taken"
    found["trace_overhead"] = _overhead(beside)
    reasons["trace_overhead"] = _untraced(profile)
    peaks = (
        ("peak_allocated_bytes", "cuda_allocated_peak_bytes"),
        ("peak_reserved_bytes", "cuda_reserved_peak_bytes"),
    )
    for name, field in peaks:
        value = getattr(memory, field) if isinstance(memory, Memory) else UNSET
        found[name] = None if isinstance(value, UnsetType) else value
        reasons[name] = profile.null_reasons.get(f"memory.{field}", _NO_GPU)
    allocated = found["peak_allocated_bytes"]
    found["peak_vram_mb"] = None if allocated is None else allocated / _MB
    reasons["peak_vram_mb"] = reasons["peak_allocated_bytes"]
    reasons["step_ms_cv"] = "single_sample"
    told = {f"metrics.{name}": why for name, why in reasons.items()}
    told |= {name: reasons[name] for name in ("img_per_s", "peak_vram_mb")}
    return found, told


def _latency(profile: Profile) -> Percentiles | UnsetType:
    told = profile.latency
    if not isinstance(told, Latency):
        return UNSET
    return Percentiles(
        p50_ms=told.p50_ms,
        p90_ms=told.p90_ms,
        p99_ms=told.p99_ms,
        mean_ms=told.mean_ms,
        min_ms=told.min_ms,
        max_ms=told.max_ms,
        n=told.n,
    )


def _overhead(beside: Captured) -> float | None:
    """Return a traced step over a plain one."""
    if not beside.traced_ns or not beside.plain_ns or not median(beside.plain_ns):
        return None
    return median(beside.traced_ns) / median(beside.plain_ns)


def _flags(base: Analysis, profile: Profile, beside: Captured) -> list[str]:
    said = profile.quality.flags if isinstance(profile.quality, Quality) else []
    slowed = ["instrumented"] if (_overhead(beside) or 0.0) > _SLOWED else []
    return list(dict.fromkeys([*base.quality.flags, *slowed, *said]))


def _confidence(profile: Profile, flags: list[str]) -> Confidence:
    said = profile.quality.flags if isinstance(profile.quality, Quality) else []
    return "low" if validity(said) == "invalid" else confidence(flags)


def _intervals(
    profile: Profile, beside: Captured
) -> dict[str, tuple[tuple[float, float] | None, str]]:
    """Return the 95 % intervals of numbers within this process, or why there is none."""
    found: dict[str, tuple[tuple[float, float] | None, str]] = {}
    if beside.plain_ns:
        n = percentiles.published_n(beside.plain_ns, 50.0)
        pair = percentiles.interval(beside.plain_ns, 50.0, m=n)
        told = None if pair is None else (pair[0] / _MS, pair[1] / _MS)
        found["step_ms"] = told, "" if told else "below_resolution"
    latency = profile.latency
    if profile.job.workload.mode == "inference" and isinstance(latency, Latency):
        for point in _POINTS:  # that of the median needs several processes
            low, high = getattr(latency, f"{point}_lo_ms"), getattr(latency, f"{point}_hi_ms")
            whole = None if low is None or high is None else (low, high)
            why = profile.null_reasons.get(f"latency.{point}_lo_ms", "below_resolution")
            found[f"latency_{point}_ms"] = whole, "" if whole else why
    return found


def _config(
    profile: Profile, beside: Captured, card: SystemCard | None, asked: Mapping[str, Setting]
) -> dict[str, Setting]:
    workload, facts = profile.job.workload, profile.execution.resolved
    quality = profile.quality if isinstance(profile.quality, Quality) else None
    return {
        **{
            name: each for name, each in asked.items() if name not in beside.unused or name != _SIDE
        },
        **({"step": "plain"} if beside.plain_ns else {}),
        "item": workload.item,
        "batch": workload.batch,
        "precision": asked.get("precision", workload.precision),
        "model_digest": workload.model.digest,
        "device": facts.get("cuda_device") or profile.execution.device.name,
        **(_software(profile, card) if card is not None else {}),
        "pipeline": beside.pipeline,
        "unused": beside.unused,
        "notes": beside.notes,
        **({"neighbours": quality.neighbours} if quality and quality.neighbours else {}),
    }


def _software(profile: Profile, card: SystemCard) -> dict[str, Setting]:
    """Return the driver, `none` where no GPU computed, and what ran the model."""
    on_gpu = "cuda_device" in profile.execution.resolved
    told = card.stable.frameworks
    ran = f"torch {told.torch}"
    if profile.job.workload.backend == "onnx":
        ran = f"onnxruntime {told.onnxruntime}"
    return {"driver": card.stable.drivers.nvidia if on_gpu else "none", "framework": ran}
