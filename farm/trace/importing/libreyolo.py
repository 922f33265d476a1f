"""A `profile.json` of LibreYOLO as an analysis: its numbers, with what is wrong with them told.

Its utilisation is a sum over streams, its operators are timed with those inside them, its lists are
cut, and it says what limits a step where it cannot know. Source: `traces.md` §11, `seeds.md` §6.
"""

from typing import Any, Final

import numpy as np
from msgspec import UNSET, structs, to_builtins

from farm import schema
from farm.schema import null_paths
from farm.stats.spread import std
from farm.trace.analysis import kernels
from farm.trace.analysis.quality import Quality, confidence
from farm.trace.analysis.record import (
    Aggregation,
    Analysis,
    Over,
    Percentiles,
    PhaseGpu,
    Setting,
    Spread,
)
from farm.trace.analysis.tables import CategoryRow, KernelRow, OpRow, PhaseRow
from farm.trace.importing import limits
from farm.trace.importing.names import NAMES, REPORTED
from farm.trace.importing.original import Kernel, Op, Original, Phase, Value

_CUT: Final = 40  # rows of a phase that the tool keeps
_FEW_STEPS: Final = 3
# Numbers of a GPU by the names of the file; those of `metrics` differ in three.
_OF_GPU: Final = (
    *("gpu_util", "gpu_util_raw", "cuda_mallocs_per_step", "host_overhead_ms_per_step"),
    *("launches_per_step", "gpu_busy_ms_per_step", "mean_kernel_us", "kernels_per_step"),
    *("unique_kernels", "memcpy_ms_per_step", "tensorcore_pct", "peak_vram_mb"),
)
_BESIDE: Final = (*_OF_GPU, "step_ms", "img_per_s", "dataload_ms", "dataload_frac")
_IN_METRICS: Final = {
    "host_overhead_ms_per_step": "host_overhead_ms",
    "gpu_busy_ms_per_step": "gpu_busy_ms",
    "memcpy_ms_per_step": "memcpy_ms",
}
_PHASE_OF_GPU: Final = ("_gpu_ms", "_kernels")
_POINTS: Final = ("p50_ms", "p90_ms", "p99_ms")
_RATES: Final = ("img_per_s", "throughput_img_s")
_UNTOLD: Final = "not_probed: the tool does not tell"


def imported(data: bytes) -> Analysis:
    """Return what a `profile.json` of LibreYOLO says; raises Bad if it is none, or damaged."""
    found = schema.decode(data, Original)
    untold = limits.untold(found)
    plain = {name: getattr(found, name) for name in _BESIDE}
    if untold:
        plain |= dict.fromkeys(_OF_GPU)
    if found.img_per_s_trials:
        plain["img_per_s"] = float(np.mean(found.img_per_s_trials))
    bound, flags = limits.bound(found), _flags(found)
    pressure = bound.word == limits.PRESSURE
    metrics = _metrics(found, plain, untold=bool(untold))
    made = Analysis(
        trace=found.trace,
        model=found.model,
        mode=found.mode or "training",  # only an inference says what it is
        config={name: _setting(each) for name, each in found.config.items()},
        bound=bound.word,
        bound_why=bound.why,
        bound_reported=found.bound,
        reasons=list(bound.reasons),
        confidence=confidence(flags),
        attribution=None,
        inferred_forward=False,
        memory_pressure=pressure,
        window=Over(wall_ms=found.window.wall_ms, real_steps=found.window.real_steps),
        metrics=metrics | {"bound": bound.word, "memory_pressure": pressure},
        counts={},
        diagnostics=None,
        quality=Quality(flags=flags, repaired={}, dropped={}),
        null_reasons={},
        timings=None,
        **plain,
        **_tables(found, untold=bool(untold)),
        **_of_capture(found),
        **_of_trials(found),
    )
    reasons = {each: _reason(each, untold) for each in null_paths(to_builtins(made))}
    return structs.replace(made, null_reasons=reasons)


def _tables(found: Original, *, untold: bool) -> dict[str, Any]:
    """Return the lists of rows, none cut any further."""
    return {
        "categories": [CategoryRow(**structs.asdict(each)) for each in found.categories],
        "phases": [_phase(each, found, untold=untold) for each in found.phases],
        "phases_gpu": [
            PhaseGpu(phase=each.phase, gpu_ms_per_step=None if untold else each.gpu_ms_per_step)
            for each in found.phases_gpu
        ],
        "kernels": _kernels(found.kernels),
        "top_kernels": _kernels(found.top_kernels),
        "kernels_by_phase": {name: _kernels(each) for name, each in found.kernels_by_phase.items()},
        "ops": _ops(found.ops),
        "ops_by_phase": {name: _ops(each) for name, each in found.ops_by_phase.items()},
    }


def _metrics(found: Original, plain: dict[str, Any], *, untold: bool) -> dict[str, Value]:
    """Return every number by the name of `get`; the document itself is right where they differ."""
    told = dict(found.metrics)
    if untold:
        phases = [f"{each.phase}{end}" for each in found.phases for end in _PHASE_OF_GPU]
        told |= {name: None for name in phases if name in told}
    told |= {_IN_METRICS.get(name, name): each for name, each in plain.items()}
    if found.img_per_s_trials:
        told |= dict.fromkeys(_RATES, plain["img_per_s"])
    if (latency := found.latency) is not None:
        told |= {f"latency_{each}": getattr(latency, each) for each in _POINTS}
    stages = found.stages_ms or {}
    told |= {f"{name}_ms": each for name, each in stages.items()}
    peak = plain["peak_vram_mb"]
    return (
        dict.fromkeys(NAMES)
        | told
        | {
            "step_ms_source": REPORTED,
            "gpu_util_source": "sum",
            "peak_allocated_bytes": None if peak is None else round(peak * 1e6),
        }
    )


def _phase(row: Phase, found: Original, *, untold: bool) -> PhaseRow:
    """Return a phase; the tool loses its wall time where it writes a trace, and not its stage."""
    wall = row.wall_ms_per_step
    return PhaseRow(
        phase=row.phase,
        gpu_ms_per_step=None if untold else row.gpu_ms_per_step,
        kernel_sum_ms_per_step=None,
        wall_ms_per_step=(found.stages_ms or {}).get(row.phase) if wall is None else wall,
        kernels_per_step=row.kernels_per_step,
        ops_per_step=row.ops_per_step,
        launches_per_step=None,
        unique_kernels=row.unique_kernels,
    )


def _kernels(rows: list[Kernel]) -> list[KernelRow]:
    """Return kernels as the tool tells them; whether they use matrix units, by our rules too."""
    return [
        KernelRow(
            kernel=each.kernel,
            raw_name=each.raw_name or each.kernel,
            category=each.category,
            tensorcore=each.tensorcore,
            matrix_unit=kernels.kind(each.raw_name or each.kernel).unit,
            ms_per_step=each.ms_per_step,
            pct_of_gpu=each.pct_of_gpu,
            count_per_step=each.count_per_step,
        )
        for each in rows
    ]


def _ops(rows: list[Op]) -> list[OpRow]:
    """Return operators; the tool times each with those inside it, so none of it is their own."""
    return [
        OpRow(
            op=each.op,
            ms_per_step=None,
            total_ms_per_step=each.ms_per_step,
            pct_of_cpu_ops=None,
            count_per_step=each.count_per_step,
            launches_per_step=None,
        )
        for each in rows
    ]


def _flags(found: Original) -> list[str]:
    lengths = [len(each) for each in found.kernels_by_phase.values()]
    lengths += [len(each) for each in found.ops_by_phase.values()]
    holds = {
        "few_steps": found.window.real_steps < _FEW_STEPS,
        "cut": _CUT in lengths,
        "last_trial": len(found.img_per_s_trials or []) > 1,
    }
    return [name for name, holding in holds.items() if holding]


def _of_capture(found: Original) -> dict[str, Any]:
    """Return what only an inference has."""
    latency = found.latency
    return {
        "latency": UNSET if latency is None else Percentiles(**structs.asdict(latency)),
        "stages_ms": UNSET if found.stages_ms is None else dict(found.stages_ms),
    }


def _of_trials(found: Original) -> dict[str, Any]:
    """Return what repeats add: the deviation is that of a sample, the number that of the list."""
    trials = found.img_per_s_trials
    if not trials:
        return {}
    deviation = std(np.array(trials))
    told: dict[str, Any] = {
        "img_per_s_std": deviation,
        "img_per_s_n": len(trials),
        "img_per_s_trials": trials,
        "spread": {"img_per_s": Spread(std=deviation, n=len(trials), trials=trials)},
    }
    if (made := found.aggregation) is not None:
        told["aggregation"] = Aggregation(**structs.asdict(made), bounds=[])
    return told


def _setting(value: object) -> Setting:
    """Return a setting as a document holds one; what has parts, as text."""
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    return str(value)


def _reason(path: str, untold: str) -> str:
    """Return why a number is null; untold: why those of a GPU are."""
    name = path.rpartition(".")[2]
    named = name in _OF_GPU or name in _IN_METRICS.values()
    if untold and (named or name.endswith((*_PHASE_OF_GPU, "gpu_ms_per_step"))):
        return untold
    if name in ("std", "img_per_s_std"):
        return "single_sample"
    if path.startswith("ops") and name in ("ms_per_step", "pct_of_cpu_ops"):
        return "not_supported: the tool times an op with those inside it"
    return "not_supported: the tool keeps no events" if path == "timings" else _UNTOLD
