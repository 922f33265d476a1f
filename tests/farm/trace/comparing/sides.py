"""Analyses to compare: made ones of ten steps, with whatever a capture would have told of them."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import structs

from farm.trace.analysis.record import Analysis, Spread
from farm.trace.comparing.comparison import Named, compare
from farm.trace.comparing.record import Row, TraceComparison
from tests.farm.trace import g8

PLAIN: dict[str, Any] = {"step": "plain", "batch": 10}


@cache
def made(busy: float = 0.5) -> Analysis:
    """Steps of 10 ms: 20 launches, 20 kernels of seven names."""
    return g8.analysis(g8.events(busy=busy))


def side(
    steps: Sequence[float] = (),
    *,
    busy: float = 0.5,
    config: dict[str, Any] | None = None,
    **more: Any,
) -> Analysis:
    """An analysis; steps: the trials of its step, config: added to that of a plain step."""
    told: dict[str, Any] = {"config": PLAIN | (config or {})}
    if steps:
        mean = sum(steps) / len(steps)
        told |= {"step_ms": mean, "spread": {"step_ms": spread(steps)}}
    return structs.replace(made(busy), **told | more)


def spread(trials: Sequence[float]) -> Spread:
    """Trials whose deviation is a wrong one, as no reader is to believe it."""
    return Spread(std=99.0, n=len(trials), trials=list(trials))


def compared(before: Analysis, after: Analysis) -> TraceComparison:
    return compare(Named("before.json", before), Named("after.json", after))


def row(found: TraceComparison, metric: str) -> Row:
    """The row of a metric."""
    return next(each for each in found.rows if each.metric == metric)
