"""The numbers that real, made-up and damaged traces must give, and those that ours gives.

A number of the list is rounded to six digits, so it may differ by half a unit of the sixth beside
its tolerance; whole numbers are exact.
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farm.trace.analysis.analysing import Analysed

DATA = Path(__file__).parents[5] / "shared" / "data" / "traces"
ABSENT = "the shared data are not here"


@cache
def listed() -> dict[str, Any]:
    """Return the list; {} where it is absent."""
    path = DATA / "expected.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def files(group: str) -> list[Any]:
    """Return what to run a test with: the names of a group, or one that is skipped."""
    found = listed().get(group)
    if found is None:
        return [pytest.param("none", marks=pytest.mark.skip(reason=ABSENT))]
    return sorted(found.get("files", found))


def is_near(value: object, expected: object, tol: float) -> bool:
    """Tell if a number is as expected; words, flags and nulls have to be the same."""
    if isinstance(expected, bool | str) or expected is None or value is None:
        return value == expected
    assert isinstance(expected, int | float)
    rounded = 0.0
    if isinstance(expected, float) and expected:
        rounded = 0.5 * 10.0 ** (math.floor(math.log10(abs(expected))) - 5)
    return isinstance(value, int | float) and abs(value - expected) <= tol + 1.001 * rounded


def numbers(made: Analysed) -> dict[str, Any]:
    """Return every number of an analysis by the name that the list has for it."""
    found = made.analysis
    sums = {each.phase: each.kernel_sum_ms_per_step or 0.0 for each in found.phases}
    spent = sum(sums.values()) or 1.0
    top = found.ops[0] if found.ops else None
    return {
        **msgspec.structs.asdict(found.diagnostics),
        **found.counts,
        **found.metrics,
        "n_steps": found.window.real_steps,
        "steps_known": "no_steps" not in found.quality.flags,
        "clock_skew": made.figures.skewed,
        "clipped_dur": found.quality.repaired.get("clipped_dur", 0),
        "attribution": found.attribution,
        "launches_source": "kernels" if found.attribution == "kernel_ts" else "calls",
        "gpu_util_by_device": made.figures.metrics.gpu_util_by_device,
        "categories_pct": {each.name: each.pct for each in found.categories},
        "phases_pct": {phase: 100 * each / spent for phase, each in sums.items()},
        "phases_kernels_per_step": {each.phase: each.kernels_per_step for each in found.phases},
        "top_op": top and top.op,
        "top_op_self_ms": top and top.ms_per_step,
        "ops_self_ms_by_op": {each.op: each.ms_per_step for each in found.ops},
        "ops_total_ms_by_op": {each.op: each.total_ms_per_step for each in found.ops},
    }
