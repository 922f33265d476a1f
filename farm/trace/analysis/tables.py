"""Tables of a trace: its kernels, its operators, its phases, and its kernels by category."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from farm.trace.analysis import intervals, kernels, ops
from farm.trace.analysis.figures import Figures
from farm.trace.analysis.gathering import Gathered, covered
from farm.trace.analysis.kernels import Unit
from farm.trace.analysis.metrics import MS
from farm.trace.analysis.phases import UNATTRIBUTED, UNPHASED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]

# The order in which phases are shown; others stand between by their first span (C16).
ORDER: Final = (
    *("dataload", "to_device", "preprocess", "forward", "backward", "postprocess", "optimizer"),
)


class KernelRow(Struct, frozen=True, kw_only=True):
    """Kernels of one name, per step. kernel: what the name says it is. tensorcore: whether its name
    proves matrix units; matrix_unit also tells what nobody knows. pct: of the kernels of the table.
    """

    kernel: str
    raw_name: str
    category: str
    tensorcore: bool
    matrix_unit: Unit
    ms_per_step: float
    pct_of_gpu: float
    count_per_step: float


class OpRow(Struct, frozen=True, kw_only=True):
    """Operators of one name, per step. ms: of no newer operator, which adds up; total: inclusive.

    pct: of the own times of the table. launches: calls made while it was the newest one open.
    Other tools tell inclusive times alone, and no launches.
    """

    op: str
    ms_per_step: float | None
    total_ms_per_step: float
    pct_of_cpu_ops: float | None
    count_per_step: float
    launches_per_step: float | None


class PhaseRow(Struct, frozen=True, kw_only=True):
    """A phase, per step. gpu: union of its kernels; kernel_sum: their sum; both are None where the
    file has no kernel at all. wall: of its spans. launches: None where another tool does not tell.
    """

    phase: str
    gpu_ms_per_step: float | None
    kernel_sum_ms_per_step: float | None
    wall_ms_per_step: float | None
    kernels_per_step: float | None
    ops_per_step: float | None
    launches_per_step: float | None
    unique_kernels: int | None


class CategoryRow(Struct, frozen=True, kw_only=True):
    """A category of kernels, per step. pct: of all kernel time."""

    name: str
    pct: float
    ms_per_step: float


def kernel_rows(found: Gathered, *, phase: str | None = None) -> list[KernelRow]:
    """Return the kernels of the window, or of one phase in it, the costliest first."""
    chosen = found.is_kernel & found.in_window & _of_phase(found, found.phase, phase)
    which = np.flatnonzero(chosen)
    whole, rows = int(found.length_ns[which].sum()), []
    for name, mine in _groups(found.gpu.name, which):
        raw, took = found.trace.names[name], int(found.length_ns[mine].sum())
        kind = kernels.kind(raw)
        rows.append(
            KernelRow(
                kernel=kernels.core_name(raw.lower()) or raw,
                raw_name=raw,
                category=kind.category,
                tensorcore=kind.unit == "yes",
                matrix_unit=kind.unit,
                ms_per_step=took / found.window.n / MS,
                pct_of_gpu=100 * took / whole if whole else 0.0,
                count_per_step=mine.size / found.window.n,
            )
        )
    return sorted(rows, key=lambda row: (-row.ms_per_step, row.raw_name))


def op_rows(found: Gathered, figures: Figures, *, phase: str | None = None) -> list[OpRow]:
    """Return the operators of the window, or of one phase in it, the costliest first."""
    made, own = found.ops, figures.host.own
    chosen = found.in_host_window(made) & _of_phase(found, found.op_phase, phase)
    which = np.flatnonzero(chosen)
    launched = _launches_of(found)
    whole, rows = int(own[which].sum()), []
    for name, mine in _groups(made.name, which):
        took = int(own[mine].sum())
        rows.append(
            OpRow(
                op=found.trace.names[name],
                ms_per_step=took / found.window.n / MS,
                total_ms_per_step=int((made.end - made.start)[mine].sum()) / found.window.n / MS,
                pct_of_cpu_ops=100 * took / whole if whole else 0.0,
                count_per_step=mine.size / found.window.n,
                launches_per_step=int(launched[mine].sum()) / found.window.n,
            )
        )
    return sorted(rows, key=lambda row: (-(row.ms_per_step or 0.0), row.op))


def _of_phase(found: Gathered, phases: "NDArray[np.int64]", phase: str | None) -> "Flags":
    if phase is None:
        return np.ones(phases.shape, bool)
    return np.asarray(phases == found.words.index(phase), bool)


def category_rows(found: Gathered) -> list[CategoryRow]:
    """Return the kernel time of the window by category, the largest first."""
    chosen = found.is_kernel & found.in_window
    whole = int(found.length_ns[chosen].sum())
    rows = []
    for name in sorted(set(found.category[chosen].tolist())):
        took = int(found.length_ns[chosen & (found.category == name)].sum())
        pct = 100 * took / whole if whole else 0.0
        rows.append(CategoryRow(name=name, pct=pct, ms_per_step=took / found.window.n / MS))
    return sorted(rows, key=lambda row: (-row.ms_per_step, row.name))


def phase_rows(found: Gathered) -> list[PhaseRow]:
    """Return the phases that anything belongs to; what belongs to none, and to nobody, last."""
    rows = [_phase(found, at, word) for at, word in enumerate(found.words)]
    some = [
        each
        for each in rows
        if each.kernels_per_step
        or each.ops_per_step
        or each.launches_per_step
        or each.wall_ms_per_step
    ]
    return sorted(some, key=place)


def _phase(found: Gathered, at: int, word: str) -> PhaseRow:
    gpu, n = found.gpu, found.window.n
    kernel = found.is_kernel & (found.phase == at)
    begun = kernel & found.in_window
    calls = found.launches.is_launch & (found.call_phase == at)
    devices = range(len(found.devices))
    busy = sum(intervals.total(covered(found, kernel & (found.device == each))) for each in devices)
    told = bool(found.is_kernel.any())
    return PhaseRow(
        phase=word,
        gpu_ms_per_step=busy / len(found.devices) / n / MS if told else None,
        kernel_sum_ms_per_step=int(found.length_ns[begun].sum()) / n / MS if told else None,
        wall_ms_per_step=_wall(found, word),
        kernels_per_step=int(np.count_nonzero(begun)) / n,
        ops_per_step=int(np.count_nonzero((found.op_phase == at) & found.in_host_window(found.ops)))
        / n,
        launches_per_step=int(np.count_nonzero(calls & found.in_host_window(found.launches.calls)))
        / n,
        unique_kernels=int(np.unique(gpu.name[begun]).size),
    )


def _wall(found: Gathered, word: str) -> float | None:
    """Return the time in which the spans of a phase are open on the host; None without any."""
    mine = found.spans.of(word)
    if not mine.any():
        return None
    window = found.window
    spans = intervals.union(found.spans.start[mine], found.spans.end[mine])
    inside = intervals.clip(spans, window.host_begin, window.host_end)
    return intervals.total(inside) / window.n / MS


def place(row: PhaseRow) -> tuple[int, str]:
    """Return what orders the phases: as a step has them, what belongs to none of them last."""
    last = {UNPHASED: len(ORDER) + 1, UNATTRIBUTED: len(ORDER) + 2}
    at = ORDER.index(row.phase) if row.phase in ORDER else len(ORDER)
    return last.get(row.phase, at), row.phase


def _groups(
    names: "NDArray[np.int32]", which: "NDArray[np.intp]"
) -> Iterator[tuple[int, "NDArray[np.intp]"]]:
    """Yield each name that is among some rows, and which of them have it."""
    if not which.size:
        return
    order = which[np.argsort(names[which], kind="stable")]
    new = np.flatnonzero(np.diff(names[order])) + 1
    for mine in np.split(order, new):
        yield int(names[mine[0]]), mine


def _launches_of(found: Gathered) -> "NDArray[np.int64]":
    """Return how many launch calls each operator made itself: it was the newest one open."""
    calls, launch = found.launches.calls, found.launches.is_launch
    counted = np.zeros(found.ops.start.size, "i8")
    for on in ops.threads(found.ops):
        times = calls.start[launch & (calls.lane == found.ops.lane[on[0]])]
        newest = intervals.newest(found.ops.start[on], found.ops.end[on], times)
        np.add.at(counted, on[newest[newest >= 0]], 1)
    return counted
