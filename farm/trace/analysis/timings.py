"""The GPU events of a window by column: what is kept of a trace for whoever has no trace any more.

All are whole numbers, nanoseconds from the begin of the window, so that what is computed from them
is the same as what is computed from the trace (`traces.md` §10, §12).
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.errors import Bad
from farm.schema import Stored
from farm.trace.analysis.gathering import Gathered
from farm.trace.analysis.launches import MISSING
from farm.trace.reading.columns import KERNEL, MEMCPY, MEMSET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Flags = NDArray[np.bool_]

MOST: Final = 250_000  # events that an analysis holds
NO_LAUNCH: Final = -1
KINDS: Final = ("kernel", "gpu_memcpy", "gpu_memset")
_KINDS: Final = (KERNEL, MEMCPY, MEMSET)
_LONGEST_NS: Final = 1 << 62


class Timings(Stored, frozen=True, kw_only=True):
    """The GPU events that run in the window, by start; the columns at the end have one number each.

    steps: n of the window, which lasts window_ns. devices: all of the file. device, stream, kind,
    category, phase, name: indices of the lists before them. start_ns: from the begin of the window,
    negative for what began before. launch: one number for each launch call of the window that
    launched only kernels which begin in it; −1 for other events.
    """

    steps: int
    window_ns: int
    devices: list[str]
    streams: list[str]
    kinds: list[str]
    categories: list[str]
    phases: list[str]
    names: list[str]
    device: list[int]
    stream: list[int]
    kind: list[int]
    category: list[int]
    phase: list[int]
    name: list[int]
    launch: list[int]
    start_ns: list[int]
    duration_ns: list[int]


class Ran(NamedTuple):
    """The same for numbers: of each GPU event, and of the window that they run in.

    category: an index of categories. launch: as in `Timings`. devices: how many the file has.
    """

    steps: int
    window_ns: int
    devices: int
    categories: list[str]
    start: "Whole"
    end: "Whole"
    is_kernel: "Flags"
    device: "Whole"
    category: "Whole"
    launch: "Whole"

    @property
    def begun(self) -> "Flags":
        """Which events are kernels that begin in the window."""
        inside = (self.start >= 0) & (self.start < self.window_ns)
        return np.asarray(self.is_kernel & inside, bool)

    @property
    def length_ns(self) -> "Whole":
        """How long each event is, in the window where it begins in it."""
        ends = np.minimum(self.end, np.maximum(self.window_ns, self.start))
        return np.asarray(ends - self.start, "i8")


def of_trace(found: Gathered) -> Ran:
    """Return the GPU events that run in the window of a trace."""
    here, gpu, begin = _running(found), found.gpu, found.window.begin
    categories, category = _indexed(found.category[here])
    return Ran(
        steps=found.window.n,
        window_ns=found.window.length_ns,
        devices=len(found.devices),
        categories=categories,
        start=gpu.start[here] - begin,
        end=gpu.end[here] - begin,
        is_kernel=found.is_kernel[here],
        device=found.device[here],
        category=category,
        launch=_groups(found)[here],
    )


def document(found: Gathered, *, most: int = MOST) -> Timings | None:
    """Return them as a document holds them; None where they are more than that."""
    here, gpu = _running(found), found.gpu
    if here.size > most:
        return None
    ran = of_trace(found)
    phases, phase = _indexed(np.array(found.words)[found.phase[here]])
    lanes = [found.trace.lanes[each].inner for each in gpu.lane[here].tolist()]
    streams, stream = _indexed(np.array(lanes, dtype=object))
    numbers, name = np.unique(gpu.name[here], return_inverse=True)
    return Timings(
        steps=ran.steps,
        window_ns=ran.window_ns,
        devices=found.devices,
        streams=streams,
        kinds=list(KINDS),
        categories=ran.categories,
        phases=phases,
        names=[found.trace.names[each] for each in numbers.tolist()],
        device=ran.device.tolist(),
        stream=stream.tolist(),
        kind=(gpu.kind[here].astype("i8") - KERNEL).tolist(),
        category=ran.category.tolist(),
        phase=phase.tolist(),
        name=name.tolist(),
        launch=ran.launch.tolist(),
        start_ns=ran.start.tolist(),
        duration_ns=(ran.end - ran.start).tolist(),
    )


def of_document(kept: Timings) -> Ran:
    """Return what a document holds; raises Bad where its columns do not fit together."""
    size = len(kept.start_ns)
    indices = {
        "device": (kept.device, kept.devices),
        "stream": (kept.stream, kept.streams),
        "kind": (kept.kind, kept.kinds),
        "category": (kept.category, kept.categories),
        "phase": (kept.phase, kept.phases),
        "name": (kept.name, kept.names),
    }
    for word, (column, table) in indices.items():
        _check(word, column, size, below=len(table))
    _check("launch", kept.launch, size, least=NO_LAUNCH, below=_LONGEST_NS)
    _check("start_ns", kept.start_ns, size, least=-_LONGEST_NS, below=_LONGEST_NS)
    _check("duration_ns", kept.duration_ns, size, below=_LONGEST_NS)
    if kept.steps < 1 or not 0 <= kept.window_ns < _LONGEST_NS:
        raise Bad("timings are of no window", why=f"{kept.steps} steps in {kept.window_ns} ns")
    start, kinds = np.array(kept.start_ns, "i8"), np.array(kept.kinds)
    return Ran(
        steps=kept.steps,
        window_ns=kept.window_ns,
        devices=len(kept.devices),
        categories=kept.categories,
        start=start,
        end=start + np.array(kept.duration_ns, "i8"),
        is_kernel=np.array(kinds[kept.kind] == KINDS[0], bool) if size else np.zeros(0, bool),
        device=np.array(kept.device, "i8"),
        category=np.array(kept.category, "i8"),
        launch=np.array(kept.launch, "i8"),
    )


def _check(word: str, column: list[int], size: int, *, below: int, least: int = 0) -> None:
    if len(column) != size:
        why = f"{len(column)} of {word}, and {size} of start_ns"
        raise Bad("the columns of timings differ in length", why=why)
    if column and not (least <= min(column) and max(column) < below):
        why = f"expected {least} and more, below {below}"
        raise Bad(f"{word} of timings leads nowhere", why=why)


def _running(found: Gathered) -> "NDArray[np.intp]":
    """Return which GPU events begin in the window, or began before and run on in it."""
    gpu, window = found.gpu, found.window
    over = (gpu.start < window.end) & (gpu.end > window.begin)
    return np.flatnonzero(found.in_window | over)


def _groups(found: Gathered) -> "Whole":
    """Return for each GPU event the launch call that goes if all of its kernels go.

    Where no launch is recorded, each kernel counts as one.
    """
    begun = found.is_kernel & found.in_window
    made = np.full(found.gpu.start.size, NO_LAUNCH, "i8")
    if found.attribution == "kernel_ts":
        made[begun] = np.arange(np.count_nonzero(begun))
        return made
    launches = found.launches
    size = launches.calls.start.size
    known = found.is_kernel & (launches.launch != MISSING)
    every = np.bincount(launches.launch[known], minlength=size)
    mine = np.bincount(launches.launch[known & begun], minlength=size)
    could = launches.is_launch & (every > 0) & (every == mine)
    could &= found.in_host_window(launches.calls)
    of_call = np.where(could, np.cumsum(could) - 1, NO_LAUNCH)
    made[known] = of_call[launches.launch[known]]
    return made


def _indexed(words: "NDArray[np.str_] | NDArray[np.object_]") -> tuple[list[str], "Whole"]:
    """Return the words that are there, and of each where it stands among them."""
    if not words.size:
        return [], np.zeros(0, "i8")
    found, at = np.unique(words, return_inverse=True)
    return [str(each) for each in found], np.asarray(at, "i8")
