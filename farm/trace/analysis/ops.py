"""The time of framework operators on the host: each instant belongs to the newest that is open."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from farm.trace.analysis import intervals
from farm.trace.reading.columns import Events

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]


def self_times(ops: Events) -> "Whole":
    """Return the ns of each operator that are of no newer one on its thread.

    Of operators that start together the longer is the older; then the one with the smaller
    External id, then by name. They add up to the union of each thread, also where ranges cross.
    """
    own = np.zeros(ops.start.size, "i8")
    for on in threads(ops):
        own[on] = _of_thread(ops.start[on].tolist(), ops.end[on].tolist())
    return own


def threads(ops: Events) -> Iterator["NDArray[np.intp]"]:
    """Yield the operators of each thread, the newer after the older, whatever their order was."""
    order = np.lexsort((ops.name, ops.external, -ops.end, ops.start))
    for lane in np.unique(ops.lane):
        yield order[ops.lane[order] == lane]


def _of_thread(starts: list[int], ends: list[int]) -> list[int]:
    """Return the time of each range that no later one of the list covers; sorted by start."""
    own = [0] * len(starts)
    open_: list[int] = []
    now = 0

    def until(time: int) -> None:
        """Give the time up to an instant to the newest open ranges."""
        nonlocal now
        while open_ and now < time:
            top = open_[-1]
            if ends[top] <= now:
                open_.pop()
                continue
            stop = min(ends[top], time)
            own[top] += stop - now
            now = stop
            if ends[top] <= now:
                open_.pop()
        now = max(now, time)

    for at, start in enumerate(starts):
        until(start)
        open_.append(at)
    until(max(ends, default=0))
    return own


def cover(ops: Events, begin: int, end: int) -> int:
    """Return the ns of [begin, end) in which at least one operator is open."""
    return intervals.total(intervals.clip(intervals.union(ops.start, ops.end), begin, end))
