"""The steps of a trace, and the window of time that all its numbers are taken over."""

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from farm.trace.analysis import launches
from farm.trace.analysis.launches import MISSING, Launches
from farm.trace.reading.columns import ANNOTATION, GPU
from farm.trace.reading.reader import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

_STEP: Final = re.compile(r"ProfilerStep#(\d{1,18})(?!\d)", re.ASCII)
Source = Literal["gpu_period", "one_step", "gpu_span", "cpu_step", "cpu_span"]


class Steps(NamedTuple):
    """Host steps by start, ns; lane: the thread that marked each."""

    start: "Whole"
    end: "Whole"
    lane: "Whole"

    def holding(self, at: "Whole") -> "Whole":
        """Return which step holds each instant, −1 for none."""
        if not self.start.size:
            return np.full(at.shape, -1)
        which = np.searchsorted(self.start, at, side="right") - 1
        return np.where((which >= 0) & (at < self.end[np.maximum(which, 0)]), which, -1)


class Window(NamedTuple):
    """Times in ns: [begin, end) on the device, [host_begin, host_end) on the host, n steps in it.

    step_ns: the lengths of the single steps.
    """

    begin: int
    end: int
    host_begin: int
    host_end: int
    n: int
    source: Source
    step_ns: tuple[int, ...]

    @property
    def length_ns(self) -> int:
        """How long it is on the device."""
        return self.end - self.begin


def steps(trace: Trace) -> Steps:
    """Return the steps that were marked, the earliest of each number."""
    numbers = [_STEP.match(each) for each in trace.names]
    by_name = np.array([-1 if each is None else int(each[1]) for each in numbers] or [-1])
    events = trace.events
    found = events.where((events.kind == ANNOTATION) & (by_name[events.name] >= 0))
    order = np.lexsort((found.lane, found.end, found.start, by_name[found.name]))
    _, first = np.unique(by_name[found.name][order], return_index=True)
    chosen = order[first]
    chosen = chosen[np.lexsort((found.end[chosen], found.start[chosen]))]
    return Steps(found.start[chosen], found.end[chosen], found.lane[chosen].astype("i8"))


def owners(found: Launches, marked: Steps) -> "Whole":
    """Return for each GPU event the step that its launch started in, −1 for none.

    An orphan, whose launch nobody saw, is owned by none; without any launch in the file each GPU
    event counts as launched when it starts.
    """
    if not found.is_launch.any():
        return marked.holding(found.gpu.start)
    owner = marked.holding(launches.starts(found))
    owner[found.launch == MISSING] = -1
    return owner


def window(trace: Trace, found: Launches, marked: Steps, owner: "Whole") -> Window:
    """Return the window by the first case that holds (`traces.md` §2)."""
    gpu, owning = found.gpu, np.unique(owner[owner >= 0])
    if owning.size >= 2:
        lasts = np.array([gpu.end[owner == each].max() for each in owning])
        ends = np.maximum.accumulate(lasts)
        return Window(
            int(ends[0]),
            int(ends[-1]),
            int(marked.start[owning[0] + 1]),
            int(marked.end[owning[-1]]),
            owning.size - 1,
            "gpu_period",
            tuple(np.diff(ends).tolist()),
        )
    if owning.size == 1:
        begin, end = int(marked.start[owning[0]]), int(marked.end[owning[0]])
        last = max(end, int(gpu.end[owner == owning[0]].max()))
        return Window(begin, last, begin, end, 1, "one_step", (last - begin,))
    if gpu.start.size:
        begin, end = int(gpu.start.min()), int(gpu.end.max())
        called = found.calls.start[found.is_launch]
        host = min(begin, int(called.min())) if called.size else begin
        return Window(begin, end, host, end, 1, "gpu_span", (end - begin,))
    return _of_host(trace, marked)


def _of_host(trace: Trace, marked: Steps) -> Window:
    if marked.start.size >= 2:
        lengths = tuple((marked.end - marked.start)[1:].tolist())
        begin, end = int(marked.start[1]), int(marked.end[1:].max())
        return Window(begin, end, begin, end, len(lengths), "cpu_step", lengths)
    events = trace.events.where(~np.isin(trace.events.kind, GPU))
    if marked.start.size:
        begin, end = int(marked.start[0]), int(marked.end[0])
        return Window(begin, end, begin, end, 1, "cpu_step", (end - begin,))
    begin, end = int(events.start.min(initial=2**62)), int(events.end.max(initial=-(2**62)))
    if begin > end:  # all that was there is of a kind that nothing is made of
        begin = end = 0
    return Window(begin, end, begin, end, 1, "cpu_span", (end - begin,))
