"""A report as one page that is whole: no request, no eval, every number there without scripts.

The page may be mailed, archived and opened from a disk years later. Its policy lets in nothing
but the scripts written into it, each by its hash, so a hostile name cannot become code even if
the escaping failed.
"""

from collections.abc import Sequence
from typing import Final

from farm.errors import Refused
from farm.report import charts, closed, dotplot, tables, text, words
from farm.report.charts import Chart
from farm.report.record import Answer, Report, tally

MOST_CELLS: Final = 2000
_SCRIPTS: Final = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js", "page.js")
_TONES: Final = {
    "ok": "good",
    "invalid": "bad",
    "failed": "bad",
    "answer": "quiet",
    "pruned": "quiet",
    "skipped": "quiet",
    "missing": "warn",
}
_SURE_SIGNS: Final = {"clear": "✓", "doubted": "!", "close": "≈", "unknown": "?", "alone": "○"}
_BEST: Final = {"latency": "Lowest latency", "throughput": "Highest throughput"}


def page(report: Report) -> str:
    """Return the whole page; the same report gives the same bytes.

    Raises Refused above MOST_CELLS cells: such a page opens slowly and is read by nobody.
    """
    if len(report.cells) > MOST_CELLS:
        raise Refused(
            f"{len(report.cells)} cells are too many for one page",
            why=f"a page holds {MOST_CELLS}",
            hint="choose some of them with -w, or write --format csv",
        )
    template = closed.environment().get_template("report.html.j2")
    return template.render(
        report=report, banners=text.banners(report), **_frame(report), **_tables(report)
    )


def _frame(report: Report) -> dict[str, object]:
    """Return what every page has: style, scripts, the policy that names them, and the charts."""
    scripts = [closed.script(name) for name in _SCRIPTS]
    drawn = charts.latency(report)
    return {
        "policy": closed.policy(scripts),
        "style": closed.markup(closed.asset("page.css")),
        "scripts": [closed.markup(each) for each in scripts],
        "licences": closed.markup(closed.asset("LICENSES.txt")),
        "data": closed.markup(data_block(drawn)),
        "charts": [(each, charts.twin(each)) for each in drawn],
        "tones": _TONES,
        "signs": {"answer": "○"} | {state: said[0] for state, said in words.STATES.items()},
        "tally": tally(report),
        "best": _BEST,
        "sureness": tables.SURENESS,
        "sure_signs": _SURE_SIGNS,
        "attempts": lambda number: words.count(number, "attempt"),
    }


def _tables(report: Report) -> dict[str, object]:
    problems = tables.problems(report)
    unanswered = [each for each in report.cells if each.state != "ok"]
    doubts = [f"{each.words} ({words.count(len(each.cells), 'cell')})" for each in report.doubts]
    return {
        "cards": _cards(report),
        "overview": tables.overview(report, wide=True),
        "problems": problems,
        "problem_cells": list(zip(unanswered, problems.rows, strict=True)),
        "problem_names": words.listed([each.title for each in unanswered]),
        "doubts": tables.doubts(report),
        "doubt_names": words.listed(doubts),
        "systems": tables.systems(report),
        "origins": tables.origins(report),
    }


def data_block(drawn: Sequence[Chart]) -> str:
    """Return what the charts draw as JSON that cannot end a script element: data by column, once.

    Raises Bad if a number is not finite.
    """
    block = {
        "config": dotplot.config(),
        "charts": [{"name": each.name, "spec": each.spec} for each in drawn],
        "data": {
            each.name: {name: [row[name] for row in each.rows] for name in each.rows[0]}
            if each.rows
            else {}
            for each in drawn
        },
    }
    return closed.data_block(block)


def _cards(report: Report) -> list[tuple[str, list[Answer]]]:
    """Return the answers of each card: it is of one model, and of one mode where there are more."""
    made: dict[str, list[Answer]] = {}
    for each in report.answers:
        title = ", ".join(part for part in report.cells[each.cell].work if part)
        made.setdefault(title, []).append(each)
    return list(made.items())
