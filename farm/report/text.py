"""A report as text: blocks for a terminal or a pipe, Markdown, and CSV for other programs.

What a person or a model wrote is data here as well: Markdown escapes it, and CSV defuses what a
spreadsheet would run as a formula.
"""

import re
from collections.abc import Iterator
from typing import Final

from farm import commas, schema
from farm.report import tables, words
from farm.report.record import Cell, Figures, Report, tally
from farm.report.table import Table

# Figures that have no column: lists, which are joined, and what follows from other columns.
_LISTS: Final = ("flags", "neighbours")
_DERIVED: Final = ("p50_half_ms",)
# Those of them that can be null have a column for the reason beside them.
_NULLABLE: Final = tuple(
    name
    for name, kind in Figures.__annotations__.items()
    if type(None) in getattr(kind, "__args__", ())
)
_ORIGIN: Final = {
    "profile_id": "profile_id",
    "cell_id": "cell_id",
    "protocol_id": "protocol_id",
    "system_id": "system_id",
    "system_class": "system_class",
    "run_id": "measured_by_run",
    "node": "node",
    "slot": "slot",
    "device": "device_name",
    "taken_at": "taken_at",
    "attempts": "attempts",
    "reused": "reused",
}
# What Markdown would take for markup. An underscore inside a word is none, nor are the brackets of
# an interval.
_MARKUP: Final = re.compile(
    r"[\\`*{}<>#|~&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\[(?!\d)|\](?=[(:\[])"
)


def blocks(report: Report) -> list[str | Table]:
    """Return what a person reads first: the state, the answers, the table, then what is wrong.

    Lines hold what others wrote, unescaped; whoever prints them makes them harmless.
    """
    shown: list[str | Table] = [heading(report), asked(report), *banners(report)]
    if report.answers:
        shown.append(tables.answers(report))
    shown.append(tables.overview(report))
    shown += [each for each in (tables.problems(report), tables.doubts(report)) if each.rows]
    shown += [f"✗ {each.key}: {each.reason}" for each in report.unreadable]
    shown += [f"not in this report: {each}" for each in report.left_out]
    return shown


def heading(report: Report) -> str:
    """Return the run in one line: its name, its id, its cells by state, and whether that is all."""
    states = " · ".join(f"{each.number} {each.text}" for each in tally(report))
    total = words.count(report.expected, "cell")
    whole = "COMPLETE" if report.complete else "PARTIAL"
    return f"{words.visible(report.name)}  {report.run_id}   {total}: {states or 'none'}   {whole}"


def asked(report: Report) -> str:
    """Return the axes of the run with their values, and the effort."""
    axes = [f"{each.name} {words.listed(each.values, most=6)}" for each in report.axes]
    return " · ".join([*axes, f"effort {report.effort.level}"])


def banners(report: Report) -> list[str]:
    """Return what must be said before any number."""
    said = []
    if report.simulated:
        said.append("! SIMULATED: no number here was measured on a device")
    if report.unreadable:
        number = words.count(len(report.unreadable), "document")
        said.append(f"✗ {number} in the store could not be read; cells may be missing for it")
    return said


def markdown(report: Report) -> str:
    """Return the report as GitHub Markdown: the wide table, and the sections that have rows."""
    parts = [f"# {_escaped(report.name)}", _escaped(heading(report)), _escaped(asked(report))]
    parts += [f"**{_escaped(each)}**" for each in banners(report)]
    sections = [
        tables.answers(report),
        tables.overview(report, wide=True),
        tables.problems(report),
        tables.doubts(report),
        *tables.systems(report),
        tables.origins(report),
    ]
    for each in sections:
        if each.rows:
            parts += [f"## {_escaped(each.title)}", _markdown_table(each)]
            parts += [f"- {_escaped(note)}" for note in each.notes]
    parts += ["## How it was measured", *(f"- {_escaped(each)}" for each in report.method)]
    parts += ["## Not in this report", *(f"- {_escaped(each)}" for each in report.left_out)]
    return _joined(parts)


def comma_separated(report: Report) -> str:
    """Return one line per cell: labels, state, every figure with its unit in the name, and origin.

    A number that is not there is empty, and `<column>_reason` says why. A text that a spreadsheet
    would take for a formula starts with an apostrophe.
    """
    figures = [name for name in Figures.__struct_fields__ if name not in _LISTS + _DERIVED]
    labels = [each.name for each in report.axes]
    header = ["run_id", *labels, "state", "reason", "failure_kind", "failure_phase"]
    header += [column for name in figures for column in _columns(name)]
    header += [*_LISTS, *_ORIGIN.values()]
    lines = [commas.line(map(commas.defused, header))]
    for at, cell in enumerate(report.cells):
        row = [report.run_id, *(cell.labels.get(each, "") for each in labels)]
        row += [cell.state, cell.reason, *_failure(cell)]
        row += [value for name in figures for value in _values(report, at, name)]
        row += [";".join(_list(cell.figures, name)) for name in _LISTS]
        row += [_plain(_field(cell.origin, name)) for name in _ORIGIN]
        lines.append(commas.line(map(commas.defused, row)))
    return "".join(lines)


def _columns(name: str) -> list[str]:
    return [name, f"{name}_reason"] if name in _NULLABLE else [name]


def _values(report: Report, at: int, name: str) -> list[str]:
    value = _plain(_field(report.cells[at].figures, name))
    if name not in _NULLABLE:
        return [value]
    return [value, report.null_reasons.get(f"cells.{at}.figures.{name}", "")]


def _failure(cell: Cell) -> list[str]:
    found = cell.failure
    return [found.kind, found.phase] if isinstance(found, schema.Failure) else ["", ""]


def _field(record: object, name: str) -> object:
    return getattr(record, name, None)


def _list(record: object, name: str) -> list[str]:
    found = getattr(record, name, [])
    return [str(each) for each in found]


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", words.visible(text))


def _markdown_table(table: Table) -> str:
    def line(cells: Iterator[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rules = ("--:" if each.right else "---" for each in table.columns)
    lines = [line(_escaped(each.header) for each in table.columns), line(rules)]
    lines += [line(_escaped(each.text) for each in row) for row in table.rows]
    return "\n".join(lines)


def _joined(parts: list[str]) -> str:
    """Return the parts as paragraphs, the items of a list without blanks between them."""
    text = ""
    for before, part in zip(["", *parts], parts, strict=False):
        close = part.startswith("- ") and before.startswith("- ")
        text += ("" if not text else "\n" if close else "\n\n") + part
    return text + "\n"
