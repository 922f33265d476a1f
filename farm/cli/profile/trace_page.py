"""The page of `farm profile summary --html`, put together from what the other views say."""

from typing import Final

from farm.cli.profile import trace_lines, trace_views
from farm.report import timeline
from farm.trace.opening import Opened
from farm.trace.timeline import drawing

_TOP: Final = 60  # rows of a table; the others are in the verb of that table


def page(found: Opened, *, name: str) -> str:
    """Return the page of a trace, without its timeline where only its analysis was kept.

    name: what it is called on the command line.
    """
    drawn = drawing.drawn(found.made) if found.made else None
    return timeline.page(found.analysis, told(found, name=name), drawn)


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
