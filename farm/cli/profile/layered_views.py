"""A layer profile for a person, where a trace would be shown."""

from collections.abc import Sequence
from typing import Final

from farm.cli.profile import trace_views
from farm.report import words
from farm.report.table import Column, Datum, Table
from farm.trace.importing import choosing
from farm.trace.importing.record import (
    LayerProfile,
    LayerTime,
    LayerTimesRead,
    OpTimesRead,
)

_TOP: Final = 8
_SHARES: Final = "a layer profiler slows the model down, and not every layer alike: shares count"


def summary(found: LayerProfile) -> list[str | Table]:
    """Return what a layer profile tells: runs, layers, and those that take the most."""
    told: list[str | Table] = [words.visible(found.trace), f"input        {_source(found)}"]
    if found.metrics["step_ms"] is not None:
        told.append(f"step         {_step(found)}")
    told.append(f"layers       {_layers(found)}")
    told.append("GPU          – (a layer profile tells the times of layers alone)")
    return [*told, layers(choosing.layers(found, top=_TOP), more="`farm profile kernels`")]


def layers(found: LayerTimesRead, *, more: str = "--top") -> Table:
    """Return layers as a table; more: what shows the others."""
    columns = (
        Column("share", "%", right=True),
        Column("time", "ms", right=True),
        Column("median", "ms", right=True),
        Column("calls", right=True),
        Column("op", cut=True),
        Column("layer", cut=True),
    )
    made = [_row(each) for each in found.rows]
    notes = _rest("layer", [each.pct for each in found.rows], found.of, more)
    return Table("layers, per run; share of all layers", columns, tuple(made), (*notes, _SHARES))


def ops(found: OpTimesRead) -> Table:
    """Return the layers by kind of work as a table."""
    columns = (
        Column("share", "%", right=True),
        Column("time", "ms", right=True),
        Column("layers", right=True),
        Column("calls", right=True),
        Column("op", cut=True),
    )
    made = [
        (
            Datum(trace_views.share(each.pct)),
            Datum(words.number(each.ms_per_step)),
            Datum(words.whole(each.layers)),
            Datum(words.whole(each.count_per_step)),
            Datum(words.visible(each.op)),
        )
        for each in found.rows
    ]
    notes = _rest("op", [each.pct for each in found.rows], found.of, "--top")
    title = "layers by kind of work, per run; share of all layers"
    return Table(title, columns, tuple(made), (*notes, _SHARES))


def _row(row: LayerTime) -> tuple[Datum, ...]:
    return (
        Datum(trace_views.share(row.pct)),
        Datum(words.number(row.ms_per_step)),
        Datum(words.number(row.median_ms)),
        Datum(words.whole(row.count_per_step)),
        Datum(words.UNKNOWN if row.op is None else words.visible(row.op)),
        Datum(words.visible(row.layer)),
    )


def _rest(one: str, shares: Sequence[float], of: int, more: str) -> tuple[str, ...]:
    if not of:
        return (f"no {one} here",)
    if len(shares) >= of:
        return ()
    part = words.share(sum(shares) / 100)
    return (f"{len(shares)} of {words.count(of, one)}, {part} % of the time; {more} shows more",)


def _source(found: LayerProfile) -> str:
    kind = found.tool if found.tool == "layer CSV" else f"layer profile of {found.tool}"
    runs, kept = found.metrics["runs"], found.metrics["iterations"]
    if runs is not None and runs != kept:
        return f"{kind}, the last {kept} of {runs} runs: the first prepares memory"
    count = None if kept is None else int(kept)
    return kind if count is None else f"{kind}, {words.count(count, 'iteration')}"


def _step(found: LayerProfile) -> str:
    step, mean = found.metrics["step_ms"], found.metrics["step_ms_mean"]
    return f"{_number(step)} ms, median of the runs · mean {_number(mean)} ms"


def _layers(found: LayerProfile) -> str:
    cover = found.metrics["coverage"]
    of = "" if cover is None else f", {words.share(float(cover))} % of a run"
    return (
        f"{words.whole(len(found.rows))}, {_number(found.metrics['layer_sum_ms'])} ms together{of}"
    )


def _number(value: float | int | bool | str | None) -> str:
    return words.number(float(value)) if isinstance(value, int | float) else words.UNKNOWN
