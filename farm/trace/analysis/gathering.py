"""What the numbers of a trace are made of: who launched what, when, and in which phase."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from farm.trace.analysis import intervals, kernels, launches, phases, windows
from farm.trace.analysis.launches import MISSING, Launches
from farm.trace.analysis.phases import FORWARD, UNATTRIBUTED, UNPHASED, Spans
from farm.trace.analysis.windows import Steps, Window
from farm.trace.reading.columns import KERNEL, OP, Events
from farm.trace.reading.reader import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Flags = NDArray[np.bool_]

Attribution = Literal["launch", "kernel_ts"]


class Gathered(NamedTuple):
    """A trace with its structure. Of the GPU events: owner, the step that each was launched in, −1
    for none; device, a number per device; phase, category and unit of its name, as indices.

    words: the phases, with `unphased` and `unattributed`. inferred: some launches or ops were taken
    for forward because they came before the first backward.
    """

    trace: Trace
    launches: Launches
    steps: Steps
    window: Window
    attribution: Attribution
    spans: Spans
    words: list[str]
    inferred: bool
    owner: "Whole"
    device: "Whole"
    devices: list[str]
    phase: "Whole"
    call_phase: "Whole"
    ops: Events
    op_phase: "Whole"
    category: "NDArray[np.str_]"
    unit: "NDArray[np.str_]"

    @property
    def gpu(self) -> Events:
        """All GPU events, by start."""
        return self.launches.gpu

    @property
    def properties(self) -> list[dict[str, Any]]:
        """What the file tells of the devices that did anything."""
        told = self.trace.keys.get("deviceProperties")
        each_told = (
            [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []
        )
        return [each for each in each_told if str(each.get("id")) in self.devices]

    @property
    def is_kernel(self) -> "Flags":
        """Which GPU events are kernels."""
        return np.asarray(self.gpu.kind == KERNEL, bool)

    @property
    def in_window(self) -> "Flags":
        """Which GPU events start in the window."""
        inside = (self.gpu.start >= self.window.begin) & (self.gpu.start < self.window.end)
        return np.asarray(inside, bool)

    @property
    def length_ns(self) -> "Whole":
        """How long each GPU event is, in the window where it starts in it."""
        return np.minimum(self.gpu.end, np.maximum(self.window.end, self.gpu.start)) - (
            self.gpu.start
        )

    def in_host_window(self, events: Events) -> "Flags":
        """Which of some host events start in the window of the host."""
        window = self.window
        inside = (events.start >= window.host_begin) & (events.start < window.host_end)
        return np.asarray(inside, bool)


def covered(found: Gathered, chosen: "Flags") -> "Whole":
    """Return the time of the window in which at least one of the chosen GPU events runs."""
    spans = intervals.union(found.gpu.start[chosen], found.gpu.end[chosen])
    return intervals.clip(spans, found.window.begin, found.window.end)


def gather(trace: Trace) -> Gathered:
    """Return the structure of a trace that holds at least one span."""
    found = launches.of(trace)
    marked = windows.steps(trace)
    owner = windows.owners(found, marked)
    by_launch = bool(found.is_launch.any()) or not found.gpu.start.size
    spans = phases.spans(trace)
    words = list(dict.fromkeys((*spans.words, FORWARD, UNPHASED, UNATTRIBUTED)))
    call_phase, calls_inferred = _host_phases(found.calls, spans, marked, words)
    ops = trace.events.where(trace.events.kind == OP)
    op_phase, ops_inferred = _host_phases(ops, spans, marked, words)
    outer = [trace.lanes[each].outer for each in found.gpu.lane.tolist()]
    devices = sorted(set(outer), key=lambda each: (not each.isdigit(), each.zfill(9)))
    kinds = [kernels.kind(each) for each in trace.names] or [kernels.kind("")]
    return Gathered(
        trace=trace,
        launches=found,
        steps=marked,
        window=windows.window(trace, found, marked, owner),
        attribution="launch" if by_launch else "kernel_ts",
        spans=spans,
        words=words,
        inferred=bool(np.any(calls_inferred & found.is_launch) or np.any(ops_inferred)),
        owner=owner,
        device=np.array([devices.index(each) for each in outer], "i8"),
        devices=devices,
        phase=_gpu_phases(found, spans, call_phase, words, by_launch=by_launch),
        call_phase=call_phase,
        ops=ops,
        op_phase=op_phase,
        category=np.array([each.category for each in kinds])[found.gpu.name],
        unit=np.array([each.unit for each in kinds])[found.gpu.name],
    )


def _unphased(phase: "Whole", words: list[str]) -> "Whole":
    return np.where(phase < 0, words.index(UNPHASED), phase)


def _host_phases(
    events: Events, spans: Spans, marked: Steps, words: list[str]
) -> tuple["Whole", "Flags"]:
    lane, forward = events.lane.astype("i8"), words.index(FORWARD)
    phase, inferred = phases.of_host(spans, events.start, lane, marked, forward=forward)
    return _unphased(phase, words), inferred


def _gpu_phases(
    found: Launches, spans: Spans, call_phase: "Whole", words: list[str], *, by_launch: bool
) -> "Whole":
    """Return the phase of each launch; an orphan has none, and is never guessed."""
    if not by_launch:
        return _unphased(phases.anywhere(spans, found.gpu.start), words)
    phase = np.full(found.gpu.start.size, words.index(UNATTRIBUTED))
    known = found.launch != MISSING
    phase[known] = call_phase[found.launch[known]]
    return phase
