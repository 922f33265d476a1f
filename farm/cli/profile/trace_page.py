"""The page of `farm profile summary --html`, put together from what the other views say."""

from pathlib import Path
from typing import Final

from farm.cli.profile import trace_lines, trace_views
from farm.errors import FarmError
from farm.report import timeline
from farm.trace import opening
from farm.trace.analysis.analysing import Analysed
from farm.trace.analysis.record import Analysis
from farm.trace.opening import Opened
from farm.trace.timeline import drawing

_TOP: Final = 60  # rows of a table; the others are in the verb of that table


def page(found: Opened, *, name: str) -> str:
    """Return the page of a trace.

    name: what it is called on the command line. A document without its events is drawn by the trace
    that it was made from, where that lies where it lay or beside the document; else it has no
    timeline.
    """
    made = found.made or _beside(found.analysis, name)
    drawn = drawing.drawn(made) if made else None
    return timeline.page(found.analysis, told(found, name=name), drawn)


def _beside(kept: Analysis, name: str) -> Analysed | None:
    """Return the trace of a kept analysis, if it is there and still the same."""
    if kept.trace is None or "://" in kept.trace:
        return None
    lay = Path(kept.trace)
    for path in dict.fromkeys((lay, Path(name).parent / lay.name)):
        try:
            made = opening.opened(path).made if path.is_file() else None
        except FarmError:
            continue
        if made is not None and made.analysis.window == kept.window:
            return made
    return None


def told(found: Opened, *, name: str) -> timeline.Told:
    """Return what the page says in words, which are those of the other verbs."""
    analysis = found.analysis
    return timeline.Told(
        name=name,
        distrusted=trace_lines.distrusted(analysis),
        facts=trace_lines.facts(analysis),
        doubts=trace_lines.doubts(analysis),
        phases=trace_views.phases(analysis),
        kernels=trace_views.kernels(
            analysis.kernels[:_TOP], of=len(analysis.kernels), more="`farm profile kernels`"
        ),
        ops=trace_views.ops(analysis.ops[:_TOP], of=len(analysis.ops), more="`farm profile ops`"),
    )
