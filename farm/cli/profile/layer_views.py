"""Layer tables for a person: the hotspots first, what only one side has at the end."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farm.report import words
from farm.report.table import Column, Datum, Table

if TYPE_CHECKING:
    from farm.interchange import Comparison
    from farm.schema import Latency, LayerRow, LayerTable
    from farm.trace.blocks import BlockRow
    from farm.trace.documents import LayersTaken
    from farm.trace.files import Chosen
    from farm.trace.matching import LayerComparison, Side
    from farm.trace.sidecar import About

OF_CLEAN: Final = "of clean: the share of a clean iteration, less what of it is in no row"
SHARES: Final = "only shares mean something here: no total of a profiled pass is a latency"


def measured(found: "LayersTaken") -> list[str | Table]:
    """Return a measured table, sorted by share."""
    from farm.trace import shares
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
    shown = tuple(
        _measured_row(each, carried=carried, flops=with_flops, peak=with_peak)
        for each, carried in zip(rows, shares.carried(rows), strict=True)
    )
    return [Table(title, tuple(columns), shown, tuple(notes))]


def where(found: "LayersTaken") -> str:
    """Return the block that holds a table, as one addresses it."""
    return f"{found.file}#{found.block}" if found.block else found.file


def about(table: "LayerTable") -> list[str]:
    """Return the largest layer in a sentence, what the instrument cost, and what is in no row."""
    from farm.trace import shares

    lines = []
    top, pct = shares.by_median(table)[0]
    if top.pct_of_peak is not None:
        lines.append(
            f"hotspot    {top.layer}: {pct:.0f} % of the time by medians at "
            f"{words.number(top.pct_of_peak)} % of peak"
        )
    lines += _overhead(table)
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
    """Return a table as a file holds it, sorted by share, and what its instrument cost."""
    from farm.trace import files, shares

    about, clean = chosen.about, files.of_clean(chosen)
    columns = (
        Column("layer", cut=True),
        Column("time", "%", right=True),
        Column("average", "ms", right=True),
        Column("median", "ms", right=True),
        Column("std", "ms", right=True),
        Column("total", "ms", right=True, spare=1),
        *([Column("of clean", "ms", right=True)] if clean else []),
    )
    wrong = shares.odd(chosen.rows)
    # shares that are wrong are apart from their medians for no reason of the model's
    carried = [False] * len(chosen.rows) if wrong else shares.carried(chosen.rows)
    told = (about.method, about.clock) if about is not None else (None, None)
    short = [
        shares.is_short(row.median_ms, method=told[0], clock=told[1]) and not odd
        for row, odd in zip(chosen.rows, carried, strict=True)
    ]
    ordered = sorted(range(len(chosen.rows)), key=lambda at: -chosen.rows[at].share_pct)
    rows = tuple(
        (
            *_printed_row(chosen.rows[at], carried=carried[at], short=short[at]),
            *([Datum(_ms(clean[at][0]))] if clean else []),
        )
        for at in ordered
    )
    notes = ["sorted by share; the file has them in the order of execution"]
    if about is not None:
        notes.append(f"over {words.count(about.iterations, 'profiled iteration')}")
    notes += [each for each in (wrong, chosen.doubt) if each]
    run = [each for each in _run(about) if each != Path(chosen.name).name]
    title = ", ".join([chosen.name, *run])
    notes += [SHARES, *(_clean_notes(why for _, why in clean) if clean else [])]
    table = Table(title, columns, rows, (*notes, *_doubts(carried, short)))
    cost = [] if about is None else _overhead(about)
    return [table, *(["", *cost] if cost else [])]


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


def _measured_row(row: "LayerRow", *, carried: bool, flops: bool, peak: bool) -> tuple[Datum, ...]:
    count = words.UNKNOWN if row.flops_per_batch is None else f"{row.flops_per_batch / 1e6:.4g}"
    ends = [Datum(f"{row.calls_per_iteration:g}"), Datum(row.type)]
    return (
        Datum(row.layer),
        _share(row.share_pct, carried=carried),
        *([Datum(words.number(row.pct_of_peak))] if peak else []),
        Datum(_ms(row.average_ms)),
        Datum(words.marked(_ms(row.median_ms), reliable=row.reliable or carried)),
        Datum(_ms(row.std_ms)),
        Datum(_ms(row.total_ms)),
        Datum(_ms(row.scaled_ms)),
        *([Datum(count)] if flops else []),
        *ends,
    )


def _printed_row(row: "BlockRow", *, carried: bool, short: bool) -> tuple[Datum, ...]:
    return (
        Datum(row.layer),
        _share(row.share_pct, carried=carried),
        Datum(_ms(row.average_ms)),
        Datum(words.marked(_ms(row.median_ms), reliable=not short)),
        Datum(_ms(row.std_ms)),
        Datum(_ms(row.total_ms)),
    )


def _marks(found: "LayersTaken") -> list[str]:
    """Return what the signs in the table mean, where there are any."""
    from farm.trace import shares

    reasons = found.null_reasons.items()
    notes = _clean_notes(why for path, why in reasons if path.endswith(".scaled_ms"))
    rows = found.table.rows
    carried = shares.carried(rows)
    short = [not row.reliable and not odd for row, odd in zip(rows, carried, strict=True)]
    return notes + _doubts(carried, short)


def _clean_notes(reasons: Iterable[str]) -> list[str]:
    """Return what the column is, or why nothing stands in it."""
    unknown = sorted({why for why in reasons if why})
    return [f"of clean –: {words.reason(why)}" for why in unknown] or [OF_CLEAN]


def _doubts(carried: Sequence[bool], short: Sequence[bool]) -> list[str]:
    from farm.trace import shares

    found = [f"~ at a share: {shares.CARRIED}: see median"] if any(carried) else []
    return found + ([f"~ at a median: {shares.SHORT}"] if any(short) else [])


def _share(pct: float, *, carried: bool) -> Datum:
    return Datum(words.marked(f"{pct:.1f}", reliable=not carried))


def _overhead(found: "About | LayerTable") -> list[str]:
    """Return what the instrument cost, in a line; none where nothing is known of it."""
    from farm.trace import layers

    if found.perturbation is None:
        return []
    cost = layers.overhead(found.perturbation)
    profiled, clean = words.number(found.profiled_ms), words.number(found.clean_ms)
    return [
        f"overhead   {cost.factor:.2f}, {cost.word}: an iteration took {profiled} ms with "
        f"the profiler and {clean} ms without (medians), perturbation "
        f"{100 * found.perturbation:+.1f} %"
    ]


def _run(side: "About | Side | None") -> list[str]:
    if side is None:
        return []
    batch = None if side.batch is None else f"batch {side.batch}"
    known = [side.model, side.precision, batch, side.device]
    return [each for each in known if each]


def _side(name: str, side: "Side") -> str:
    run = ", ".join(_run(side)) or "nothing beside it says which run"
    over = "" if side.iterations is None else f", {words.count(side.iterations, 'iteration')}"
    return f"{name}  {side.name}: {run}, {words.count(side.layers, 'layer')}{over}"


def _ms(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{value:.4f}"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
