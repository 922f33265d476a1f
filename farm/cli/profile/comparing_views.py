"""Two analyses for a person: what may be believed, then the step, the categories, the kernels."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET

from farm.report import words
from farm.report.table import Column, Datum, Table, Tone
from farm.schema import INVALIDATING
from farm.trace.analysis.quality import FLAGS
from farm.trace.comparing.guarding import NAMES
from farm.trace.comparing.kernels import SIGN
from farm.trace.comparing.record import (
    CategoryChange,
    Differs,
    KernelChange,
    Row,
    Side,
    TraceComparison,
)

_TOP: Final = 10
_NAME: Final = 9  # columns of a name,
_ROOM: Final = 70  # and of what is said behind it
_SINGLE: Final = "single run"


class _Shown(NamedTuple):
    """How a person reads a metric: its name, unit, and what its numbers are multiplied by."""

    name: str
    unit: str
    scale: float = 1.0


_METRICS: Final = {
    "img_per_s": _Shown("throughput", ""),
    "ms_per_item": _Shown("time per item", "ms"),
    "step_ms": _Shown("step", "ms"),
    "gpu_util": _Shown("GPU utilisation", "%", 100),
    "host_overhead_ms": _Shown("host overhead", "ms"),
    "launches_per_step": _Shown("launches", "per step"),
    "tensorcore_pct": _Shown("matrix units", "%"),
    "peak_vram_mb": _Shown("peak memory", "MiB", 1e6 / 2**20),
    **{f"latency_{each}_ms": _Shown(f"latency {each}", "ms") for each in ("p50", "p90", "p99")},
}
_WALL: Final = "_wall_ms"  # ends the metric of a phase
_DIGITS: Final = 12  # of a digest
_TONES: Final[dict[str, Tone]] = {"better": "good", "worse": "bad"}


def compared(found: TraceComparison) -> list[str | Table]:
    """Return the whole comparison."""
    lines = [*_side("before", found.before), *_side("after", found.after)]
    told = f"{found.before.bound} → {found.after.bound}"
    lines += _said("bound", [told if found.before.bound != found.after.bound else "the same"])
    lines += _said("differs", [_differs(each, found) for each in found.differs])
    unknown = ", ".join(NAMES.get(each, each) for each in found.unknown)
    lines += _said("unknown", [f"{unknown}: one side does not tell"] * bool(unknown))
    lines += [*_said("rule", [_rule(found)]), *_said("verdict", [_verdict(found)])]
    blocks: list[str | Table] = [*lines, _rows(found.rows)]
    if found.categories:
        blocks.append(_categories(found.categories))
    if found.kernels:
        blocks.append(_kernels(found.kernels, trials=max(found.before.trials, found.after.trials)))
    return blocks


def reasons(found: TraceComparison) -> list[str]:
    """Return why there is no verdict, with the flags of an invalid side in words."""
    said = []
    for each in found.reasons:
        for name, side in (("before", found.before), ("after", found.after)):
            if each.startswith(start := f"{name} is invalid: "):
                each = start + _doubts(flag for flag in side.flags if flag in INVALIDATING)
        said.append(each)
    return said


# ── lines ────────────────────────────────────────────────────────────────────────────────────────


def _said(name: str, parts: Iterable[str]) -> list[str]:
    """Return parts behind a name, a line each; a longer one is broken."""
    lines = [line for each in parts for line in textwrap.wrap(each, _ROOM, break_long_words=False)]
    return [f"{'' if at else name:<{_NAME}}{line}" for at, line in enumerate(lines)]


def _side(name: str, side: Side) -> list[str]:
    batch = None if side.batch is None else f"batch {side.batch}"
    step = "its step with the profiler beside it" if side.step == "instrumented" else None
    trials = words.count(side.trials, "trial") if side.repeats is UNSET else "one profile"
    known = [each for each in (side.model, side.mode, batch, trials, step) if each]
    doubts = [f"doubts: {_doubts(side.flags)}"] if side.flags else []
    bound = f"{side.bound}: {side.bound_why}"
    return [f"{name:<{_NAME}}{side.name}", *_said("", [", ".join(known), bound, *doubts])]


def _doubts(flags: Iterable[str]) -> str:
    return "; ".join(FLAGS.get(each) or words.flag(each) for each in flags)


def _differs(each: Differs, found: TraceComparison) -> str:
    before, after = _setting(each.before), _setting(each.after)
    if each.key == "model_digest":
        # models of one name are told apart by the beginning of their digests
        before, after = before[:_DIGITS], after[:_DIGITS]
        names = (found.before.model, found.after.model)
        if None not in names and names[0] != names[1]:
            before, after = map(str, names)
    return f"{NAMES.get(each.key, each.key)}: {before} before, {after} after"


def _setting(value: object) -> str:
    return " × ".join(map(str, value)) if isinstance(value, list) else str(value)


def _rule(found: TraceComparison) -> str:
    """Return the rule of the seeds for the metric to read first, in the unit of its row."""
    for row in found.rows:
        if row.metric == found.headline and row.rule is not UNSET:
            return f"{_shown(row).name}: {row.rule.words}"
    return "no time is known of both sides"


def _verdict(found: TraceComparison) -> str:
    if found.verdict == "incomparable":
        return f"incomparable: {'; '.join(reasons(found))}"
    text = f"inconclusive, not measured in turns; leaning: {found.leaning}"
    lean = found.lean
    if lean is UNSET or lean.ratio is None:
        return text
    text += f", ratio {lean.ratio:.3f}"
    if None in (lean.ratio_lo, lean.ratio_hi, lean.p, lean.df):
        return f"{text}, no interval"
    interval = f"[{lean.ratio_lo:.3f}, {lean.ratio_hi:.3f}]"
    return f"{text}, 95 % interval {interval}, p {lean.p:.2g}, df {lean.df:.3g}"


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


def _rows(rows: Sequence[Row]) -> Table:
    columns = (
        Column("metric"),
        Column("before", right=True),
        Column("after", right=True),
        Column("change", right=True),
        Column("", "%", right=True),
        Column("worth"),
    )
    told = [each for each in rows if (each.before, each.after) != (None, None)]
    silent = [_shown(each).name for each in rows if each not in told]
    notes = [f"told by neither: {', '.join(silent)}"] if silent else []
    rules = [each.rule for each in told if each.rule is not UNSET]
    if any(each.two_se is None for each in rules):
        notes.append(f"{_SINGLE}: it cannot support the call")
    if any(each.two_se is not None for each in rules):
        notes.append("2 SE: twice the combined standard error, of sample deviations")
    return Table("", columns, tuple(map(_row, told)), tuple(notes))


def _shown(row: Row) -> _Shown:
    usual = _Shown(f"{row.metric.removesuffix(_WALL)} wall", "ms")
    found = _METRICS.get(row.metric, usual)
    return found if found.unit else found._replace(unit=row.unit)


def _row(row: Row) -> tuple[Datum, ...]:
    name, unit, scale = _shown(row)
    before, after, change = (
        None if each is None else scale * each for each in (row.before, row.after, row.change)
    )
    shown = [(words.whole if row.exact else words.number)(each) for each in (before, after)]
    places = max(len(each.partition(".")[2]) for each in shown)
    return (
        Datum(f"{name} {unit}"),
        *map(Datum, shown),
        Datum(words.UNKNOWN if change is None else _signed(f"{change:+,.{places}f}")),
        Datum("" if unit == "%" else _percent(row.ratio)),
        Datum(_worth(row, scale), tone=_TONES.get(row.call, "")),
    )


def _worth(row: Row, scale: float) -> str:
    """Return what a change is worth: a call that something supports, or why there is none."""
    if row.change is None:
        return words.UNKNOWN
    called = [row.call] if row.call in ("better", "worse") else []
    if row.exact:
        return ", ".join([*called, "exact"])
    if row.rule is UNSET or row.rule.two_se is None:
        return _SINGLE
    sign = ">" if row.rule.exceeds else "≤"
    return ", ".join([*called, f"{sign} 2 SE {words.number(scale * row.rule.two_se)}"])


def _categories(rows: Sequence[CategoryChange]) -> Table:
    columns = (
        Column("category"),
        Column("before", "ms", right=True),
        Column("after", "ms", right=True),
        Column("change", "ms", right=True),
        Column("", "%", right=True),
    )
    made = [
        (
            Datum(each.name),
            Datum(_ms(each.before_ms)),
            Datum(_ms(each.after_ms)),
            Datum(_delta(each.change_ms)),
            Datum(_percent(each.ratio)),
        )
        for each in rows
    ]
    return Table("kernel time by category, per step", columns, tuple(made))


def _kernels(rows: Sequence[KernelChange], *, trials: int) -> Table:
    columns = (
        Column("change", "ms", right=True),
        Column("before", "ms", right=True),
        Column("after", "ms", right=True),
        Column("calls", right=True),
        Column("only"),
        Column("kernel", cut=True),
    )
    changed = [each for each in rows if _is_changed(each)]
    made = [
        (
            Datum(_delta(each.change_ms)),
            Datum(_ms(each.before_ms)),
            Datum(_ms(each.after_ms)),
            Datum(_calls(each)),
            Datum("" if each.listed == "both" else f"only {each.listed}"),
            Datum(each.kernel.removeprefix("void ")),
        )
        for each in changed[:_TOP]
    ]
    notes = [_counted(rows, changed)]
    notes += [_only(rows, side) for side in ("before", "after")]
    if any(SIGN in each.kernel for each in changed[:_TOP]):
        notes.append(f"{SIGN}: digits; kernels whose names differ in nothing else are one row")
    if trials > 1:
        notes.append("of several trials, the kernels are those of one")
    title = "kernels by change, per step"
    return Table(title, columns, tuple(made), tuple(each for each in notes if each))


def _counted(rows: Sequence[KernelChange], changed: Sequence[KernelChange]) -> str:
    if not changed:
        return f"{words.count(len(rows), 'kernel')}, none differs"
    shown = min(_TOP, len(changed))
    more = "; --json has all" if shown < len(changed) else ""
    return f"{shown} of {words.count(len(changed), 'kernel')} that differ{more}"


def _only(rows: Sequence[KernelChange], side: str) -> str:
    mine = [each for each in rows if each.listed == side]
    whole = math.fsum(
        (each.before_ms if side == "before" else each.after_ms) or 0.0 for each in mine
    )
    return f"only {side}: {words.count(len(mine), 'kernel')}, {_ms(whole)} ms" if mine else ""


def _is_changed(row: KernelChange) -> bool:
    """Tell if a kernel takes another time or has another count; sums may differ in the last bit."""
    pairs = ((row.before_ms, row.after_ms), (row.before_count, row.after_count))
    return any(a is None or b is None or not math.isclose(a, b) for a, b in pairs)


# ── cells ────────────────────────────────────────────────────────────────────────────────────────


def _calls(row: KernelChange) -> str:
    before, after = words.whole(row.before_count), words.whole(row.after_count)
    return before if before == after else f"{before} → {after}"


def _ms(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{value:.3f}"


def _delta(ms: float | None) -> str:
    return words.UNKNOWN if ms is None else _signed(f"{ms:+.3f}")


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else _signed(f"{100 * (ratio - 1):+.1f}")


def _signed(text: str) -> str:
    """Return a change with its sign; one that is smaller than what is shown has none."""
    return text.replace("-", "−") if text.strip("+-0.") else text.strip("+-")
