"""What a trace says in lines, for a person: the step and what limits it, and what could be gained.

Lines are short enough for 80 columns, so that what is said of one thing stays under its name.
"""

import textwrap
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import UNSET

from farm.cli.profile import trace_file, trace_views
from farm.report import inks, words
from farm.report.table import Table
from farm.trace.analysis.answers import StepTimes, WhatIf
from farm.trace.analysis.quality import FLAGS
from farm.trace.analysis.record import Analysis
from farm.trace.importing.names import REPORTED

_TOP: Final = 8
_STAGES: Final = ("preprocess", "forward", "postprocess")
_UNTIMED: Final = "– (they were not timed without the profiler)"
_NAME: Final = 13  # columns of a name,
_ROOM: Final = 66  # and of what is said behind it
_CONDITIONS: Final = ("precision", "device", "framework")
_APART: Final = 0.05  # of median and mean, from where on both are told
_CAPTURED: Final = "capture"  # whose clean steps no profiler slowed down
_DISTRUST: Final = "NOT TRUSTWORTHY: "
_UNTRUE: Final = {
    "memory-pressure": "under memory pressure no time is that of the work itself",
    "throttled": "the device throttled",
    "contended": "other work ran on its cores",
}
_SOURCES: Final = {
    "gpu_period": "from the last GPU work of a step to that of the next",
    "one_step": "one step, until its last GPU work",
    "gpu_span": "no step is marked: all that the device did",
    "cpu_step": "as the host marked them",
    "cpu_span": "no step is marked: all that the host did",
}


class Fact(NamedTuple):
    """What is said of one thing; without a name it says more of the one before."""

    name: str
    parts: tuple[str, ...]


def summary(found: Analysis, *, name: str) -> list[str | Table]:
    """Return the whole summary; name: of the file that it was read from."""
    told: list[str | Table] = [*distrusted(found), name, *_lines(facts(found))]
    if found.kernels:
        mix = [f"{each.name} {trace_views.share(each.pct)} %" for each in found.categories]
        told += _lines(_said("kernel time", mix))
        top = trace_views.kernels(
            found.kernels[:_TOP], of=len(found.kernels), more="`farm profile kernels`"
        )
        return [*told, top]
    if found.ops:
        told.append(trace_views.ops(found.ops[:_TOP], of=len(found.ops), more="`farm profile ops`"))
    return told


def facts(found: Analysis) -> list[Fact]:
    """Return all that the summary says, but for its tables and what is not to be trusted."""
    told = [*_subject(found), *_step(found), *_inference(found), *_gpu(found), *_host(found)]
    return [*told, *_memory(found), *_bound(found), *_file(found)]


def distrusted(found: Analysis) -> list[str]:
    """Return what must stand above the numbers: why they are not to be trusted."""
    flags = [*(["memory-pressure"] if found.memory_pressure else []), *found.quality.flags]
    return [f"{_DISTRUST}{_UNTRUE[each]}" for each in flags if each in _UNTRUE]


def doubts(found: Analysis) -> list[str]:
    """Return in words why the numbers are to be doubted, and who disturbed them."""
    who = found.config.get("neighbours")
    named = [f"beside it: {each}" for each in who] if isinstance(who, list) else []
    return [*(FLAGS.get(each) or words.flag(each) for each in found.quality.flags), *named]


def what_if(found: WhatIf) -> list[str]:
    """Return a projection and what it stands on."""
    step, removed = found.step_ms, found.removed
    now, projected = words.number(step.now), words.number(step.projected)
    parts = [f"{words.whole(removed.launches)} launches of a step"]
    if removed.gpu_ms:
        parts.append(f"{words.number(removed.gpu_ms)} ms of kernels")
        parts.append(f"{words.number(removed.exclusive_gpu_ms)} ms with no other beside them")
    told = [*_said("bound", [found.bound]), *_said("removed", parts)]
    told += _said("step", [f"{now} ms now", f"{projected} ms projected ({_change(step)})"])
    told += _said("", [f"at best {words.number(step.best)} ms", f"at worst {now} ms"])
    if found.model_below_bound:
        told += _said("", ["projected below the best: what is removed runs beside other work"])
    if (rate := found.img_per_s) is not None:
        rates = [f"{words.number(rate.now)} images/s now"]
        told += _said("throughput", [*rates, f"{words.number(rate.projected)} projected"])
    told += _said("mechanism", [found.mechanism])
    return _lines([*told, *_said("note", [found.note]), *_said("caveat", [found.caveat])])


def _change(step: StepTimes) -> str:
    if step.projected == step.now:
        return "unchanged"
    return f"{100 * (step.projected / step.now - 1):+.1f} %".replace("-", "−")


# ── lines ────────────────────────────────────────────────────────────────────────────────────────


def _said(name: str, parts: Iterable[str]) -> list[Fact]:
    """Return what is said of a thing; nothing where there are no parts."""
    said = tuple(parts)
    return [Fact(name, said)] if said else []


def _lines(told: Iterable[Fact]) -> list[str]:
    """Return parts behind names, as many a line as there is room for; a longer one is broken."""
    every: list[str] = []
    for name, parts in told:
        lines: list[str] = []
        for each in parts:
            if lines and len(lines[-1]) + len(each) + 3 <= _ROOM:
                lines[-1] += f" · {each}"
            else:
                lines += textwrap.wrap(each, _ROOM, break_long_words=False)
        every += [f"{'' if at else name:<{_NAME}}{line}" for at, line in enumerate(lines)]
    return every


def _subject(found: Analysis) -> list[Fact]:
    """Return what was captured: the model, how, and on what; nothing of a trace alone."""
    told = found.config
    if found.model is None or found.mode is None or "batch" not in told:
        return []
    parts = [f"{found.model}, {found.mode}", f"batch {told['batch']}"]
    parts += [f"{side} × {side}"] if (side := told.get("imgsz")) else []
    return _said("what", [*parts, *(str(told[each]) for each in _CONDITIONS if told.get(each))])


def _step(found: Analysis) -> list[Fact]:
    n, cv = found.window.real_steps, _float(found, "step_ms_cv")
    source = str(found.metrics.get("step_ms_source"))
    if source == REPORTED:
        return _said("step", [f"{words.number(found.step_ms)} ms", "as its tool tells it"])
    if source == _CAPTURED:
        return _said("step", _captured(found, cv))
    parts = [f"{words.number(found.step_ms)} ms{f', median of {n}' if n > 1 else ''}"]
    if n > 1:
        parts.append(f"mean {words.number(_float(found, 'step_ms_mean'))} ms")
    if cv is not None:
        parts.append(f"sample deviation {words.percent(cv)} %")
    return _said("step", [*parts, _SOURCES.get(source, source)])


def _captured(found: Analysis, cv: float | None) -> Iterable[str]:
    """Yield the step of a capture: of plain steps, and what it took under the profiler."""
    count, slower = _float(found, "plain_steps"), _float(found, "trace_overhead")
    median = f"median of {words.whole(count)} plain steps"
    if found.aggregation is UNSET:
        yield f"{words.number(found.step_ms)} ms, {median}"
        mean = _float(found, "plain_step_ms_mean")
        if mean and found.step_ms and abs(mean / found.step_ms - 1) > _APART:
            yield f"mean {words.number(mean)} ms"
    else:
        yield f"{words.number(found.step_ms)} ms, mean of {found.aggregation.n} trials"
        yield from _deviation(found, "step_ms", " ms")
        yield "each the median of its plain steps"
    if cv is not None and found.aggregation is UNSET:
        yield f"sample deviation {words.percent(cv)} %"
    if slower is not None and found.step_ms:
        yield f"{words.number(slower)} times as long when traced"


def _deviation(found: Analysis, name: str, unit: str = "") -> Iterable[str]:
    """Yield the sample deviation of a metric over trials, where there are several that tell it."""
    spread = found.spread.get(name) if found.spread is not UNSET else None
    if spread is not None and spread.std is not None:
        yield f"sample deviation {words.number(spread.std)}{unit}, n {spread.n}"


def _inference(found: Analysis) -> list[Fact]:
    """Return the throughput, and of an inference its latency and its stages."""
    why = _why(found, "img_per_s")
    item = found.config.get("item", "image")
    rate = f"{words.number(found.img_per_s)} {item}s/s" if found.img_per_s is not None else why
    told = _said("throughput", [rate, *_deviation(found, "img_per_s")])
    if found.mode != "inference":
        return told
    points = [(each, _float(found, f"latency_{each}_ms")) for each in ("p50", "p90", "p99")]
    latency = [f"{name} {words.number(ms)}{_mark(found, name)} ms" for name, ms in points]
    walls = {p.phase: p.wall_ms_per_step for p in found.phases if p.phase in _STAGES}
    stages = [f"{each} {words.number(walls[each])} ms" for each in _STAGES if walls.get(each)]
    if walls and not stages:
        stages = [_UNTIMED]
    return [*_said("latency", latency), *told, *_said("stages", stages)]


def _mark(found: Analysis, point: str) -> str:
    """Return the sign of a percentile that too few samples stand behind."""
    why = found.null_reasons.get(f"intervals.latency_{point}_ms", "")
    return "~" if why.startswith("below_resolution") else ""


def _gpu(found: Analysis) -> list[Fact]:
    if found.gpu_util is None:
        return _said("GPU", [_why(found, "gpu_util")])
    busy, mean = words.number(found.gpu_busy_ms_per_step), words.number(found.mean_kernel_us)
    parts = [
        f"{words.percent(found.gpu_util)} % busy with kernels, {busy} ms",
        f"{words.percent(_float(found, 'gpu_active'))} % with copies as well",
        f"{words.whole(found.kernels_per_step)} kernels, mean {mean} µs",
    ]
    told = [*_said("GPU", parts), *_said("matrix units", _units(found)), *_idle(found)]
    free = {"communication": "exposed_comm_ms", "copies": "exposed_memcpy_ms"}
    alone = [(said, _float(found, name)) for said, name in free.items()]
    return told + _said(
        "exposed", [f"{words.number(ms)} ms {said} alone" for said, ms in alone if ms]
    )


def _idle(found: Analysis) -> list[Fact]:
    whole = _float(found, "idle_ms")
    if whole is None:
        return _said("idle", [_why(found, "idle_ms")])
    causes = [(said, _float(found, f"idle_{cause}_ms")) for cause, said in inks.IDLE.items()]
    parts = [f"{words.number(ms)} ms {said}" for said, ms in causes if ms]
    return _said("idle", [f"{words.number(whole)} ms in all", *parts])


def _units(found: Analysis) -> list[str]:
    if found.tensorcore_pct is None:
        return [_why(found, "tensorcore_pct")]
    unsure = _float(found, "tensorcore_unknown_pct") or 0.0
    share = words.share(found.tensorcore_pct / 100)
    return [
        f"{share} % of kernel time, as far as names tell",
        f"{words.share(unsure / 100)} % unknown",
    ]


def _host(found: Analysis) -> list[Fact]:
    parts = []
    if found.gpu_util is not None or found.launches_per_step:
        parts.append(f"overhead {words.number(found.host_overhead_ms_per_step)} ms")
        parts.append(f"{words.whole(found.launches_per_step)} launches")
    if found.dataload_ms is not None:
        parts.append(f"waits for data {words.number(found.dataload_ms)} ms")
    return _said("host", parts)


def _memory(found: Analysis) -> list[Fact]:
    kinds = {"allocated": "allocated", "reserved": "reserved", "relative": "more than at the start"}
    sizes = [(said, _float(found, f"peak_{kind}_bytes")) for kind, said in kinds.items()]
    parts = [f"{words.size(int(size))} {said}" for said, size in sizes if size is not None]
    return _said("peak memory", parts or [_why(found, "peak_vram_mb")])


def _bound(found: Analysis) -> list[Fact]:
    reasons = [
        f"{each.metric} {_value(each.value)}, threshold {_value(each.threshold)}"
        for each in found.reasons
    ]
    told = _said("bound", [f"{found.bound}: {found.bound_why}"])
    if isinstance(found.bound_reported, str) and found.bound_reported != found.bound:
        told += _said("", [f"its tool said {found.bound_reported}, which it cannot know"])
    told += [line for each in reasons for line in _said("", [each])]
    told += _said("confidence", [found.confidence])
    return told + [line for each in doubts(found) for line in _said("", [each])]


def _file(found: Analysis) -> list[Fact]:
    told = _said("file", trace_file.held(found))
    if found.aggregation is not UNSET:
        told += _said("trials", [found.aggregation.note])
    return told


def _why(found: Analysis, name: str) -> str:
    """Return the sign of an unknown metric with its reason."""
    text = found.null_reasons.get(f"metrics.{name}", "")
    code, _, detail = text.partition(": ")
    return f"{words.UNKNOWN} ({detail or words.reason(code)})" if text else words.UNKNOWN


def _value(value: float) -> str:
    """Return a count as such, and a share with its digits."""
    return words.whole(value) if float(value).is_integer() else words.number(value)


def _float(found: Analysis, name: str) -> float | None:
    value = found.metrics.get(name)
    return float(value) if isinstance(value, int | float) else None
