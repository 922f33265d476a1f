"""What a step would take without some of its work: a projection, and the bounds that hold.

Source: `traces.md` §10. The projection is the model of the seed; the bounds are those that no model
can go beyond, because the union of the kernels that stay has to run.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.errors import Refused
from farm.trace.analysis import intervals
from farm.trace.analysis.figures import Figures
from farm.trace.analysis.gathering import Gathered, covered
from farm.trace.analysis.launches import MISSING
from farm.trace.analysis.metrics import MS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BUSY: Final = 0.80  # from here on the device is what limits
CAVEAT: Final = "the cost of a launch is an approximation; only measuring again proves it"


class Removed(NamedTuple):
    """Per step: time of the kernels, the part in which nothing else ran, and launch calls."""

    gpu_ms: float
    exclusive_gpu_ms: float
    launches: float


class Projection(NamedTuple):
    """Milliseconds per step. below_bound: the projection is less than what is left has to take."""

    mechanism: str
    removed: Removed
    now: float
    projected: float
    best: float
    worst: float
    below_bound: bool
    note: str


def without_category(found: Gathered, figures: Figures, category: str) -> Projection:
    """Return the projection without the kernels of a category.

    Raises Refused if the trace has no kernels of it, or nothing to project from.
    """
    _check(figures)
    kernels = found.is_kernel & found.in_window
    gone = kernels & (found.category == category)
    if not gone.any():
        present = ", ".join(sorted(set(found.category[kernels].tolist())))
        raise Refused(f"no kernel of category {category!r} is here", why=f"here are {present}")
    own = int(found.length_ns[gone].sum()) / len(found.devices) / found.window.n / MS
    exclusive = _exclusive(found, gone) / found.window.n / MS
    removed = Removed(own, exclusive, _launches(found, gone) / found.window.n)
    return _projection(figures, removed)


def without_launches(figures: Figures, launches: int) -> Projection:
    """Return the projection with fewer launch calls per step; more than there are is all of them.

    Raises Refused for fewer than one, or where nothing can be projected from.
    """
    if launches < 1:
        raise Refused(f"{launches} launches are none to remove", why="expected 1 or more")
    _check(figures)
    there = figures.metrics.launches_per_step
    note = f"there are only {there:g} launches in a step" if launches > there else ""
    return _projection(figures, Removed(0.0, 0.0, min(launches, there)), note=note)


def _check(figures: Figures) -> None:
    if figures.bound.is_refusal:
        raise Refused(f"nothing is projected from {figures.bound.word}", why=figures.bound.why)
    if not figures.counts.kernels:
        raise Refused("nothing is projected without kernels", why="the trace holds none")
    if not figures.metrics.launches_per_step:
        raise Refused("nothing is projected without launches", why="its window holds none")


def _projection(figures: Figures, removed: Removed, *, note: str = "") -> Projection:
    metrics = figures.metrics
    step, busy = metrics.step_ms, metrics.gpu_busy_ms or 0.0
    data, host = metrics.dataload_ms, metrics.host_overhead_ms
    saved = removed.launches * host / metrics.launches_per_step
    if (metrics.gpu_util or 0.0) < _BUSY:
        mechanism = "fewer launches: the host is what the device waits for"
        projected = max(step - saved, busy + data)
    else:
        mechanism = "less work on the device, which is busy nearly all of the time"
        projected = max(step - removed.gpu_ms, host)
    exclusive = removed.exclusive_gpu_ms
    best = min(step, max(step - exclusive - saved, busy - exclusive, data))
    projected = min(projected, step)
    return Projection(
        mechanism=mechanism,
        removed=removed,
        now=step,
        projected=projected,
        best=best,
        worst=step,
        below_bound=projected < best,
        note=note,
    )


def _exclusive(found: Gathered, gone: "NDArray[np.bool_]") -> float:
    """Return the ns in which only what is removed ran, as the mean over devices."""
    kernels = found.is_kernel

    def busy(chosen: "NDArray[np.bool_]") -> int:
        return intervals.total(covered(found, chosen))

    parts = [
        busy(kernels & (found.device == each)) - busy(kernels & ~gone & (found.device == each))
        for each in range(len(found.devices))
    ]
    return sum(parts) / len(parts)


def _launches(found: Gathered, gone: "NDArray[np.bool_]") -> int:
    """Return how many launch calls of the window launched nothing but what is removed."""
    launches = found.launches
    if found.attribution == "kernel_ts":
        return int(np.count_nonzero(gone))
    calls = launches.calls.start.size
    known = found.is_kernel & (launches.launch != MISSING)
    every = np.bincount(launches.launch[known], minlength=calls)
    mine = np.bincount(launches.launch[known & gone], minlength=calls)
    only = launches.is_launch & (every > 0) & (every == mine)
    return int(np.count_nonzero(only & found.in_host_window(launches.calls)))
