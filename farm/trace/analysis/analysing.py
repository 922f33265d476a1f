"""From a trace to its analysis, the one document that every verb reads."""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from msgspec import structs, to_builtins

from farm.schema import null_paths
from farm.trace.analysis import tables, timings
from farm.trace.analysis.diagnostics import diagnostics
from farm.trace.analysis.figures import Figures, figures
from farm.trace.analysis.gathering import Gathered, gather
from farm.trace.analysis.known import Known
from farm.trace.analysis.metrics import Metrics
from farm.trace.analysis.quality import confidence, quality
from farm.trace.analysis.record import Analysis, Over
from farm.trace.analysis.tables import PhaseRow
from farm.trace.reading.reader import Trace

Value = float | int | bool | str | None
_MB: Final = 1e6  # as the original's
_CAPTURED: Final = "not_probed: a trace does not tell; a capture does"
_OF_CAPTURE: Final = (
    *("img_per_s", "throughput_img_s", "latency_p50_ms", "latency_p90_ms", "latency_p99_ms"),
    *("nms_ms", "model", "mode"),
)
_NUMBERS: Final = (
    *("step_ms", "dataload_ms", "dataload_frac", "gpu_util", "gpu_util_raw", "mean_kernel_us"),
    *("cuda_mallocs_per_step", "launches_per_step", "kernels_per_step", "unique_kernels"),
    *("tensorcore_pct", "host_overhead_ms_per_step", "gpu_busy_ms_per_step", "memcpy_ms_per_step"),
)
_RENAMED: Final = {
    "host_overhead_ms_per_step": "host_overhead_ms",
    "gpu_busy_ms_per_step": "gpu_busy_ms",
    "memcpy_ms_per_step": "memcpy_ms",
}
_WALL: Final = "wall_ms_per_step"
_OF_STEPS: Final = (
    *("cpu_window_ms", "kernel_sum_over_cpu_window", "kernel_union_over_cpu_window"),
    "step_shift_pct",
)
_UNITS: Final = "not_applicable: the device has no matrix units, or nothing here could use them"
_NO_LAUNCH: Final = "not_applicable: no launch is recorded"
_OTHERS: Final = {
    **dict.fromkeys(("tensorcore_pct", "tensorcore_unknown_pct", "tensorcore_of_gemm_pct"), _UNITS),
    **dict.fromkeys(("launch_to_start_us_p50", "launch_api_us_p50"), _NO_LAUNCH),
    "occupancy_zero_pct": "not_probed: no kernel tells its occupancy",
}


class Analysed(NamedTuple):
    """An analysis with what it was made of, for what only the events can answer."""

    analysis: Analysis
    found: Gathered
    figures: Figures


def analysed(
    trace: Trace, *, name: str, most: int = timings.MOST, known: Known | None = None
) -> Analysed:
    """Return the analysis of a trace. name: what it is called in there; most: events that it keeps,
    and where they are more, none; known: what its capture knows better.
    """
    found = gather(trace)
    made = figures(found, known)
    doubts, metrics = quality(found, made), made.metrics
    phases = tables.phase_rows(found)
    values = _metrics(made, phases)
    words = [each.phase for each in phases]
    analysis = Analysis(
        trace=name,
        model=None,
        mode=None,
        bound=made.bound.word,
        bound_why=made.bound.why,
        reasons=list(made.bound.reasons),
        confidence=confidence(doubts.flags),
        attribution=found.attribution,
        inferred_forward=found.inferred,
        img_per_s=None,
        memory_pressure=made.bound.word == "memory-pressure",
        peak_vram_mb=_mb(metrics.peak_allocated_bytes),
        window=Over(wall_ms=found.window.length_ns / 1e6, real_steps=found.window.n),
        metrics=values,
        categories=tables.category_rows(found),
        phases=phases,
        kernels=tables.kernel_rows(found),
        kernels_by_phase={each: tables.kernel_rows(found, phase=each) for each in words},
        ops=tables.op_rows(found, made),
        ops_by_phase={each: tables.op_rows(found, made, phase=each) for each in words},
        counts=made.counts._asdict(),
        diagnostics=diagnostics(found),
        quality=doubts,
        null_reasons={},
        **_beside(metrics),
    )
    return Analysed(_timed(_with_reasons(analysis, made), found, most), found, made)


def _beside(metrics: Metrics) -> dict[str, Any]:
    """Return the numbers that stand in the document itself, by the names of the original."""
    given = structs.asdict(metrics)
    return {name: given[_RENAMED.get(name, name)] for name in _NUMBERS}


def _metrics(made: Figures, phases: list[PhaseRow]) -> dict[str, Value]:
    """Return every number by the name that `get` knows it by."""
    values: dict[str, Value] = {
        name: each
        for name, each in structs.asdict(made.metrics).items()
        if name != "gpu_util_by_device"
    }
    values |= {f"gpu_util_{device}": v for device, v in made.metrics.gpu_util_by_device.items()}
    values |= {
        "bound": made.bound.word,
        "memory_pressure": made.bound.word == "memory-pressure",
        "peak_vram_mb": _mb(made.metrics.peak_allocated_bytes),
    }
    values |= dict.fromkeys(_OF_CAPTURE[:-2])
    told = {
        name: each
        for row in phases
        for name, each in (
            (f"{row.phase}_ms", row.wall_ms_per_step),
            (f"{row.phase}_gpu_ms", row.gpu_ms_per_step),
            (f"{row.phase}_wall_ms", row.wall_ms_per_step),
            (f"{row.phase}_kernels", row.kernels_per_step),
            (f"{row.phase}_ops", row.ops_per_step),
        )
    }
    # A file may call a phase as it likes, also `step`: no number of the trace gives way to that.
    return values | {name: each for name, each in told.items() if name not in values}


def _with_reasons(analysis: Analysis, made: Figures) -> Analysis:
    """Return it with the reason of every null in it."""
    words = {each.phase for each in analysis.phases}
    paths = null_paths(to_builtins(analysis))
    reasons = {each: _reason(each, made, words) for each in paths}
    return structs.replace(analysis, null_reasons=reasons)


def _timed(analysis: Analysis, found: Gathered, most: int) -> Analysis:
    """Return it with the events of the window; a reason where they are too many to keep."""
    kept = timings.document(found, most=most)
    why = f"not_supported: more than {most} events; the trace itself holds them"
    reasons = analysis.null_reasons | ({"timings": why} if kept is None else {})
    return structs.replace(analysis, timings=kept, null_reasons=reasons)


def _reason(path: str, made: Figures, phases: Collection[str]) -> str:
    name = path.rpartition(".")[2]
    if name in _OF_CAPTURE:
        return _CAPTURED
    if name == "step_ms_cv":
        return "single_sample"
    if name.startswith("peak_"):
        return "not_probed: the trace tells no memory of a device"
    if name == _WALL or name.removesuffix("_ms").removesuffix("_wall") in phases:
        return "not_applicable: no span on the host is of this phase"
    if not made.counts.steps and name in _OF_STEPS:
        return "not_applicable: no step is marked"
    if not made.counts.kernels:
        return "not_applicable: the trace has no kernel of a GPU"
    if name.startswith("idle_") and made.skewed:
        return "error: clock skew"
    return _OTHERS.get(name, "not_applicable: no kernel is in the window")


def _mb(size: int | None) -> float | None:
    return None if size is None else size / _MB
