"""The numbers of a trace: of its devices, of its host, and of the whole file (`traces.md` §3)."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.trace.analysis import idle, intervals, memory, ops, phases
from farm.trace.analysis.gathering import Gathered, covered
from farm.trace.analysis.idle import Gaps, Idle, Waiting
from farm.trace.analysis.memory import Peaks
from farm.trace.reading.columns import MEMCPY, MEMSET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Spans = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_MALLOCS: Final = re.compile(
    r"cudaMalloc|cudaFree|hipMalloc|hipFree|cuMemAlloc(?:_v2)?|cuMemFree(?:_v2)?"
)


class OfDevice(NamedTuple):
    """Nanoseconds in the window, of one device. busy: of its kernels; active: of all its work.

    spread: the window's kernels, one after another. free_comm, free_copy: of collectives, and of
    copies and fills, that nothing else runs beside.
    """

    device: str
    busy: int
    active: int
    spread: int
    free_comm: int
    free_copy: int
    idle: Idle


class OfHost(NamedTuple):
    """Nanoseconds and counts in the host window. op_ns, op_total_ns: own and inclusive times."""

    dataload: int
    launches: int
    graph_launches: int
    mallocs: int
    ops: int
    op_ns: int
    op_total_ns: int
    op_cover: int
    own: "NDArray[np.int64]"


class Counts(NamedTuple):
    """What the whole file holds."""

    kernels: int
    memcpys: int
    memsets: int
    launch_calls: int
    graph_launches: int
    captured_launches: int
    unrecorded_launches: int
    orphans: int
    max_kernels_per_launch: int
    steps: int
    devices: int
    streams: int
    stream_overlaps: int
    graph_replays_short: int
    graph_replays_checked: int


def of_devices(found: Gathered) -> list[OfDevice]:
    """Return the numbers of each device that did anything in the file."""
    waiting = _waiting(found)
    return [_of_device(found, number, waiting) for number in range(len(found.devices))]


def gaps(found: Gathered) -> list[Gaps]:
    """Return the gaps of each device in the window, which its idle split is the lengths of."""
    waiting, window, every = _waiting(found), found.window, []
    for number in range(len(found.devices)):
        mine = found.device == number
        work = covered(found, mine)
        every.append(
            idle.gaps(found.launches, mine, work, waiting, begin=window.begin, end=window.end)
        )
    return every


def _waiting(found: Gathered) -> Waiting:
    return Waiting(dataload_spans(found), _blocking(found))


def _of_device(found: Gathered, number: int, waiting: Waiting) -> OfDevice:
    window, mine = found.window, found.device == number
    kernel = mine & found.is_kernel
    comm = found.category == "comm"

    work, busy = covered(found, mine), covered(found, kernel)
    alone = intervals.without(covered(found, kernel & comm), covered(found, kernel & ~comm))
    copies = intervals.without(covered(found, mine & ~found.is_kernel), busy)
    return OfDevice(
        device=found.devices[number],
        busy=intervals.total(busy),
        active=intervals.total(work),
        spread=int(found.length_ns[kernel & found.in_window].sum()),
        free_comm=intervals.total(alone),
        free_copy=intervals.total(copies),
        idle=idle.split(found.launches, mine, work, waiting, begin=window.begin, end=window.end),
    )


def of_host(found: Gathered) -> OfHost:
    """Return the numbers of the host."""
    window, calls = found.window, found.launches.calls
    inside = found.in_host_window(calls)
    own = ops.self_times(found.ops)
    begun = found.in_host_window(found.ops)
    loading = intervals.clip(dataload_spans(found), window.host_begin, window.host_end)
    launches = int(np.count_nonzero(found.launches.is_launch & inside))
    if found.attribution == "kernel_ts":
        launches = int(np.count_nonzero(found.is_kernel & found.in_window))
    return OfHost(
        dataload=intervals.total(loading),
        launches=launches,
        graph_launches=int(np.count_nonzero(found.launches.is_graph & inside)),
        mallocs=int(np.count_nonzero(_named(found, _MALLOCS)[calls.name] & inside)),
        ops=int(np.count_nonzero(begun)),
        op_ns=int(own[begun].sum()),
        op_total_ns=int((found.ops.end - found.ops.start)[begun].sum()),
        op_cover=ops.cover(found.ops, window.host_begin, window.host_end),
        own=own,
    )


def counts(found: Gathered) -> Counts:
    """Return what the whole file holds, in the window or not."""
    launches, gpu = found.launches, found.gpu
    attributed = launches.launch >= 0
    of_call = np.bincount(
        launches.launch[attributed & found.is_kernel], minlength=launches.calls.start.size
    )
    recorded = np.zeros(launches.calls.start.size, bool)
    recorded[launches.launch[attributed]] = True
    short, checked = _replays(found, of_call)
    return Counts(
        kernels=int(np.count_nonzero(found.is_kernel)),
        memcpys=int(np.count_nonzero(gpu.kind == MEMCPY)),
        memsets=int(np.count_nonzero(gpu.kind == MEMSET)),
        launch_calls=int(np.count_nonzero(launches.is_launch)),
        graph_launches=int(np.count_nonzero(launches.is_graph)),
        captured_launches=int(np.count_nonzero(launches.is_captured)),
        unrecorded_launches=int(np.count_nonzero(launches.is_launch & ~recorded)),
        orphans=int(np.count_nonzero(~attributed & found.is_kernel)),
        max_kernels_per_launch=int(of_call.max(initial=0)),
        steps=found.steps.start.size,
        devices=len(found.devices),
        streams=int(np.unique(gpu.lane[found.is_kernel]).size),
        stream_overlaps=int(overlaps(found).size),
        graph_replays_short=short,
        graph_replays_checked=checked,
    )


def _replays(found: Gathered, of_call: "Spans") -> tuple[int, int]:
    """Return how many graph replays hold fewer than half the kernels of the fullest, of how many.

    Those at the same position in their step are held against each other.
    """
    calls = np.flatnonzero(found.launches.is_graph)
    step = found.steps.holding(found.launches.calls.start[calls])
    position: dict[int, int] = {}
    alike: dict[int, list[int]] = {}
    for call, each in zip(calls.tolist(), step.tolist(), strict=True):
        if each >= 0:
            position[each] = at = position.get(each, -1) + 1
            alike.setdefault(at, []).append(int(of_call[call]))
    short = sum(2 * each < max(many) for many in alike.values() for each in many)
    return short, sum(map(len, alike.values()))


def overlaps(found: Gathered) -> "Spans":
    """Return how long each kernel that began before its stream was done ran beside it, ns."""
    which = np.flatnonzero(found.is_kernel)
    which = which[np.lexsort((found.gpu.end[which], found.gpu.start[which], found.gpu.lane[which]))]
    together: list[int] = []
    for lane in np.unique(found.gpu.lane[which]):
        mine = which[found.gpu.lane[which] == lane]
        start, end = found.gpu.start[mine], found.gpu.end[mine]
        before = np.maximum.accumulate(end)[:-1]
        length = np.minimum(before, end[1:]) - start[1:]
        together += length[start[1:] < before].tolist()
    return np.array(together, "i8")


def peaks(found: Gathered) -> Peaks:
    """Return the peaks of device memory that the file tells."""
    return memory.peaks(found.trace.allocations)


def dataload_spans(found: Gathered) -> "Spans":
    """Return the time in which any thread of the host waited for data."""
    mine = found.spans.of(phases.DATALOAD)
    return intervals.union(found.spans.start[mine], found.spans.end[mine])


def _blocking(found: Gathered) -> "Spans":
    calls = found.launches.calls
    mine = _named(found, idle.SYNC)[calls.name]
    return intervals.union(calls.start[mine], calls.end[mine])


def _named(found: Gathered, pattern: re.Pattern[str]) -> "Flags":
    return np.array([pattern.fullmatch(each) is not None for each in found.trace.names] or [False])


def mean(values: Sequence[float]) -> float:
    """Return the mean over devices; there is at least one."""
    return sum(values) / len(values)
