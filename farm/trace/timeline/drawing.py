"""The timeline of a trace: its lanes with what has room in a drawing, and one table of names."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from farm.trace.analysis.analysing import Analysed
from farm.trace.analysis.gathering import Gathered
from farm.trace.timeline import lanes, merging
from farm.trace.timeline.lanes import Drawn
from farm.trace.timeline.merging import UNKNOWN
from farm.trace.timeline.record import NOTHING, Lane, Rects, Timeline

MOST_RECTS: Final = 120_000  # some 30 bytes each in a page
_LONGEST: Final = (400, 200, 100, 50, 20)  # characters of a name, so that all fit in:
_ROOM: Final = 1_000_000  # characters of all names
_MOST_STEPS: Final = 2_000
_MARGIN: Final = 50  # one in so many of the window is shown beside it


def drawn(made: Analysed, *, most: int = MOST_RECTS) -> Timeline:
    """Return the timeline of an analysed trace with at most `most` rectangles.

    Half of them are kept for the devices, more if the host needs less. A row of a lane has at least
    one, whatever `most` is.
    """
    found = made.found
    begin, end = _view(found)
    gpu = [*lanes.streams(found, begin, end), *lanes.gaps(found, skewed=made.figures.skewed)]
    host = lanes.threads(found, begin, end)
    gpu.sort(key=lambda each: _place(found, each))
    wanted = sum(each.marks.size for each in host)
    coarse = merging.resolution([each.marks for each in gpu], max(most // 2, most - wanted))
    merged = [merging.merged(each.marks, coarse) for each in gpu]
    rest = most - sum(each.marks.size for each in merged)
    rough = merging.resolution([each.marks for each in host], rest)
    merged += [merging.merged(each.marks, rough) for each in host]
    every, zero = [*gpu, *host], found.window.begin
    whose = {lane: at for at, each in enumerate(every) if each.place == "thread"
             for lane in each.lanes}  # fmt: skip
    names = _Names(found.trace.names)
    made_lanes = []
    for each, what in zip(every, merged, strict=True):
        fine = rough if each.place == "thread" else coarse
        made_lanes.append(_lane(each, what, resolution=fine, zero=zero, names=names, whose=whose))
    steps = _steps(found)
    marked = steps if len(steps) <= _MOST_STEPS else []
    longest, told = cut(names.used())
    window = found.window
    return Timeline(
        window=(0, window.length_ns),
        host=(window.host_begin - zero, window.host_end - zero),
        view=(begin - zero, end - zero),
        steps=[(a - zero, b - zero) for a, b in marked],
        unmarked=len(steps) - len(marked),
        names=told,
        kinds={place: list(words) for place, words in lanes.kinds().items()},
        phases=list(found.words),
        longest=longest,
        lanes=made_lanes,
    )


def cut(names: Sequence[str]) -> tuple[int, list[str]]:
    """Return where names are cut, and all of them: the longest cut for which there is room."""
    fits = [each for each in _LONGEST if sum(min(len(name), each) for name in names) <= _ROOM]
    longest = max(fits, default=_LONGEST[-1])
    return longest, [each if len(each) <= longest else f"{each[: longest - 1]}…" for each in names]


def _view(found: Gathered) -> tuple[int, int]:
    """Return from when to when there is something to see: both windows and a little beside."""
    window = found.window
    begin = min(window.begin, window.host_begin)
    end = max(window.end, window.host_end, begin + 1)
    margin = (end - begin) // _MARGIN
    return begin - margin, end + margin


def _place(found: Gathered, each: Drawn) -> int:
    """Return where a lane of a device stands: its gaps behind its streams, what is folded last."""
    return found.devices.index(each.of) if each.of in found.devices else len(found.devices)


def _steps(found: Gathered) -> list[tuple[int, int]]:
    """Return the steps of the window: on the device one ends where the next begins."""
    window = found.window
    if window.source == "cpu_step":
        marked = found.steps
        inside = (marked.start >= window.begin) & (marked.start < window.end)
        return list(zip(marked.start[inside].tolist(), marked.end[inside].tolist(), strict=True))
    ends = (window.begin + np.cumsum(np.array(window.step_ns, "i8"))).tolist()
    return list(zip([window.begin, *ends], ends, strict=False))


def _lane(
    each: Drawn,
    merged: merging.Merged,
    *,
    resolution: int,
    zero: int,
    names: "_Names",
    whose: dict[int, int],
) -> Lane:
    marks = merged.marks
    launch, by = marks.launch.tolist(), marks.by.tolist()
    rects = Rects(
        start=(marks.start - zero).tolist(),
        length=marks.length.tolist(),
        row=marks.row.tolist(),
        name=names.of(marks.name.tolist()),
        kind=marks.kind.tolist(),
        phase=marks.phase.tolist(),
        launch=[None if at == UNKNOWN else at - zero for at in launch],
        by=[whose.get(lane, NOTHING) for lane in by],
        count=merged.events.tolist(),
        took=merged.took.tolist(),
        parts=merged.parts,
    )
    return Lane(
        place=each.place,
        title=each.title,
        of=each.of,
        rows=int(marks.row.max(initial=0)) + 1,
        events=each.marks.size,
        merged=int(merged.events[merged.events > 1].sum()),
        resolution=resolution if merged.parts else 0,
        rects=rects,
    )


class _Names:
    """The names that are used, each once, numbered as they come."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._numbers: dict[int, int] = {}

    def of(self, which: Sequence[int]) -> list[int]:
        """Return the numbers of some names of the trace; NOTHING stays what it is."""
        numbers = self._numbers
        return [
            NOTHING if each == NOTHING else numbers.setdefault(each, len(numbers)) for each in which
        ]

    def used(self) -> list[str]:
        """Return the names by their numbers."""
        return [self._names[each] for each in self._numbers]
