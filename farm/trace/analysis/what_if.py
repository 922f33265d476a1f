"""What a step would take without some of its work: a projection, and the bounds that hold.

Source: `traces.md` §10. The projection is the model of the seed; the bounds are those that no model
can go beyond, because the union of the kernels that stay has to run.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.errors import Refused, did_you_mean
from farm.reading import short
from farm.trace.analysis import intervals
from farm.trace.analysis.bounds import REFUSALS
from farm.trace.analysis.kernels import categories
from farm.trace.analysis.metrics import MS
from farm.trace.analysis.record import Analysis
from farm.trace.analysis.timings import Ran

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BUSY: Final = 0.80  # from here on the device is what limits
CAVEAT: Final = "the cost of a launch is an approximation; only measuring again proves it"


class Basis(NamedTuple):
    """What a projection stands on: ms and counts per step. kernels: whether there are any.

    bound, why: what the analysis says. ran: the GPU events, None where they are not known.
    """

    step_ms: float | None
    busy_ms: float
    dataload_ms: float
    host_ms: float
    launches: float
    util: float
    bound: str
    why: str
    kernels: bool
    ran: Ran | None


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


def basis(analysis: Analysis, ran: Ran | None) -> Basis:
    """Return what an analysis gives a projection to stand on; ran: its GPU events."""

    def number(name: str) -> float:
        value = analysis.metrics.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    kernels = analysis.counts.get("kernels", number("kernels_per_step"))
    return Basis(
        step_ms=analysis.step_ms,
        busy_ms=number("gpu_busy_ms"),
        dataload_ms=number("dataload_ms"),
        host_ms=number("host_overhead_ms"),
        launches=number("launches_per_step"),
        util=number("gpu_util"),
        bound=analysis.bound,
        why=analysis.bound_why,
        kernels=kernels > 0,
        ran=ran,
    )


def without_category(found: Basis, category: str) -> Projection:
    """Return the projection without the kernels of a category.

    Raises Refused if the window has no kernels of it, if nobody knows its events, or if there is
    nothing to project from.
    """
    step = _step(found)
    if (ran := found.ran) is None:
        why = "it does not hold the events, which may overlap"
        raise Refused("no kernels are removed from this analysis", why=why, hint="name its trace")
    kernels = ran.begun
    word = category.lower()
    gone = kernels & (ran.category == (_at(ran, word) if word in ran.categories else -1))
    if not gone.any():
        raise _absent(ran, category)
    own = int(ran.length_ns[gone].sum()) / ran.devices / ran.steps / MS
    exclusive = _exclusive(ran, gone) / ran.steps / MS
    removed = Removed(own, exclusive, _launches(ran, gone) / ran.steps)
    return _projection(found, removed, step)


def without_launches(found: Basis, launches: int) -> Projection:
    """Return the projection with fewer launch calls per step; more than there are is all of them.

    Raises Refused for fewer than one, or where nothing can be projected from.
    """
    if launches < 1:
        raise Refused(f"{launches} launches are none to remove", why="expected 1 or more")
    step, there = _step(found), found.launches
    note = f"there are only {there:g} launches in a step" if launches > there else ""
    return _projection(found, Removed(0.0, 0.0, min(launches, there)), step, note=note)


def _step(found: Basis) -> float:
    """Return how long a step is; raises Refused where nothing can be projected from."""
    if found.bound in REFUSALS:
        raise Refused(f"nothing is projected from {found.bound}", why=found.why)
    if not found.kernels:
        raise Refused("nothing is projected without kernels", why="the trace holds none")
    if not found.launches:
        raise Refused("nothing is projected without launches", why="its window holds none")
    if found.step_ms is None:
        raise Refused("nothing is projected without a step", why="how long one is, is not told")
    return found.step_ms


def _absent(ran: Ran, category: str) -> Refused:
    """Return the error for a category that no kernel here is of, with those that some are of."""
    present = sorted({ran.categories[each] for each in ran.category[ran.begun].tolist()})
    why = f"here are {', '.join(present)}" if present else "its window holds no kernel"
    if category.lower() in categories():
        return Refused(f"no kernel of category {category!r} is here", why=why)
    hint = did_you_mean(category[:100].lower(), present)
    return Refused(f"no category {short(category)}", why=why, hint=hint)


def _at(ran: Ran, category: str) -> int:
    return ran.categories.index(category)


def _projection(found: Basis, removed: Removed, step: float, *, note: str = "") -> Projection:
    busy, data, host = found.busy_ms, found.dataload_ms, found.host_ms
    saved = removed.launches * host / found.launches
    if found.util < _BUSY:
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


def _exclusive(ran: Ran, gone: "NDArray[np.bool_]") -> float:
    """Return the ns in which only what is removed ran, as the mean over devices."""

    def busy(chosen: "NDArray[np.bool_]") -> int:
        spans = intervals.union(ran.start[chosen], ran.end[chosen])
        return intervals.total(intervals.clip(spans, 0, ran.window_ns))

    kernels = ran.is_kernel
    parts = [
        busy(kernels & (ran.device == each)) - busy(kernels & ~gone & (ran.device == each))
        for each in range(ran.devices)
    ]
    return sum(parts) / len(parts)


def _launches(ran: Ran, gone: "NDArray[np.bool_]") -> int:
    """Return how many launch calls of the window launched nothing but what is removed."""
    known = ran.is_kernel & (ran.launch >= 0)
    _, group = np.unique(ran.launch[known], return_inverse=True)
    every, mine = np.bincount(group), np.bincount(group, weights=gone[known])
    return int(np.count_nonzero(every == mine)) if every.size else 0
