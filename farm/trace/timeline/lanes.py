"""The events of a window by lane: streams and gaps of the devices, and the threads of the host."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.trace.analysis import measures, phases
from farm.trace.analysis.gathering import Gathered
from farm.trace.analysis.idle import SYNC, Idle
from farm.trace.analysis.kernels import categories
from farm.trace.analysis.launches import MISSING
from farm.trace.reading.columns import ANNOTATION, CALLS, OP
from farm.trace.timeline.merging import UNKNOWN, Marks
from farm.trace.timeline.record import NOTHING, Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

SKEWED: Final = "skewed"
COPY: Final = "memcpy"
PHASE, SPAN, OPERATOR, LAUNCH, WAIT, CALL = range(6)
CAUSES: Final = (*Idle._fields, SKEWED)
DEEPEST: Final = 32  # rows of a thread; what is deeper lies upon each other in the last one
_MOST: Final = 24  # lanes of a place; what is left shares one more


def kinds() -> dict[Place, tuple[str, ...]]:
    """Return the words of the kinds of each place."""
    host = ("phase", "span", "op", "launch", "wait", "call")
    return {"stream": categories(), "idle": CAUSES, "thread": host}


class Drawn(NamedTuple):
    """A lane before anything is merged; lanes: those of the file that are in it."""

    place: Place
    title: str
    of: str
    lanes: frozenset[int]
    marks: Marks


def streams(found: Gathered, begin: int, end: int) -> list[Drawn]:
    """Return the GPU events of each stream that touch [begin, end)."""
    gpu, launches = found.gpu, found.launches
    known = launches.launch != MISSING
    words, calls = categories(), launches.calls
    kind = np.zeros(gpu.start.size, "i8")
    for at, word in enumerate(words):
        kind[found.category == word] = at
    marks = Marks(
        start=gpu.start,
        end=gpu.end,
        row=np.zeros(gpu.start.size, "i8"),
        name=gpu.name.astype("i8"),
        kind=np.where(found.is_kernel, kind, words.index(COPY)),
        phase=found.phase,
        launch=np.where(known, _at(calls.start, launches.launch), UNKNOWN),
        by=np.where(known, _at(calls.lane.astype("i8"), launches.launch), NOTHING),
    )
    inside = _touching(marks, begin, end)
    made = []
    for lane in np.unique(gpu.lane[inside]).tolist():
        where = found.trace.lanes[lane]
        mine = marks.where(inside & (gpu.lane == lane))
        title = f"GPU {where.outer}, stream {where.inner}"
        made.append(Drawn("stream", title, where.outer, frozenset({lane}), mine))
    made.sort(key=lambda each: (found.devices.index(each.of), _natural(each.title)))
    return _folded(made, "streams")


def gaps(found: Gathered, *, skewed: bool) -> list[Drawn]:
    """Return the gaps of each device in the window; skewed: the clocks disagree on their cause."""
    made = []
    for device, each in zip(found.devices, measures.gaps(found), strict=True):
        nothing = np.full(each.start.size, NOTHING)
        cause = np.full(each.start.size, CAUSES.index(SKEWED)) if skewed else each.cause
        marks = Marks(
            start=each.start,
            end=each.end,
            row=np.zeros(each.start.size, "i8"),
            name=nothing,
            kind=cause,
            phase=nothing,
            launch=np.full(each.start.size, UNKNOWN),
            by=nothing,
        )
        made.append(Drawn("idle", f"GPU {device}, idle", device, frozenset(), marks))
    return _folded(made, "devices")


def threads(found: Gathered, begin: int, end: int) -> list[Drawn]:
    """Return the spans, ops and calls of each host thread that touch [begin, end), nested.

    The thread that marks the steps comes first, then those that launch most.
    """
    events = found.trace.events
    host = np.isin(events.kind, (ANNOTATION, OP, *CALLS))
    chosen = np.flatnonzero(host & (events.start < end) & (events.end >= begin))
    steps, launched = set(found.steps.lane.tolist()), {}
    made: list[tuple[tuple[bool, int, str], Drawn]] = []
    whose = events.lane[chosen]
    outer = {found.trace.lanes[each].outer for each in np.unique(whose).tolist()}
    for lane in np.unique(whose).tolist():
        where = found.trace.lanes[lane]
        marks = _of_thread(found, chosen[whose == lane])
        launched[lane] = int(np.count_nonzero(marks.kind == LAUNCH))
        process = f", process {where.outer}" if len(outer) > 1 else ""
        title = f"thread {where.inner}{process}"
        drawn = Drawn("thread", title, where.outer, frozenset({lane}), marks)
        made.append(((lane not in steps, -launched[lane], _natural(title)), drawn))
    return _folded([each for _, each in sorted(made, key=lambda pair: pair[0])], "threads")


def _of_thread(found: Gathered, which: "NDArray[np.intp]") -> Marks:
    """Return the events of a thread, the older before the newer that it holds."""
    events = found.trace.events
    kind = _kinds(found, which)
    keys = (events.name[which], events.external[which], kind, -events.end[which])
    order = np.lexsort((*keys, events.start[which]))
    which, kind = which[order], kind[order]
    start, end, lane = events.start[which], events.end[which], events.lane[which]
    forward = found.words.index(phases.FORWARD)
    phase, _ = phases.of_host(found.spans, start, lane.astype("i8"), found.steps, forward=forward)
    number = {word: at for at, word in enumerate(found.words)}
    told = [number.get(phases.word(each, ANNOTATION), NOTHING) for each in found.trace.names]
    spans = np.isin(kind, (PHASE, SPAN))
    phase = np.where(spans, np.array(told or [NOTHING])[events.name[which]], phase)
    return Marks(
        start=start,
        end=end,
        row=_depths(start.tolist(), end.tolist()),
        name=events.name[which].astype("i8"),
        kind=kind,
        phase=phase,
        launch=np.full(start.size, UNKNOWN),
        by=np.full(start.size, NOTHING),
    )


def _kinds(found: Gathered, which: "NDArray[np.intp]") -> "Whole":
    """Return what each event of a host is, as an index of its kinds."""
    events, names = found.trace.events, found.trace.names
    kind, name = events.kind[which], events.name[which]
    told = np.array([bool(phases.word(each, ANNOTATION)) for each in names] or [False])[name]
    waits = np.array([SYNC.fullmatch(each) is not None for each in names] or [False])[name]
    launches = np.unique(found.launches.calls.name[found.launches.is_launch])
    made = np.where(kind == ANNOTATION, np.where(told, PHASE, SPAN), OPERATOR)
    called = np.where(waits, WAIT, np.where(np.isin(name, launches), LAUNCH, CALL))
    return np.where(np.isin(kind, CALLS), called, made)


def _depths(starts: list[int], ends: list[int]) -> "Whole":
    """Return how many older events are open where each begins; no two of a row overlap."""
    depths: list[int] = []
    open_: list[int] = []
    for start, end in zip(starts, ends, strict=True):
        while open_ and open_[-1] <= start:
            open_.pop()
        depths.append(min(len(open_), DEEPEST - 1))
        open_.append(end)
    return np.array(depths, "i8")


def _folded(made: Sequence[Drawn], what: str) -> list[Drawn]:
    """Return the lanes; of very many the last ones share one, so that a drawing has an end."""
    if len(made) <= _MOST + 1:
        return list(made)
    rest = made[_MOST:]
    marks = Marks(
        *(np.concatenate(each) for each in zip(*(one.marks for one in rest), strict=True))
    )
    lanes = frozenset().union(*(each.lanes for each in rest))
    together = marks._replace(row=np.zeros(marks.size, "i8"))
    title = f"{len(rest)} more {what}, upon each other"
    return [*made[:_MOST], Drawn(rest[0].place, title, "", lanes, together)]


def _touching(marks: Marks, begin: int, end: int) -> "NDArray[np.bool_]":
    return np.asarray((marks.start < end) & (marks.end >= begin), bool)


def _at(values: "Whole", which: "NDArray[np.intp]") -> "Whole":
    """Return the values in some places; any of them where the place is MISSING."""
    return values[which] if values.size else np.zeros(which.size, "i8")


def _natural(text: str) -> str:
    return re.sub(r"\d+", lambda found: found[0].zfill(20), text)
