"""The page of `farm profile summary --html`, put together from what the other views say."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import UNSET

from farm.cli.profile import trace_lines, trace_views
from farm.errors import FarmError
from farm.report import timeline
from farm.report.table import Table
from farm.trace import opening
from farm.trace.analysis.analysing import Analysed
from farm.trace.opening import Opened
from farm.trace.timeline import drawing

_TOP: Final = 60  # rows of a table; the others are in the verb of that table


def page(found: Opened, *, name: str) -> str:
    """Return the page of a trace.

    name: what it is called on the command line. A document without its events is drawn by the trace
    that it was made from, where that lies where it lay or beside the document; else it has no
    timeline. Of several trials that is the trace of the last.
    """
    said = told(found, name=name)
    if found.made is not None:
        return timeline.page(found.analysis, said, drawing.drawn(found.made))
    single = _representative(found)
    made = None if single is None else _beside(single)
    if made is None:
        return timeline.page(found.analysis, said, None)
    if found.analysis.aggregation is not UNSET:
        said = replace(said, last=made.analysis.trace or "")
    return timeline.page(found.analysis, said, drawing.drawn(made))


def _representative(found: Opened) -> Opened | None:
    """Return the trial that the lists of several are of, if its document is still that one."""
    kept = found.analysis
    if kept.aggregation is UNSET:
        return found
    lay = Path(kept.aggregation.representative_profile)
    moved = Path(found.name).parent / lay.parent.name / lay.name
    for each in _opened(lay, moved):
        one = each.analysis
        if (one.kernels, one.ops, one.counts) == (kept.kernels, kept.ops, kept.counts):
            return each
    return None


def _beside(found: Opened) -> Analysed | None:
    """Return the trace of a kept analysis, if it is there and still the same."""
    kept = found.analysis
    if kept.trace is None or "://" in kept.trace:
        return None
    lay = Path(kept.trace)
    for each in _opened(lay, Path(found.name).parent / lay.name):
        if each.made is not None and each.made.analysis.window == kept.window:
            return each.made
    return None


def _opened(*paths: Path) -> Iterator[Opened]:
    """Yield what lies there of a thing that may have been moved, as far as it can be read."""
    for path in dict.fromkeys(paths):
        with suppress(FarmError):
            if os.path.isfile(path):  # of a document by somebody else too
                yield opening.opened(path)


def told(found: Opened, *, name: str) -> timeline.Told:
    """Return what the page says in words, which are those of the other verbs."""
    analysis = found.analysis
    return timeline.Told(
        name=name,
        distrusted=trace_lines.distrusted(analysis),
        facts=trace_lines.facts(analysis),
        doubts=trace_lines.doubts(analysis),
        phases=trace_views.phases(analysis),
        kernels=_named_first(
            trace_views.kernels(
                analysis.kernels[:_TOP], of=len(analysis.kernels), more="`farm profile kernels`"
            )
        ),
        ops=_named_first(
            trace_views.ops(analysis.ops[:_TOP], of=len(analysis.ops), more="`farm profile ops`")
        ),
    )


def _named_first(made: Table) -> Table:
    """Return a table with its last column first: a page holds that one when it is scrolled."""

    rows = tuple((*row[-1:], *row[:-1]) for row in made.rows)
    return Table(made.title, (*made.columns[-1:], *made.columns[:-1]), rows, made.notes)
