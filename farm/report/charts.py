"""The charts of a report: what each draws, what it finds, and the table that says the same.

A chart's rows go into the page once, under the chart's name; the table below it shows exactly the
rows that are drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from farm.report import columns, dotplot, words
from farm.report.cells import short
from farm.report.dotplot import Row, Spec
from farm.report.record import Axis, Cell, Figures, Report
from farm.report.table import Column, Datum, Table
from farm.report.table import words as text
from farm.report.tables import quality

MOST_ROWS: Final = 1600  # three marks a row: at most 5,000 marks in a chart


@dataclass(frozen=True, slots=True)
class Chart:
    """name: also that of its data. caption: the finding. rows: what is drawn, and nothing else."""

    name: str
    title: str
    caption: str
    spec: Spec
    rows: tuple[Row, ...]


def latency(report: Report) -> list[Chart]:
    """Return a dot plot of p50 with its interval per model; one for all if each has one cell.

    A line per batch (or per whatever else is varied), a colour and shape per precision and device.
    Each mode has its own plots: on one axis, training would read as a slow inference. Cells without
    a number stand in their line with the reason in words.
    """
    apart = ("model", "mode")
    varied = [each for each in report.axes if len(each.values) > 1 and each.name not in apart]
    works = list(dict.fromkeys(each.work for each in report.cells))
    modes = list(dict.fromkeys(mode for _, mode in works))
    if not varied and len({model for model, _ in works}) > 1:
        return [_side_by_side(report, mode, name=f"latency_{at}") for at, mode in enumerate(modes)]
    lines, series = _split(varied) if varied else (["model"], [])
    known = list(dict.fromkeys(_joined(each, series) for each in report.cells)) if series else []
    if len(known) > len(dotplot.COLOURS):
        lines, series, known = [each.name for each in varied], [], []
    charts = []
    for at, work in enumerate(works):
        name, title = f"latency_{at}", ", ".join(part for part in work if part)
        cells, caption = [each for each in report.cells if each.work == work], _found(report, work)
        plot = _plot(cells, lines, series, known=known, name=name, title=title, caption=caption)
        charts.append(plot)
    return charts


def _side_by_side(report: Report, mode: str, *, name: str) -> Chart:
    """Return one plot of all models, each of which has one cell of the mode."""
    cells = [each for each in report.cells if each.mode == mode]
    caption = "The models side by side, one cell each."
    title = f"mode {mode}" if mode else ""
    return _plot(cells, ["model"], [], name=name, title=title, caption=caption)


def _found(report: Report, work: tuple[str, str]) -> str:
    """Return what a chart finds: the answer about the latency of its model and mode."""
    for each in report.answers:
        if each.metric == "latency" and report.cells[each.cell].work == work:
            place = report.cells[each.cell].place
            at_place = f" at {place}" if place else ""
            number = f"{each.value} {each.unit} {each.between}".rstrip()
            return f"Lowest latency{at_place}: {number}; {each.certainty}."
    return "No cell of this model has a number to compare."


def twin(chart: Chart) -> Table:
    """Return the rows that a chart draws, as a table for everyone who does not see it."""
    shown = [
        (
            text(str(row["cell"])),
            Datum(str(row["value"]) or words.UNKNOWN, row["p50_ms"]),
            _bound(row["lo_ms"]),
            _bound(row["hi_ms"]),
            text(f"{row['quality']}: {row['why']}" if row["why"] else str(row["quality"])),
        )
        for row in chart.rows
    ]
    columns = (
        Column("cell"),
        Column("p50", "ms", right=True),
        Column("from", "ms", right=True),
        Column("to", "ms", right=True),
        Column("quality"),
    )
    return Table(f"The numbers of this chart: {chart.title}".rstrip(": "), columns, tuple(shown))


def _bound(value: str | float | None) -> Datum:
    return Datum(words.UNKNOWN if value is None else f"{value:g}", value)


def _split(varied: Sequence[Axis]) -> tuple[list[str], list[str]]:
    """Return the axis of the lines, and those that make the series: batch is a line if it can."""
    named = [each.name for each in varied]
    line = "batch" if "batch" in named else named[-1]
    return [line], [each for each in named if each != line]


def _joined(cell: Cell, axes: Sequence[str]) -> str:
    found = [short(each, cell.labels[each]) for each in axes if each in cell.labels]
    return words.visible(" · ".join(found))


def _line(cell: Cell, axes: Sequence[str]) -> str:
    if list(axes) == ["batch"]:
        return words.visible(f"batch {cell.labels.get('batch', words.UNKNOWN)}")
    return _joined(cell, axes)


def _plot(
    cells: Sequence[Cell],
    lines: Sequence[str],
    series: Sequence[str],
    *,
    name: str,
    title: str,
    caption: str,
    known: Sequence[str] = (),
) -> Chart:
    rows = [_row(each, lines, series) for each in cells[:MOST_ROWS]]
    if len(cells) > MOST_ROWS:
        caption += f" Drawn are the first {MOST_ROWS} of {len(cells)} cells."
    title = words.visible(title)
    about = f"p50 latency of {title or 'every model'}"
    present = {row["series"] for row in rows}
    looks = {each: at for at, each in enumerate(known) if each in present}
    spec = dotplot.spec(rows, looks, name=name, about=about)
    return Chart(name, title, words.visible(caption), spec, tuple(rows))


def _row(cell: Cell, lines: Sequence[str], series: Sequence[str]) -> Row:
    row: Row = {
        "cell": words.visible((cell.place if lines != ["model"] else "") or cell.title),
        "line": _line(cell, lines),
        "series": _joined(cell, series),
        "state": cell.state,
        "value": "",
        "quality": words.visible(quality(cell).text),
        "why": words.visible(cell.reason),
        "p50_ms": None,
        "lo_ms": None,
        "hi_ms": None,
    }
    figures = cell.figures
    if isinstance(figures, Figures):
        row["value"] = columns.p50(figures).text
        row["p50_ms"] = _drawn(figures.p50_ms)
        row["lo_ms"], row["hi_ms"] = _drawn(figures.p50_lo_ms), _drawn(figures.p50_hi_ms)
    return row


def _drawn(value: float | None) -> float | None:
    """Return the value with six digits: nobody sees more in a picture, and the page is smaller."""
    return None if value is None else float(f"{value:.6g}")
