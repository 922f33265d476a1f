"""Several trials of one capture as one document: means, their spread, and lists of the last one.

Source: S4.27 to S4.31. Every scalar is the mean, so that no number stands beside one of another
trial; what is a list of kernels or operators cannot be averaged, and is said to be of the last
that kept its trace.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from msgspec import UNSET, UnsetType, structs

from farm.stats.spread import std
from farm.trace.analysis.bounds import Reason
from farm.trace.analysis.diagnostics import Diagnostics
from farm.trace.analysis.quality import confidence
from farm.trace.analysis.record import Aggregation, Analysis, Over, Percentiles, PhaseGpu, Spread
from farm.trace.analysis.tables import PhaseRow
from farm.trace.captured import reasoned

_NOTE: Final = (
    "numbers are means over the trials; kernels, categories, ops, counts, quality of the trace and "
    "timings are those of the last trial"
)
_TRACED: Final = " that kept its trace"
_SINGLE: Final = "single_sample"


def together(trials: Sequence[Analysis], *, files: Sequence[str]) -> Analysis:
    """Return the document of at least one trial; files: where each lies, in their order."""
    chosen = _representative(trials)
    last, spread = trials[chosen], _spread(trials)
    pressed = any(each.memory_pressure for each in trials)
    flags = list(dict.fromkeys(flag for each in trials for flag in each.quality.flags))
    word, told = _bound(trials, files)
    means = {name: _mean(each.trials) for name, each in spread.items()}
    made = structs.replace(
        last,
        diagnostics=_diagnostics(trials),
        confidence=min((confidence(flags), *(t.confidence for t in trials)), key=_ORDER.index),
        memory_pressure=pressed,
        config=last.config | {"notes": notes_of(trials)},
        metrics=last.metrics | means | {"bound": word, "memory_pressure": pressed},
        quality=structs.replace(last.quality, flags=flags),
        window=_window(trials),
        phases=_phases(trials),
        intervals={},
        stages_ms=_stages(trials),
        latency=_latency(trials),
        spread=spread,
        aggregation=Aggregation(
            n=len(trials),
            profiles=list(files),
            representative_profile=files[chosen],
            note=_note(trials, chosen),
            bounds=[each.bound for each in trials],
        ),
        **told,
        **_beside(trials),
        **_rates(spread.get("img_per_s")),
    )
    made = structs.replace(made, phases_gpu=_gpu(made))
    reasons = {path: why for each in [*trials, last] for path, why in each.null_reasons.items()}
    reasons |= {f"spread.{name}.std": _SINGLE for name, each in spread.items() if each.std is None}
    return reasoned(made, reasons | {"img_per_s_std": _SINGLE}, usual="not_probed")


def notes_of(trials: Sequence[Analysis]) -> list[str]:
    """Return what is to be said of any of the trials, each once."""
    found: dict[str, None] = {}
    for each in trials:
        notes = each.config.get("notes")
        found |= dict.fromkeys(map(str, notes) if isinstance(notes, list) else ())
    return list(found)


def _note(trials: Sequence[Analysis], chosen: int) -> str:
    """Return what is a mean of what; a trial that lost its trace has part in some of them alone."""
    traced = sum(each.trace is not None for each in trials)
    note = _NOTE if chosen == len(trials) - 1 else _NOTE + _TRACED
    if 0 < traced < len(trials):
        note += f"; what is of a trace is of {traced} of the {len(trials)} trials"
    return note


def _representative(trials: Sequence[Analysis]) -> int:
    """Return which trial the lists are of: the last one that has its trace, else the last."""
    traced = [at for at, each in enumerate(trials) if each.trace is not None]
    return traced[-1] if traced else len(trials) - 1


def _bound(trials: Sequence[Analysis], files: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the bound of all, or `mixed`, and its fields in the document (S4.31)."""
    traced = [each for each in trials if each.trace is not None]
    bounds = [each.bound for each in traced or trials]  # without a trace there is none to tell
    if len(set(bounds)) == 1:
        last = trials[_representative(trials)]
        return last.bound, {
            "bound": last.bound,
            "bound_why": last.bound_why,
            "reasons": [_reason(each, trials) for each in last.reasons],
        }
    every = zip(files, trials, strict=True)
    listed = "; ".join(f"{name}: {each.bound}" for name, each in every)
    why = f"the trials differ: {listed}"
    return "mixed", {"bound": "mixed", "bound_why": why, "reasons": []}


def _reason(of: Reason, trials: Sequence[Analysis]) -> Reason:
    """Return what decided, its value the mean over the trials in which it did."""
    same = [
        each.value
        for trial in trials
        for each in trial.reasons
        if (each.metric, each.threshold) == (of.metric, of.threshold)
    ]
    return Reason(of.metric, fmean(same), of.threshold)


_ORDER: Final = ("low", "medium", "high")
_SAME: Final = (
    *("step_ms", "dataload_ms", "dataload_frac", "gpu_util", "gpu_util_raw", "mean_kernel_us"),
    *("cuda_mallocs_per_step", "launches_per_step", "kernels_per_step", "tensorcore_pct"),
    *("peak_vram_mb", "img_per_s"),
)
_RENAMED: Final = {
    "host_overhead_ms_per_step": "host_overhead_ms",
    "gpu_busy_ms_per_step": "gpu_busy_ms",
    "memcpy_ms_per_step": "memcpy_ms",
}
_ROW: Final = tuple(each for each in PhaseRow.__struct_fields__ if each != "phase")


def _spread(trials: Sequence[Analysis]) -> dict[str, Spread]:
    """Return each metric that is a number over the trials in which it is known."""
    names = dict.fromkeys(name for each in trials for name in each.metrics)
    found = {}
    for name in names:
        values = _numbers(each.metrics.get(name) for each in trials)
        if values:
            found[name] = Spread(std=std(values), n=len(values), trials=values)
    return found


def _numbers(values: Iterable[object]) -> list[float]:
    return [
        float(each)
        for each in values
        if isinstance(each, int | float) and not isinstance(each, bool)
    ]


def _mean(values: Iterable[object]) -> float | None:
    known = _numbers(values)
    return fmean(known) if known else None


def _beside(trials: Sequence[Analysis]) -> dict[str, Any]:
    """Return the numbers that stand in the document itself, each the mean of its metric."""
    named = {each: each for each in _SAME} | _RENAMED
    found: dict[str, Any] = {
        field: _mean(each.metrics.get(name) for each in trials) for field, name in named.items()
    }
    kinds = _mean(each.metrics.get("unique_kernels") for each in trials)
    return found | {"unique_kernels": None if kinds is None else round(kinds)}


def _rates(rate: Spread | None) -> Mapping[str, Any]:
    """Return what the original's repeat file tells of the throughput."""
    if rate is None:
        return {}
    return {"img_per_s_std": rate.std, "img_per_s_n": rate.n, "img_per_s_trials": rate.trials}


def _diagnostics(trials: Sequence[Analysis]) -> Diagnostics | None:
    """Return those of the traces, each number the mean; None where no trial has a trace."""
    told = [each.diagnostics for each in trials if each.diagnostics is not None]
    if not told:
        return None
    names = [each for each in Diagnostics.__struct_fields__ if each != "file_phases_pct"]
    means: dict[str, Any] = {name: _mean(getattr(each, name) for each in told) for name in names}
    phases = dict.fromkeys(name for each in told for name in each.file_phases_pct)
    shares = {name: fmean(each.file_phases_pct.get(name, 0.0) for each in told) for name in phases}
    return Diagnostics(file_phases_pct=shares, **means)


def _window(trials: Sequence[Analysis]) -> Over:
    walls = fmean(each.window.wall_ms for each in trials)
    return Over(wall_ms=walls, real_steps=trials[_representative(trials)].window.real_steps)


def _phases(trials: Sequence[Analysis]) -> list[PhaseRow]:
    """Return the phases of the last trial, their numbers means over the trials that have them."""
    found = []
    for row in trials[_representative(trials)].phases:
        same = [each for trial in trials for each in trial.phases if each.phase == row.phase]
        means: dict[str, Any] = {name: _mean(getattr(each, name) for each in same) for name in _ROW}
        kinds = means["unique_kernels"]
        means["unique_kernels"] = None if kinds is None else round(kinds)
        found.append(structs.replace(row, **means))
    return found


def _gpu(made: Analysis) -> list[PhaseGpu]:
    return [PhaseGpu(phase=p.phase, gpu_ms_per_step=p.gpu_ms_per_step) for p in made.phases]


def _stages(trials: Sequence[Analysis]) -> dict[str, float | None] | UnsetType:
    told = [each.stages_ms for each in trials if isinstance(each.stages_ms, dict)]
    if not told:
        return UNSET
    return {name: _mean(each.get(name) for each in told) for name in told[-1]}


def _latency(trials: Sequence[Analysis]) -> Percentiles | UnsetType:
    """Return the percentiles as means over the trials, and how many iterations each of them had."""
    told = [each.latency for each in trials if isinstance(each.latency, Percentiles)]
    if not told:
        return UNSET
    names = [each for each in Percentiles.__struct_fields__ if each != "n"]
    means = {name: fmean(getattr(each, name) for each in told) for name in names}
    return Percentiles(n=min(each.n for each in told), **means)
