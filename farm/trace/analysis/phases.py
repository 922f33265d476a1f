"""Which phase of a step launched what: by spans that frameworks and our capture leave behind."""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.trace.analysis import intervals
from farm.trace.analysis.windows import Steps
from farm.trace.reading.columns import ANNOTATION, OP
from farm.trace.reading.reader import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

UNPHASED: Final = "unphased"
UNATTRIBUTED: Final = "unattributed"
FORWARD, BACKWARD, OPTIMIZER, DATALOAD = "forward", "backward", "optimizer", "dataload"
_OWN: Final = re.compile(r"step/(.+)")
_MARKED: Final = re.compile(r"## (forward|backward|optimizer) ##")
_SPANS: Final = (
    (OPTIMIZER, re.compile(r"## zero_grad ##|Optimizer\.(?:step|zero_grad)#.*", re.DOTALL)),
    (
        DATALOAD,
        re.compile(r"enumerate\(DataLoader\)#.*|## (?:data_load|load_batch|wait_for_\w*batch) ##"),
    ),
    (FORWARD, re.compile(r"DistributedDataParallel\.forward")),
)
_BACKWARD_OP: Final = re.compile(
    r"autograd::engine::evaluate_function.*|.*Backward\d*|torch::autograd::AccumulateGrad",
    re.DOTALL,
)
_NOBODY: Final = -1


class Spans(NamedTuple):
    """Spans of phases, the earlier first; phase: an index of `words`. is_op: only a fallback."""

    words: list[str]
    start: "Whole"
    end: "Whole"
    lane: "Whole"
    phase: "Whole"
    is_op: "NDArray[np.bool_]"

    def of(self, word: str) -> "NDArray[np.bool_]":
        """Tell which are annotations of a phase."""
        at = self.words.index(word) if word in self.words else _NOBODY
        return np.asarray((self.phase == at) & ~self.is_op, bool)


def word(name: str, kind: int) -> str:
    """Return the phase that a span of this name is of, "" for none."""
    if kind == OP:
        return BACKWARD if _BACKWARD_OP.fullmatch(name) else ""
    if (own := _OWN.fullmatch(name)) is not None:
        return own[1]
    if (marked := _MARKED.fullmatch(name)) is not None:
        return marked[1]
    return next((each for each, pattern in _SPANS if pattern.fullmatch(name)), "")


def spans(trace: Trace) -> Spans:
    """Return the spans of a trace that tell a phase."""
    events = trace.events
    words: dict[str, int] = {}
    chosen, phases = [], []
    for kind in (ANNOTATION, OP):
        told = [word(each, kind) for each in trace.names]
        number = np.array([words.setdefault(each, len(words)) if each else -1 for each in told])
        of_kind = np.flatnonzero(events.kind == kind)
        found = number[events.name[of_kind]] if number.size else np.zeros(0, "i8")
        chosen.append(of_kind[found >= 0])
        phases.append(found[found >= 0])
    which, phase = np.concatenate(chosen), np.concatenate(phases)
    keys = (events.name[which], -events.end[which], events.start[which])
    order = np.lexsort(keys)
    which, phase = which[order], phase[order]
    return Spans(
        list(words),
        events.start[which],
        events.end[which],
        events.lane[which].astype("i8"),
        phase,
        events.kind[which] == OP,
    )


def at(found: Spans, time: "Whole", lane: "Whole") -> "Whole":
    """Return the phase of each instant on a thread as an index of the words, −1 for none.

    That is the span covering it that started last on its thread, or else the annotation that did
    on any: autograd launches from a thread of its own while the main one waits in its span.
    """
    phase = np.full(time.shape, _NOBODY)
    for each in np.unique(lane):
        mine = lane == each
        phase[mine] = _newest(found, found.lane == each, time[mine])
    rest = phase == _NOBODY
    phase[rest] = _newest(found, ~found.is_op, time[rest])
    return phase


def of_host(
    found: Spans, time: "Whole", lane: "Whole", marked: Steps, *, forward: int
) -> tuple["Whole", "NDArray[np.bool_]"]:
    """Return the phase of each instant on a thread as `at` does, and which were taken for forward.

    forward: its index, which those get that tell it only by coming before the first backward.
    """
    phase = at(found, time, lane)
    inferred = inferred_forward(found, phase, time, lane, marked)
    return np.where(inferred, forward, phase), inferred


def anywhere(found: Spans, time: "Whole") -> "Whole":
    """Return the phase of each instant by the spans of all threads, −1 for none."""
    return _newest(found, np.ones(found.start.size, bool), time)


def _newest(found: Spans, chosen: "NDArray[np.bool_]", time: "Whole") -> "Whole":
    """Return the phase of the span that started last of those that cover each instant."""
    which = np.flatnonzero(chosen)
    newest = intervals.newest(found.start[which], found.end[which], time)
    return np.where(newest < 0, _NOBODY, np.r_[found.phase[which], _NOBODY][newest])


def inferred_forward(
    found: Spans, phase: "Whole", time: "Whole", lane: "Whole", marked: Steps
) -> "NDArray[np.bool_]":
    """Tell which instants are forward because they come before the first backward of their step.

    Only in a file that has backward spans and no forward ones, on the thread of the step, and
    where no span tells more.
    """
    nothing = np.zeros(time.shape, bool)
    if FORWARD in found.words or BACKWARD not in found.words or not marked.start.size:
        return nothing
    backward = found.start[found.phase == found.words.index(BACKWARD)]
    step = marked.holding(time)
    begins = np.searchsorted(backward, marked.start)
    first = np.where(
        begins < backward.size, backward[np.minimum(begins, backward.size - 1)], marked.start
    )
    inside = step >= 0
    before = inside & (time < first[step]) & (first[step] < marked.end[step])
    return np.asarray(before & (lane == marked.lane[step]) & (phase == _NOBODY), bool)
