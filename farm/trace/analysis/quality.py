"""What is to be doubted about the numbers of a trace, and how far they can be trusted."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from farm.trace.analysis import intervals, measures
from farm.trace.analysis.figures import Figures
from farm.trace.analysis.gathering import Gathered
from farm.trace.analysis.launches import MISSING
from farm.trace.analysis.measures import mean

Confidence = Literal["high", "medium", "low"]
_DISTRUSTED: Final = ("no_steps", "no_launches", "truncated")
_MANY: Final = 3
_FEW_STEPS: Final = 3
_UNATTRIBUTED: Final = 0.05  # of kernel time
_UNSTEADY: Final = 0.10  # sample deviation over mean of the steps
_OVERLAP: Final = 0.01  # of busy time
_GRAPH_GAPS: Final = 0.10  # of the step

_OF_TRACES: Final[Mapping[str, str]] = {
    "no_steps": "no step is marked, so a step is all that the device did",
    "few_steps": "fewer than three steps",
    "no_launches": "no launch is recorded, so work counts where it ran, not where it was launched",
    "unattributed": "more than 5 % of the kernel time was launched before the trace began",
    "repaired": "the file was damaged, and mended",
    "truncated": "the file ends in the middle of an event",
    "clipped_dur": "events lasted on although their stream went on; they were cut",
    "unsteady": "the steps differ by more than 10 %",
    "stream_overlap": "kernels of one stream overlap by more than 1 % of the busy time",
    "graph_gaps": "more than 10 % of the step are gaps within graphs",
    "near_threshold": "the number that decided is within 5 % of its threshold",
}
_OF_IMPORTS: Final[Mapping[str, str]] = {
    "cut": "the tool keeps 40 rows of a phase, so there were more",
    "last_trial": "all but images/s is of the last trial",
}
_OF_CAPTURES: Final[Mapping[str, str]] = {
    "instrumented": "the profiler made a step more than 25 % longer",
}
FLAGS: Final[Mapping[str, str]] = {**_OF_TRACES, **_OF_IMPORTS, **_OF_CAPTURES}


class Quality(Struct, frozen=True, kw_only=True):
    """flags: those of FLAGS that hold. repaired, dropped: events by what was wrong with them."""

    flags: list[str]
    repaired: dict[str, int]
    dropped: dict[str, int]


def quality(found: Gathered, figures: Figures) -> Quality:
    """Return the doubts of a trace."""
    tally = found.trace.tally
    repaired = dict(tally.repaired)
    if found.launches.clipped:
        repaired["clipped_dur"] = found.launches.clipped
    metrics = figures.metrics
    holds = {
        "no_steps": not found.steps.start.size,
        **of_steps(found.window.n, metrics.step_ms_cv),
        "no_launches": found.attribution == "kernel_ts",
        "unattributed": _orphaned(found) > _UNATTRIBUTED,
        "repaired": bool(repaired),
        "truncated": tally.dropped["truncated"] > 0,
        "clipped_dur": found.launches.clipped > 0,
        "stream_overlap": int(measures.overlaps(found).sum()) > _OVERLAP * _busy(found),
        "graph_gaps": _graph_gaps(found, figures) > _GRAPH_GAPS,
        "near_threshold": figures.bound.near,
    }
    assert holds.keys() == _OF_TRACES.keys(), "each flag has its words"
    return Quality(
        flags=[name for name in _OF_TRACES if holds[name]],
        repaired=repaired,
        dropped=dict(tally.dropped),
    )


def of_steps(count: int, cv: float | None) -> dict[str, bool]:
    """Return whether there are few steps, and whether they differ much; cv: None for a single one.

    cv: their sample deviation over their mean.
    """
    return {"few_steps": count < _FEW_STEPS, "unsteady": (cv or 0.0) > _UNSTEADY}


def _busy(found: Gathered) -> int:
    """Return the ns in which kernels ran on each device, added up over the whole file."""
    gpu, parts = found.gpu, 0
    for device in range(len(found.devices)):
        mine = found.is_kernel & (found.device == device)
        parts += intervals.total(intervals.union(gpu.start[mine], gpu.end[mine]))
    return parts


def _graph_gaps(found: Gathered, figures: Figures) -> float:
    """Return the share of the window that is gaps within graphs, as the mean over devices."""
    if figures.metrics.idle_graph_ms is None:
        return 0.0
    return mean([each.idle.graph for each in figures.devices]) / found.window.length_ns


def confidence(flags: Sequence[str]) -> Confidence:
    """Return how far a trace with these flags can be trusted."""
    if len(flags) >= _MANY or any(each in flags for each in _DISTRUSTED):
        return "low"
    return "medium" if flags else "high"


def _orphaned(found: Gathered) -> float:
    """Return the share of kernel time in the window whose launch nobody saw."""
    kernels = found.is_kernel & found.in_window
    whole = int(found.length_ns[kernels].sum())
    if not whole or found.attribution == "kernel_ts":
        return 0.0
    lost = kernels & (found.launches.launch == MISSING)
    return int(found.length_ns[lost].sum()) / whole
