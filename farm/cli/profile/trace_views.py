"""Tables of a trace for a person: its metrics, phases, kernels and ops."""

from collections.abc import Sequence
from typing import Final

from farm.cli.profile import trace_units
from farm.report import words
from farm.report.table import Column, Datum, Table
from farm.trace.analysis.choosing import Told
from farm.trace.analysis.record import Analysis
from farm.trace.analysis.tables import KernelRow, OpRow

_BY_NAME: Final = "matrix: whether it uses matrix units (Tensor Cores), as far as its name tells"
_INCLUSIVE: Final = "self: not told, its tool times an op with those inside it"
_REST: Final = {
    "unphased": "launched in none of the phases",
    "unattributed": "launched before the trace began",
}


def listing(found: Told) -> Table:
    """Return the names, values and units of all metrics."""
    rows = [
        (
            Datum(name),
            Datum(_shown(each, trace_units.unit(name))),
            Datum(trace_units.unit(name)),
            Datum(found.null_reasons.get(f"metrics.{name}", "")),
        )
        for name, each in sorted(found.metrics.items())
    ]
    columns = (
        Column("metric", cut=True),
        Column("value", right=True),
        Column("unit"),
        Column("why not", cut=True),
    )
    return Table("", columns, tuple(rows))


def phases(found: Analysis) -> Table:
    """Return the phases as a table."""
    columns = (
        Column("phase", cut=True),
        Column("GPU", "ms", right=True),
        Column("wall", "ms", right=True),
        Column("kernels", right=True),
        Column("launches", right=True),
        Column("ops", right=True),
    )
    made = [
        (
            Datum(each.phase),
            Datum(_ms(each.gpu_ms_per_step)),
            Datum(_ms(each.wall_ms_per_step)),
            Datum(words.whole(each.kernels_per_step)),
            Datum(words.whole(each.launches_per_step)),
            Datum(words.whole(each.ops_per_step)),
        )
        for each in found.phases
    ]
    names = [each.phase for each in found.phases]
    notes = ["GPU: while its kernels ran; wall: while its span was open on the host"]
    notes += [f"{name}: {why}" for name, why in _REST.items() if name in names]
    if found.inferred_forward:
        notes.append("forward: inferred, all that came before the first backward of a step")
    return Table("phases, per step", columns, tuple(made), tuple(notes))


def kernels(rows: Sequence[KernelRow], *, of: int, phase: str = "", more: str = "--top") -> Table:
    """Return kernels as a table. of: how many there are; its shares are of the phase, if one is
    named. more: what shows the others.
    """
    whose = f"GPU time of {phase}" if phase else "GPU time"
    columns = (
        Column("share", "%", right=True),
        Column("time", "ms", right=True),
        Column("calls", right=True),
        Column("category"),
        Column("matrix"),
        Column("kernel", cut=True),
    )
    made = [
        (
            Datum(share(each.pct_of_gpu)),
            Datum(_ms(each.ms_per_step)),
            Datum(words.whole(each.count_per_step)),
            Datum(each.category),
            Datum(each.matrix_unit),
            Datum(each.raw_name.removeprefix("void ")),
        )
        for each in rows
    ]
    notes = _rest("kernel", [each.pct_of_gpu for each in rows], of, more)
    title = f"kernels, per step; share of the {whose} in kernels"
    return Table(title, columns, tuple(made), (*notes, _BY_NAME) if rows else notes)


def ops(rows: Sequence[OpRow], *, of: int, phase: str = "", more: str = "--top") -> Table:
    """Return ops as a table; of, phase and more: as of `kernels`."""
    whose = f"self time of {phase}" if phase else "self time"
    columns = (
        Column("self", "ms", right=True),
        Column("total", "ms", right=True),
        Column("calls", right=True),
        Column("launches", right=True),
        Column("share", "%", right=True),
        Column("op", cut=True),
    )
    made = [
        (
            Datum(_ms(each.ms_per_step)),
            Datum(_ms(each.total_ms_per_step)),
            Datum(words.whole(each.count_per_step)),
            Datum(words.whole(each.launches_per_step)),
            Datum(words.UNKNOWN if each.pct_of_cpu_ops is None else share(each.pct_of_cpu_ops)),
            Datum(each.op),
        )
        for each in rows
    ]
    shares = [each.pct_of_cpu_ops for each in rows if each.pct_of_cpu_ops is not None]
    notes = _rest("op", shares, of, more) if len(shares) == len(rows) else (_INCLUSIVE,)
    inner = "self: without the ops inside it; total: with them, so totals do not add up"
    title = f"ops on the host, per step; share of the {whose}"
    return Table(title, columns, tuple(made), (*notes, inner) if rows else notes)


# ── cells and notes ──────────────────────────────────────────────────────────────────────────────


def _rest(one: str, shares: Sequence[float], of: int, more: str) -> tuple[str, ...]:
    if not of:
        return (f"no {one} here",)
    if len(shares) >= of:
        return ()
    part = words.share(sum(shares) / 100)
    return (f"{len(shares)} of {words.count(of, one)}, {part} % of the time; {more} shows more",)


def _ms(value: float | None) -> str:
    """Return a time with the decimals of its column; a shorter one keeps its digits."""
    if value is None or 0 < value < 0.0005:
        return words.number(value)
    return f"{value:.3f}"


def share(pct: float) -> str:
    return f"{float(words.share(pct / 100)):.1f}"


def _shown(value: float | int | bool | str | None, unit: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return words.whole(value) if unit == "per step" else words.number(value)
    return "null" if value is None else str(value)
