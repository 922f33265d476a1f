"""The phases of a capture: those that its trace has, with the wall times of its stage timers."""

from statistics import fmean, median
from typing import Final

from msgspec import structs

from farm.schema import Captured
from farm.trace.analysis.record import Analysis
from farm.trace.analysis.tables import PhaseRow, place

_MS: Final = 1e6  # ns
_UNTIMED: Final = "not_probed: it was not timed without the profiler"


def stages(beside: Captured) -> dict[str, float]:
    """Return the median of each stage in ms, of those that were timed apart."""
    return {name: median(times) / _MS for name, times in beside.stages_ns.items() if times}


def phases(base: Analysis, beside: Captured) -> list[PhaseRow]:
    """Return the phases with the wall times of their timers.

    What no timer saw has none: the span of a trace is what the profiler made of it. For data it is
    the mean wait of the plain steps, as everywhere: ten steps may meet no burst.
    """
    walls, found = stages(beside), []
    if beside.waits_ns:
        walls["dataload"] = fmean(beside.waits_ns) / _MS
    for row in base.phases:
        found.append(structs.replace(row, wall_ms_per_step=walls.pop(row.phase, None)))
    for name, wall in walls.items():
        found.append(
            PhaseRow(
                phase=name,
                gpu_ms_per_step=None,
                kernel_sum_ms_per_step=None,
                wall_ms_per_step=wall,
                kernels_per_step=None,
                ops_per_step=None,
                launches_per_step=None,
                unique_kernels=None,
            )
        )
    return sorted(found, key=place)


def metrics(rows: list[PhaseRow]) -> dict[str, float | None]:
    """Return the numbers of the phases by the names of their metrics."""
    found: dict[str, float | None] = {}
    for row in rows:
        found |= {
            f"{row.phase}_ms": row.wall_ms_per_step,
            f"{row.phase}_gpu_ms": row.gpu_ms_per_step,
            f"{row.phase}_wall_ms": row.wall_ms_per_step,
            f"{row.phase}_kernels": row.kernels_per_step,
            f"{row.phase}_ops": row.ops_per_step,
        }
    found.pop("dataload_ms", None)  # that is what plain steps waited for data
    return found


def untimed(rows: list[PhaseRow]) -> dict[str, str]:
    """Return the reasons of the wall times that no timer took."""
    found = {}
    for number, row in enumerate(rows):
        if row.wall_ms_per_step is None:
            found[f"phases.{number}.wall_ms_per_step"] = _UNTIMED
            found |= {f"metrics.{row.phase}{end}": _UNTIMED for end in ("_ms", "_wall_ms")}
    return found


def placed(base: Analysis, rows: list[PhaseRow]) -> dict[str, str]:
    """Return the reasons of the base, those of its phases by the places that they have now."""
    at = {row.phase: f"phases.{number}." for number, row in enumerate(rows)}
    was = {f"phases.{number}": row.phase for number, row in enumerate(base.phases)}
    found = {}
    for path, why in base.null_reasons.items():
        head, _, name = path.rpartition(".")
        found[f"{at[was[head]]}{name}" if head in was else path] = why
    return found
