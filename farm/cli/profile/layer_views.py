"""Layer tables for a person: the hotspots first, what only one side has at the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farm.report import words
from farm.report.table import Column, Datum, Table

if TYPE_CHECKING:
    from farm.interchange import Comparison
    from farm.schema import Latency, LayerRow, LayerTable
    from farm.trace.documents import LayersTaken
    from farm.trace.files import Chosen
    from farm.trace.matching import LayerComparison, Side
    from farm.trace.sidecar import About

SHARES: Final = "only shares mean something here: no total of a profiled pass is a latency"


def measured(found: "LayersTaken") -> list[str | Table]:
    """Return a measured table, sorted by share."""
    from farm.trace.layers import by_share

    table = found.table
    rows = by_share(table)
    with_peak = any(each.pct_of_peak is not None for each in rows)
    with_flops = any(each.flops_per_batch is not None for each in rows)
    columns = [
        Column("layer", cut=True),
        Column("time", "%", right=True),
        *([Column("of peak", "%", right=True)] if with_peak else []),
        Column("average", "ms", right=True, spare=2),
        Column("median", "ms", right=True),
        Column("std", "ms", right=True),
        Column("total", "ms", right=True, spare=3),
        Column("of clean", "ms", right=True),
        *([Column("MFLOP", right=True)] if with_flops else []),
        Column("calls", right=True, spare=1),
        Column("type", cut=True, spare=4),
    ]
    notes = [
        f"sorted by share; {where(found)} has them in the order of execution",
        f"over {words.count(table.iterations, 'profiled iteration')} after "
        f"{table.warmup_iterations} untimed ones; {_CLOCKS[table.clock]}; std is the sample "
        "standard deviation",
        SHARES,
        *_marks(found),
    ]
    title = f"{found.model}, {table.precision}, batch {found.batch}, {table.device}"
    shown = tuple(_measured_row(each, flops=with_flops, peak=with_peak) for each in rows)
    return [Table(title, tuple(columns), shown, tuple(notes))]


def where(found: "LayersTaken") -> str:
    """Return the block that holds a table, as one addresses it."""
    return f"{found.file}#{found.block}" if found.block else found.file


def about(table: "LayerTable") -> list[str]:
    """Return the largest layer in a sentence, what the instrument cost, and what is in no row."""
    from farm.trace import layers

    lines = []
    top = layers.by_share(table)[0]
    if top.pct_of_peak is not None:
        lines.append(
            f"hotspot    {top.layer}: {top.share_pct:.0f} % of the time at "
            f"{words.number(top.pct_of_peak)} % of peak"
        )
    if table.perturbation is not None:
        found = layers.overhead(table.perturbation)
        profiled, clean = words.number(table.profiled_ms), words.number(table.clean_ms)
        lines.append(
            f"overhead   {found.factor:.2f}, {found.word}: an iteration took {profiled} ms with "
            f"the profiler and {clean} ms without (medians), perturbation "
            f"{100 * table.perturbation:+.1f} %"
        )
    if table.unattributed_ms is not None:
        rest = words.number(table.unattributed_ms)
        lines.append(f"rest       {rest} ms of an iteration are in no row")
    return lines


def latency(found: "Latency", flags: Sequence[str]) -> str:
    """Return the latency of the clean pass in one line."""
    half = None
    if found.p50_lo_ms is not None and found.p50_hi_ms is not None:
        half = max(found.p50_hi_ms - found.p50_ms, found.p50_ms - found.p50_lo_ms)
    p50 = words.plus_minus(found.p50_ms, half, reliable=found.p50_reliable)
    p99 = words.marked(words.number(found.p99_ms), reliable=found.p99_reliable)
    doubts = "".join(f"; {words.flag(each)}" for each in flags)
    return f"latency    p50 {p50} ms, p99 {p99} ms, n {found.n}, of clean passes alone{doubts}"


def printed(chosen: "Chosen") -> list[str | Table]:
    """Return a table as a file holds it, sorted by share."""
    columns = (
        Column("layer", cut=True),
        Column("time", "%", right=True),
        Column("average", "ms", right=True),
        Column("median", "ms", right=True),
        Column("std", "ms", right=True),
        Column("total", "ms", right=True, spare=1),
    )
    ordered = sorted(chosen.rows, key=lambda each: -each.share_pct)
    rows = tuple(
        (
            Datum(each.layer),
            Datum(f"{each.share_pct:.1f}"),
            *(Datum(_ms(value)) for value in (each.average_ms, each.median_ms, each.std_ms)),
            Datum(_ms(each.total_ms)),
        )
        for each in ordered
    )
    about = chosen.about
    notes = ["sorted by share; the file has them in the order of execution"]
    if about is not None:
        notes.append(f"over {words.count(about.iterations, 'profiled iteration')}")
    notes += [chosen.doubt] if chosen.doubt else []
    run = [each for each in _run(about) if each != Path(chosen.name).name]
    title = ", ".join([chosen.name, *run])
    return [Table(title, columns, rows, (*notes, SHARES))]


def compared(found: "LayerComparison") -> list[str | Table]:
    """Return two tables side by side, then what only one of them has."""
    columns = (
        Column("layer", cut=True),
        Column("base", "%", right=True),
        Column("head", "%", right=True),
        Column("change", "points", right=True),
        Column("base", "ms", right=True, spare=2),
        Column("head", "ms", right=True, spare=2),
        Column("ratio", right=True),
    )
    ordered = sorted(found.matched, key=lambda each: -max(each.base_share_pct, each.head_share_pct))
    rows = [
        (
            Datum(each.layer),
            Datum(f"{each.base_share_pct:.1f}"),
            Datum(f"{each.head_share_pct:.1f}"),
            Datum(_signed(each.change_points)),
            Datum(_ms(each.base_median_ms)),
            Datum(_ms(each.head_median_ms)),
            Datum(words.UNKNOWN if each.median_ratio is None else f"{each.median_ratio:.2f}"),
        )
        for each in ordered
    ]
    none = Datum(words.UNKNOWN)
    for each in found.only_base:
        share, ms = Datum(f"{each.share_pct:.1f}"), Datum(_ms(each.median_ms))
        rows.append((Datum(each.layer), share, none, none, ms, none, none))
    for each in found.only_head:
        share, ms = Datum(f"{each.share_pct:.1f}"), Datum(_ms(each.median_ms))
        rows.append((Datum(each.layer), none, share, none, none, ms, none))
    notes = (
        f"{words.count(len(found.matched), 'layer')} in both; only in base "
        f"{len(found.only_base)} with {found.only_base_share_pct:.1f} %, only in head "
        f"{len(found.only_head)} with {found.only_head_share_pct:.1f} %",
        "ms are medians, ratio is head over base",
        found.note,
        f"{found.verdict}: two stored tables were not measured in turns",
    )
    sides = [_side("base", found.base), _side("head", found.head)]
    return [*sides, Table("", columns, tuple(rows), notes)]


def callables(found: "Comparison") -> list[str]:
    """Return two callable JSONs side by side, in lines."""
    apart = words.UNKNOWN
    if found.ratio_lo is not None and found.ratio_hi is not None:
        apart = f"[{found.ratio_lo:.3f}, {found.ratio_hi:.3f}]"
    return [
        f"base     {found.base}: p50 {words.number(found.base_p50_ms)} ms, "
        f"{words.count(found.base_runs, 'run')}",
        f"head     {found.head}: p50 {words.number(found.head_p50_ms)} ms, "
        f"{words.count(found.head_runs, 'run')}",
        f"ratio    {found.ratio:.3f}, 95 % interval {apart}",
        f"rule     {found.rule}",
        f"verdict  {found.verdict}: {'; '.join(found.reasons)}; leaning: {found.leaning}",
    ]


# ── cells and notes ──────────────────────────────────────────────────────────────────────────────

_CLOCKS: Final = {
    "wall": "times by the host clock",
    "device": "times on the device, between events",
}


def _measured_row(row: "LayerRow", *, flops: bool, peak: bool) -> tuple[Datum, ...]:
    count = words.UNKNOWN if row.flops_per_batch is None else f"{row.flops_per_batch / 1e6:.4g}"
    ends = [Datum(f"{row.calls_per_iteration:g}"), Datum(row.type)]
    return (
        Datum(row.layer),
        Datum(f"{row.share_pct:.1f}"),
        *([Datum(words.number(row.pct_of_peak))] if peak else []),
        Datum(_ms(row.average_ms)),
        Datum(words.marked(_ms(row.median_ms), reliable=row.reliable)),
        Datum(_ms(row.std_ms)),
        Datum(_ms(row.total_ms)),
        Datum(_ms(row.scaled_ms)),
        *([Datum(count)] if flops else []),
        *ends,
    )


def _marks(found: "LayersTaken") -> list[str]:
    """Return what the signs in the table mean, where there are any."""
    notes = ["of clean: the share of a clean iteration"]
    scaled = {why for path, why in found.null_reasons.items() if path.endswith(".scaled_ms")}
    if scaled:
        notes = [f"of clean –: {words.reason(why)}" for why in sorted(scaled)]
    if any(not each.reliable for each in found.table.rows):
        notes.append("~: shorter than ten steps of its clock")
    return notes


def _run(side: "About | Side | None") -> list[str]:
    known = [] if side is None else [side.model, side.precision, side.device]
    return [each for each in known if each]


def _side(name: str, side: "Side") -> str:
    run = ", ".join(_run(side)) or "nothing beside it says which run"
    over = "" if side.iterations is None else f", {words.count(side.iterations, 'iteration')}"
    return f"{name}  {side.name}: {run}, {words.count(side.layers, 'layer')}{over}"


def _ms(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{value:.4f}"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
