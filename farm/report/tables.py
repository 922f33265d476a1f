"""The tables of a report, as data: the console, Markdown and the page show the same ones."""

import re
from collections.abc import Sequence
from typing import Final

from farm import schema
from farm.report import words
from farm.report.columns import NARROW, WIDE, Measure
from farm.report.record import Cell, Figures, Report, System
from farm.report.table import Column, Datum, Table, Tone
from farm.report.table import words as text

SURENESS: Final[dict[str, Tone]] = {
    "clear": "good",
    "doubted": "warn",
    "close": "warn",
    "unknown": "warn",
    "alone": "quiet",
}

_HAS: Final = ", has "  # parts the number that differs from cell to cell from the rest of a reason
_HAD: Final = re.compile(r"([0-9]{1,9})\)*")


def overview(report: Report, *, wide: bool = False) -> Table:
    """Return one row per cell, in the order of the manifest: what was asked, found and doubted.

    The narrow form fits a terminal of 100 columns for labels of ordinary length; the wide one has
    intervals, spread and sample counts in columns of their own, and the doubts before them, where a
    narrow window shows them too. An axis that was not varied has no column: what holds for all
    cells stands above them.
    """
    shown = [each for each in report.axes if len(each.values) > 1 or each.name == "model"]
    measures = WIDE if wide else NARROW
    axes = [Column(each.name, right=_is_number(each.values), cut=True) for each in shown]
    judged = Column("quality", cut=True)
    numbers = [each.column for each in measures]
    rows = []
    for at, cell in enumerate(report.cells):
        labels = [_label(cell.labels.get(each.name)) for each in shown]
        figures = [_measured(report, at, each) for each in measures]
        trust = quality(cell)
        rows.append((*labels, trust, *figures) if wide else (*labels, *figures, trust))
    columns = (*axes, judged, *numbers) if wide else (*axes, *numbers, judged)
    return Table("Cells", columns, tuple(rows), tuple(_notes(report, measures, wide)))


def answers(report: Report) -> Table:
    """Return, for each model, the best cell by latency and by throughput, and how sure that is."""
    rows = [
        (
            text(each.model),
            text(each.metric),
            text(report.cells[each.cell].place or "its only cell"),
            text(f"{each.value} {each.unit} {each.between}".rstrip()),
            text(each.certainty, tone=SURENESS[each.surely]),
        )
        for each in report.answers
    ]
    columns = (
        Column("model", cut=True),
        Column("best by"),
        Column("at", cut=True),
        Column("value"),
        Column("how surely", cut=True),
    )
    return Table("Answers", columns, tuple(rows))


def problems(report: Report) -> Table:
    """Return the cells without a good answer: what became of them, and why."""
    rows = [
        (
            text(cell.title),
            quality(cell),
            text(cell.reason),
            _attempts(cell),
        )
        for cell in report.cells
        if cell.state != "ok"
    ]
    columns = (
        Column("cell", cut=True),
        Column("state"),
        Column("why", cut=True),
        Column("attempts", right=True),
    )
    return Table("Failed, invalid and missing", columns, tuple(rows))


def doubts(report: Report) -> Table:
    """Return what to distrust, the worst first, with the cells that it touches."""
    tones: dict[str, Tone] = {"invalid": "bad", "degraded": "warn"}
    glyphs = {"invalid": words.STATES["invalid"], "degraded": words.STATES["degraded"]}
    rows = [
        (
            text(glyphs[each.effect], tone=tones[each.effect]),
            text(each.name),
            text(each.words + (f": {words.listed(each.because)}" if each.because else "")),
            Datum(words.listed([report.cells[at].title for at in each.cells]), len(each.cells)),
        )
        for each in report.doubts
    ]
    columns = (
        Column("effect"),
        Column("flag"),
        Column("what it means", cut=True),
        Column("cells", cut=True),
    )
    return Table("What to distrust", columns, tuple(rows))


def systems(report: Report) -> list[Table]:
    """Return the facts that all systems share, then those in which they differ."""
    if not report.systems:
        return []
    first = report.systems[0]
    same = Table(
        "The machine" if len(report.systems) == 1 else "Same on every system",
        (Column("fact"), Column("value", cut=True)),
        tuple((text(name), text(first.facts[name])) for name in report.shared),
    )
    differing = dict.fromkeys(
        name for each in report.systems for name in each.facts if name not in report.shared
    )
    apart = Table(
        "What differs between systems",
        (Column("fact"), *(Column(_system(each), cut=True) for each in report.systems)),
        tuple(
            (text(name), *(text(each.facts.get(name, words.UNKNOWN)) for each in report.systems))
            for name in differing
        ),
    )
    return [each for each in (same, apart) if each.rows]


def origins(report: Report) -> Table:
    """Return where each number came from: its profile, where and when it was taken, by what run."""
    rows = []
    for cell in report.cells:
        if not cell.origin:
            continue
        origin = cell.origin
        taken = origin.taken_at.replace("T", " ").removesuffix("Z")
        rows.append(
            (
                text(cell.title),
                text(f"{origin.node} {origin.slot}"),
                text(taken),
                text(_came(report, cell) or "this run"),
                Datum(str(origin.attempts), origin.attempts),
                text(cell.command),
            )
        )
    columns = (
        Column("cell", cut=True),
        Column("where"),
        Column("taken", "UTC"),
        Column("by"),
        Column("attempts", right=True),
        Column("look further"),
    )
    return _without_constants(Table("Where each number comes from", columns, tuple(rows)))


def quality(cell: Cell) -> Datum:
    """Return how far to trust a cell, as a sign and a word."""
    if not isinstance(cell.figures, Figures):
        tones: dict[str, Tone] = {"failed": "bad", "missing": "warn"}
        said = words.STATES[cell.state]
        if isinstance(cell.failure, schema.Failure) and cell.state == "failed":
            if cell.is_answer:
                return text(f"○ {words.failure(cell.failure.kind)}", tone="quiet", why=cell.reason)
            said = f"✗ {words.failure(cell.failure.kind)}"
        return text(said, tone=tones.get(cell.state, "quiet"), why=cell.reason)
    doubts = [
        each
        for each in cell.figures.flags
        if each in schema.INVALIDATING or each in schema.DEGRADING
    ]
    why = "; ".join(words.flag(each) for each in cell.figures.flags)
    if cell.state == "invalid":
        return text(f"✗ {', '.join(doubts) or 'invalid'}", tone="bad", why=why or cell.reason)
    if cell.figures.validity == "degraded":
        return text(f"! {', '.join(doubts) or 'degraded'}", tone="warn", why=why)
    if cell.figures.stability in ("noisy", "unknown"):
        return text(f"! {cell.figures.stability}", tone="warn", why=why)
    return text(f"✓ {cell.figures.stability}", tone="good", why=why)


def _measured(report: Report, at: int, measure: Measure) -> Datum:
    figures = report.cells[at].figures
    if not isinstance(figures, Figures):
        return Datum(words.UNKNOWN, None, "quiet")
    shown = measure.show(figures)
    why = _reason(report, at, measure.fields)
    tone: Tone = "quiet" if shown.text == words.UNKNOWN else shown.tone
    return Datum(shown.text, shown.value, tone, shown.why or why)


def _reason(report: Report, at: int, fields: Sequence[str]) -> str:
    for name in fields:
        if code := report.null_reasons.get(f"cells.{at}.figures.{name}"):
            return words.reason(code)
    return ""


def _without_constants(table: Table) -> Table:
    """Return the table without the columns that say the same in every row; a note says it once."""
    if len(table.rows) < 2:
        return table
    same = {
        at for at in range(len(table.columns)) if len({row[at].text for row in table.rows}) == 1
    }
    said = [f"{table.columns[at].header}: {table.rows[0][at].text}" for at in sorted(same)]
    return Table(
        table.title,
        tuple(each for at, each in enumerate(table.columns) if at not in same),
        tuple(tuple(each for at, each in enumerate(row) if at not in same) for row in table.rows),
        (*table.notes, *([f"the same for all: {'; '.join(said)}"] if said else [])),
    )


def _attempts(cell: Cell) -> Datum:
    if not cell.origin:
        return Datum(words.UNKNOWN, None, "quiet")
    return Datum(str(cell.origin.attempts), cell.origin.attempts)


def _label(value: str | None) -> Datum:
    if value is None:
        return Datum(words.UNKNOWN, None, "quiet")
    return Datum(value, float(value) if _is_number([value]) else value)


def _is_number(values: Sequence[str]) -> bool:
    return all(each.isascii() and each.isdigit() and len(each) < 16 for each in values)


def _came(report: Report, cell: Cell) -> str:
    """Return where a number came from if not from this run, with its age."""
    if not cell.origin or (cell.origin.run_id == report.run_id and not cell.origin.reused):
        return ""
    age = f", {words.span(cell.origin.age_s)} ago" if isinstance(cell.origin.age_s, int) else ""
    return f"run {cell.origin.run_id}{age}"


def _system(system: System) -> str:
    return f"{system.system_class} {system.system_id[:6]}"


def _counted(said: str, had: Sequence[str]) -> str:
    """Return a reason with its number of cells; what each of them had of the needed, as a range."""
    cells = f"({words.count(len(had), 'cell')})"
    numbers = [int(found[1]) for each in had if (found := _HAD.fullmatch(each))]
    if not numbers:
        return f"{said} {cells}"
    low, high = min(numbers), max(numbers)
    return f"{said}{_HAS}{low if low == high else f'{low} to {high}'}) {cells}"


def _notes(report: Report, measures: Sequence[Measure], wide: bool) -> list[str]:
    """Return what the marks of a table mean, each reason once with the number of cells."""
    notes = []
    measured = [each for each in report.cells if isinstance(each.figures, Figures)]
    if measured and not wide:
        notes.append("±: the larger side of the 95 % interval of p50 over processes")
    counted: dict[str, list[str]] = {}
    for at, cell in enumerate(report.cells):
        for each in measures if isinstance(cell.figures, Figures) else ():
            shown = _measured(report, at, each)
            if shown.text.endswith("~") or shown.text == words.UNKNOWN:
                why = shown.why or "too few independent samples for an interval"
                mark = "~" if shown.text.endswith("~") else words.UNKNOWN
                said, _, has = f"{mark} {each.column.title}: {why}".partition(_HAS)
                counted.setdefault(said, []).append(has)
    notes += [_counted(said, had) for said, had in counted.items()]
    came = [said for each in report.cells if (said := _came(report, each))]
    if came:
        notes.append(
            f"{words.count(len(came), 'cell')} measured before, not again: "
            + words.listed(list(dict.fromkeys(came)))
        )
    return notes
