"""Which call on the host launched what on the GPU: by correlation, never by a time stamp."""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.trace.reading.columns import CALLS, GPU, NONE, Events
from farm.trace.reading.reader import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Indices = NDArray[np.intp]

LAUNCH: Final = re.compile(
    r"(?:cuda|cu|hip|mu)\w*(?:Launch(?:Cooperative)?Kernel|GraphLaunch)"
    r"|(?:ur|ze)\w*(?:KernelLaunch|LaunchKernel)",
    re.IGNORECASE,
)
GRAPH: Final = re.compile(r"\w*GraphLaunch", re.IGNORECASE)
_BEGIN: Final = re.compile(r"\w*StreamBeginCapture", re.IGNORECASE)
_END: Final = re.compile(r"\w*StreamEndCapture", re.IGNORECASE)
MISSING: Final = -1
_OVERRUN_NS: Final = 1_000_000


class Launches(NamedTuple):
    """The calls and GPU events of a file, and who launched whom.

    calls: all runtime and driver events; is_launch, is_graph, is_captured: of each. gpu: all GPU
    events, with impossible ends cut. launch: of each GPU event the index of its call, or MISSING.
    """

    calls: Events
    is_launch: "Flags"
    is_graph: "Flags"
    is_captured: "Flags"
    gpu: Events
    launch: "Indices"
    clipped: int


def of(trace: Trace) -> Launches:
    """Return them; calls and GPU events are sorted by start, then by their other columns."""
    events = trace.events
    calls = _sorted(events.where(np.isin(events.kind, CALLS)))
    gpu = _sorted(events.where(np.isin(events.kind, GPU)))
    named = _matching(trace.names, LAUNCH)[calls.name]
    captured = named & _captured(calls, trace.names)
    is_launch = named & ~captured
    launch = _found(calls, is_launch, gpu)
    ends = _possible_ends(gpu, launch)
    clipped = int(np.count_nonzero(ends != gpu.end))
    return Launches(
        calls=calls,
        is_launch=is_launch,
        is_graph=is_launch & _matching(trace.names, GRAPH)[calls.name],
        is_captured=captured,
        gpu=gpu._replace(end=ends),
        launch=launch,
        clipped=clipped,
    )


def starts(found: Launches) -> "NDArray[np.int64]":
    """Return when each GPU event was launched, ns; its own start where nobody knows."""
    known = found.launch != MISSING
    when = found.gpu.start.copy()
    when[known] = found.calls.start[found.launch[known]]
    return when


def _sorted(events: Events) -> Events:
    """Return events in an order that does not depend on that of the file."""
    keys = (events.correlation, events.name, events.lane, events.end, events.start)
    return events.where(np.lexsort(keys))


def _matching(names: list[str], pattern: re.Pattern[str]) -> "Flags":
    return np.array([pattern.match(each) is not None for each in names] or [False])


def _captured(calls: Events, names: list[str]) -> "Flags":
    """Tell which calls stand between a begin and an end of a capture on their thread."""
    change = _matching(names, _BEGIN)[calls.name].astype(int) - _matching(names, _END)[calls.name]
    inside = np.zeros(calls.start.size, bool)
    for lane in np.unique(calls.lane[change != 0]):
        on = np.flatnonzero(calls.lane == lane)
        depth = 0
        for at in on:  # a capture ends where the thread says so, and no deeper than one
            depth = 1 if change[at] > 0 else 0 if change[at] < 0 else depth
            inside[at] = depth > 0
    return inside


def _found(calls: Events, is_launch: "Flags", gpu: Events) -> "Indices":
    """Return for each GPU event the call of its correlation: a launch first, then the earliest."""
    some = np.flatnonzero(calls.correlation != NONE)
    order = some[np.lexsort((some, ~is_launch[some], calls.correlation[some]))]
    ids, first = np.unique(calls.correlation[order], return_index=True)
    launch = np.full(gpu.start.size, MISSING)
    if ids.size:
        at = np.minimum(np.searchsorted(ids, gpu.correlation), ids.size - 1)
        known = (ids[at] == gpu.correlation) & (gpu.correlation != NONE)
        launch[known] = order[first[at[known]]]
    return launch


def _possible_ends(gpu: Events, launch: "Indices") -> "NDArray[np.int64]":
    """Return the ends, cut where a stream went on although an event is said to last.

    Work on one stream is serial. Small overlaps of dependent launches stay.
    """
    ends = gpu.end.copy()
    if not ends.size:
        return ends
    order = np.lexsort((gpu.start, gpu.lane))
    lane, start = gpu.lane[order], gpu.start[order]
    # the first event of the stream that starts later: events of one start are skipped
    new = np.r_[(lane[1:] != lane[:-1]) | (start[1:] != start[:-1]), True]
    later = np.r_[np.arange(1, order.size + 1)[new], order.size]
    following = later[np.searchsorted(later, np.arange(order.size), side="right")]
    valid = following < order.size
    valid[valid] = lane[following[valid]] == lane[valid]
    mine, other = order[valid], order[following[valid]]
    apart = np.where(
        launch[mine] != MISSING,
        launch[mine] != launch[other],
        gpu.correlation[mine] != gpu.correlation[other],
    )
    over = (ends[mine] - gpu.start[other] > _OVERRUN_NS) & apart
    ends[mine[over]] = gpu.start[other[over]]
    return ends
