"""A callable JSON for a person: its figures on one screen, and what to do about each doubt."""

from collections.abc import Mapping
from typing import Final

from farm.interchange import CallableProfile
from farm.interchange.document import is_gpu
from farm.report import words
from farm.report.table import Column, Datum, Table

_COLUMNS: Final = (
    Column("figure"),
    Column("value", right=True),
    Column("unit"),
    Column("95 % interval"),
    Column("why not", cut=True),
)
_DOUBTS: Final = {"first": "the first call, with whatever it loads, is a sample"}
# What helps against a doubt about one function that is measured by hand.
_ADVICE: Final[Mapping[str, str]] = {
    "bimodal": "look for a cache or a clock that changes between calls",
    "contended": "measure again while nothing else runs",
    "contention_unknown": "make sure that nothing else runs",
    "drifting": "give more --warmup",
    "first": "give --warmup 1 or more",
    "foreign_gpu_process": "measure again while nothing else uses the GPU",
    "inputs_mutated": "copy the arrays inside the function before it changes them",
    "nonfinite_output": "look at what the function returns",
    "paging": "measure again with more free memory",
    "precision_mismatch": "give the --precision that the output has",
    "timer_limited": "let one call do the work of several",
    "too_many_threads": "let the function use no more threads than it was given",
    "warmup_not_converged": "give more --warmup",
}


def screen(document: CallableProfile) -> list[str | Table]:
    """Return one callable JSON on one screen."""
    detail, times = document.latency_detail, document.latency
    threads = document.provenance.threads
    beside = f", {words.count(threads, 'thread')}" if threads is not None else ""
    shown: list[str | Table] = [
        f"{document.model_callable}   {document.device}{beside}, "
        f"precision {document.system_card.precision or words.UNKNOWN}   "
        f"{words.count(document.measured_calls, 'call')} on one input "
        f"after {document.warmup_calls} untimed"
    ]
    rows = [
        _time(document, f"p{q}", value)
        for q, value in (
            (50, times.p50_ms),
            (90, detail.p90_ms),
            (95, times.p95_ms),
            (99, times.p99_ms),
        )
    ]
    rows.append(_row("latency mean", times.mean_ms, "ms"))
    why = document.null_reasons.get("latency_detail.std_ms", "")
    rows.append(_row("latency std", detail.std_ms, "ms", why=why))
    shown.append(Table("", _COLUMNS, (*rows, *_memory(document))))
    shown.append(_budget(document))
    shown += _doubts(document)
    return shown


def _time(document: CallableProfile, name: str, value: float) -> tuple[Datum, ...]:
    between = document.latency_detail.intervals.get(name)
    why = document.null_reasons.get(f"latency_detail.intervals.{name}", "")
    reliable = document.latency_detail.reliable.get(name, False)
    shown = words.UNKNOWN
    if between is not None:
        shown = words.interval(between.low_ms, between.high_ms, value=value, half=None)
    return (
        Datum(f"latency {name}"),
        Datum(words.number(value) + ("" if reliable else " ~")),
        Datum("ms"),
        Datum(shown),
        Datum(words.reason(why) if why else ""),
    )


def _row(name: str, value: float | None, unit: str, *, why: str = "") -> tuple[Datum, ...]:
    said = words.reason(why) if value is None and why else ""
    return (Datum(name), Datum(words.number(value)), Datum(unit), Datum(""), Datum(said))


def _memory(document: CallableProfile) -> list[tuple[Datum, ...]]:
    memory = document.memory
    path = "memory.cpu_process_lifetime_peak_mb"
    why = document.null_reasons.get(path, "")
    rows = [_row("host memory peak", memory.cpu_process_lifetime_peak_mb, "MiB", why=why)]
    cuda = memory.cuda_peak_allocated_mb_by_visible_device
    if cuda is not None:
        rows += [_row(f"allocated on cuda:{at}", peak, "MiB") for at, peak in cuda.items()]
    elif is_gpu(document.device):
        path = "memory.cuda_peak_allocated_mb_by_visible_device"
        rows.append(_row("GPU memory", None, "MiB", why=document.null_reasons.get(path, "")))
    return rows


def _budget(document: CallableProfile) -> str:
    parts = [
        f"{hz} Hz {words.number(each.beta)}{'' if each.feasible else ' (too slow)'}"
        for hz, each in document.realtime_budget.items()
    ]
    return f"budget   share of a period that one call takes: {', '.join(parts)}"


def _doubts(document: CallableProfile) -> list[str]:
    detail = document.latency_detail
    judged = [each for each in (detail.validity, detail.stability) if each is not None]
    lines = [f"quality  {', '.join(judged) or words.UNKNOWN}"]
    if detail.stability == "noisy":
        lines[0] += f": {words.NOISY}"
    elif not document.flags:
        lines[0] += ": no doubt"
    return lines + [_doubt(each, detail.of_blocks) for each in document.flags]


def _doubt(flag: str, of_blocks: int) -> str:
    said = _DOUBTS.get(flag) or words.flag(flag, of_blocks=of_blocks)
    advice = _ADVICE.get(flag, "")
    return f"doubt    {flag}: {said}{f'; {advice}' if advice else ''}"
