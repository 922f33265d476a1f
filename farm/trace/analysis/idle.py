"""Why a GPU did nothing: each gap is split by what the next work on the device waited for."""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.trace.analysis import intervals
from farm.trace.analysis.launches import MISSING, Launches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Spans = NDArray[np.int64]

SYNC: Final = re.compile(
    r"\w*Synchronize(?:_\w+)?"
    r"|cudaMemcpy|hipMemcpy|hipMemcpyWithStream|cuMemcpyDtoH(?:_v2)?|hipMemcpyDtoH"
)


class Idle(NamedTuple):
    """Nanoseconds in which no GPU event ran, by cause; they add up to all gaps."""

    host: int = 0
    sync: int = 0
    dataload: int = 0
    kernel_wait: int = 0
    graph: int = 0
    unknown: int = 0


class Waiting(NamedTuple):
    """What the host did meanwhile: its dataload spans, and its blocking calls."""

    dataload: "Spans"
    sync: "Spans"


class Gaps(NamedTuple):
    """Pieces of time in which no GPU event ran, by start, ns; cause: an index of `Idle._fields`."""

    start: "Whole"
    end: "Whole"
    cause: "Whole"


def split(
    found: Launches,
    chosen: "NDArray[np.bool_]",
    busy: "Spans",
    waiting: Waiting,
    *,
    begin: int,
    end: int,
) -> Idle:
    """Return how long each cause of the gaps of one device in [begin, end) lasts, as of `gaps`."""
    made = gaps(found, chosen, busy, waiting, begin=begin, end=end)
    length = made.end - made.start
    return Idle(*(int(length[made.cause == each].sum()) for each in range(len(Idle._fields))))


def gaps(
    found: Launches,
    chosen: "NDArray[np.bool_]",
    busy: "Spans",
    waiting: Waiting,
    *,
    begin: int,
    end: int,
) -> Gaps:
    """Return the gaps of one device in [begin, end), cut where the cause changes, `traces.md` §4.

    chosen: the GPU events of the device, also those outside the window; busy: their union.
    """
    spans = intervals.without(np.array([[begin, end]], "i8"), busy)
    if found.is_launch.any() and spans.size:
        cause = _by_launch(found, spans, _following(found, chosen, spans[:, 1]))
    else:  # nobody saw what launched anything
        cause = np.full(spans.shape[0], _HOST)
    late = cause == _HOST
    cause[late & intervals.covers(waiting.sync, spans[:, 0])] = _SYNC
    rest = intervals.without(spans[late], waiting.dataload)
    loading = intervals.without(spans[late], rest)
    whose = np.searchsorted(spans[:, 0], rest[:, 0], side="right") - 1
    pieces = np.concatenate([spans[~late], rest, loading])
    causes = np.concatenate([cause[~late], cause[whose], np.full(loading.shape[0], _DATALOAD)])
    order = np.argsort(pieces[:, 0], kind="stable")
    return Gaps(pieces[order, 0], pieces[order, 1], causes[order])


_HOST, _SYNC, _DATALOAD, _WAIT, _GRAPH, _UNKNOWN = range(len(Idle._fields))


def _following(found: Launches, chosen: "NDArray[np.bool_]", ends: "Whole") -> "Whole":
    """Return the GPU event that ends each gap, MISSING after the last one.

    Of several that start together, the one that was launched first.
    """
    which = np.flatnonzero(chosen & (found.gpu.end > found.gpu.start))  # an empty one ends no gap
    if not which.size:
        return np.full(ends.shape, MISSING)
    known = found.launch[which] != MISSING
    launched = np.where(known, found.calls.start[found.launch[which]], np.iinfo("i8").max)
    which = which[np.lexsort((launched, found.gpu.start[which]))]
    at = np.searchsorted(found.gpu.start[which], ends, side="left")
    return np.where(at < which.size, which[np.minimum(at, which.size - 1)], MISSING)


def _by_launch(found: Launches, gaps: "Spans", following: "Whole") -> "Whole":
    last = following == MISSING
    launch = np.where(last, MISSING, found.launch[following])
    causes = np.full(gaps.shape[0], _HOST)
    causes[~last & (launch == MISSING)] = _UNKNOWN
    early = (launch != MISSING) & (found.calls.start[launch] <= gaps[:, 0])
    causes[early] = _WAIT
    begun = _first_work(found)
    causes[early & found.is_graph[launch] & (begun[launch] < gaps[:, 0])] = _GRAPH
    return causes


def _first_work(found: Launches) -> "Whole":
    """Return when the first GPU event of each call started, ns; the largest number for none."""
    first = np.full(found.calls.start.size, np.iinfo("i8").max)
    known = found.launch != MISSING
    np.minimum.at(first, found.launch[known], found.gpu.start[known])
    return first
