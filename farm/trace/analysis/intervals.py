"""Sets of time, as sorted intervals that do not touch: int64 ns, an (n, 2) array of [start, end).

Interval arithmetic in whole nanoseconds is exact, so parts add up to their whole.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Spans = NDArray[np.int64]


def union(start: "Whole", end: "Whole") -> "Spans":
    """Return the time that at least one interval covers; empty ones cover none."""
    some = end > start
    start, end = start[some], end[some]
    if not start.size:
        return np.zeros((0, 2), "i8")
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.r_[True, start[1:] > end[:-1]]
    last = np.r_[first[1:], True]
    return np.column_stack([start[first], end[last]])


def total(spans: "Spans") -> int:
    """Return the length of a set in ns."""
    return int((spans[:, 1] - spans[:, 0]).sum())


def clip(spans: "Spans", begin: int, end: int) -> "Spans":
    """Return the part of a set in [begin, end)."""
    cut = np.clip(spans, begin, end)
    return cut[cut[:, 1] > cut[:, 0]]


def without(spans: "Spans", other: "Spans") -> "Spans":
    """Return the part of a set that another does not cover."""
    if not spans.size or not other.size:
        return spans
    edges = np.concatenate([spans.ravel(), other.ravel()])
    points = np.unique(edges)
    begin, end = points[:-1], points[1:]
    keep = covers(spans, begin) & ~covers(other, begin)
    return union(begin[keep], end[keep])


def covers(spans: "Spans", at: "Whole") -> "NDArray[np.bool_]":
    """Tell for each instant if a set covers it."""
    if not spans.size:
        return np.zeros(at.shape, bool)
    which = np.searchsorted(spans[:, 0], at, side="right") - 1
    return np.asarray((which >= 0) & (at < spans[np.maximum(which, 0), 1]), bool)


def covered(spans: "Spans", start: "Whole", end: "Whole") -> "Whole":
    """Return how much of each interval a set covers, in ns."""
    if not spans.size:
        return np.zeros(start.shape, "i8")
    before = np.r_[0, np.cumsum(spans[:, 1] - spans[:, 0])]

    def until(at: "Whole") -> "Whole":
        which = np.searchsorted(spans[:, 0], at, side="right") - 1
        last = np.maximum(which, 0)
        part = np.minimum(at, spans[last, 1]) - spans[last, 0]
        return np.where(which < 0, 0, before[last] + part)

    return np.asarray(np.maximum(until(end) - until(start), 0), "i8")


def newest(start: "Whole", end: "Whole", at: "Whole") -> "Whole":
    """Return which interval started last of those that cover each instant, −1 for none.

    start: sorted; of intervals that start together the last one counts as the newest.
    """
    found = np.full(at.shape, -1)
    starts, ends = start.tolist(), end.tolist()
    order = np.argsort(at, kind="stable")
    open_: list[int] = []
    following = 0
    for place, now in zip(order.tolist(), at[order].tolist(), strict=True):
        while following < len(starts) and starts[following] <= now:
            open_.append(following)
            following += 1
        while open_ and ends[open_[-1]] <= now:
            open_.pop()
        if open_:
            found[place] = open_[-1]
    return found
