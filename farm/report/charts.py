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
    Cells without a number stand in their line with the reason in words.
    """
    varied = [each for each in report.axes if len(each.values) > 1 and each.name != "model"]
    models = list(dict.fromkeys(each.model for each in report.cells))
    if not varied and len(models) > 1:
        caption = "The models side by side, one cell each."
        return [_plot(report.cells, ["model"], [], name="latency_0", title="", caption=caption)]
    lines, series = _split(varied) if varied else (["model"], [])
    known = list(dict.fromkeys(_joined(each, series) for each in report.cells)) if series else []
    if len(known) > len(dotplot.COLOURS):
        lines, series, known = [each.name for each in varied], [], []
    findings = {each.model: each for each in report.answers if each.metric == "latency"}
    charts = []
    for at, model in enumerate(models):
        found = findings.get(model)
        caption = "No cell of this model has a number to compare."
        if found:
            place = report.cells[found.cell].place
            at_place = f" at {place}" if place else ""
            number = f"{found.value} {found.unit} {found.between}".rstrip()
            caption = f"Lowest latency{at_place}: {number}; {found.certainty}."
        cells = [each for each in report.cells if each.model == model]
        plot = _plot(
            cells, lines, series, known=known, name=f"latency_{at}", title=model, caption=caption
        )
        charts.append(plot)
    return charts


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
