"""Synthetic starts of a job: how long a step takes while it gets warm, and what one may read then.

A trace is driven through the product's own rule, iteration by iteration on its own clock. Times are
in seconds from the start of the warm-up.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from farm.stats import spread
from farm.stats.warmup import Block, block_is_full, converged, warmup_cap_ns

Floats = npt.NDArray[np.float64]
NOISE = 0.01
COMPILE_S = 0.5
STALLS = 0.002  # the share of iterations that take five times as long, for no reason


@dataclass(frozen=True)
class Trace:
    """The true course of a step, as a multiple of the level at which it settles.

    course: of seconds, vectorised. compiles: iterations that compile, which takes half a second.
    clock: SM clock of seconds; with one the trace is a GPU's. hot: from when on a thermal reason is
    read, and until when.
    """

    step_s: float
    course: Callable[[Floats], Floats]
    compiles: tuple[int, ...] = ()
    clock: Callable[[float], float] | None = None
    hot: tuple[float, float] = field(default=(np.inf, np.inf))


class Warm(NamedTuple):
    """When the rule ended the warm-up, and as what."""

    at_s: float
    iterations: int
    stop: str


def warm_up(trace: Trace, rng: np.random.Generator, *, timeout_s: float = 1800.0) -> Warm:
    """Run the steady-state rule over a trace until it stops, or its cap does."""
    cap_s = warmup_cap_ns(trace.step_s * 1e9, timeout_s=timeout_s) / 1e9
    blocks: list[Block] = []
    now, done = 0.0, 0
    while True:
        took = _some(trace, rng, now, done)
        size = next(
            count
            for count, spent in enumerate(np.cumsum(took) * 1e9, start=1)
            if block_is_full(count, int(spent))
        )
        compiled = sum(done <= each < done + size for each in trace.compiles)
        ended = now + float(took[:size].sum())
        blocks.append(
            Block(
                median_ns=float(np.median(took[:size])) * 1e9,
                compiles=compiled,
                sm_clock=trace.clock(ended) if trace.clock else None,
                thermal=trace.hot[0] <= ended and now < trace.hot[1],
            )
        )
        now, done = ended, done + size
        if converged(blocks, elapsed_ns=int(now * 1e9), gpu=trace.clock is not None):
            return Warm(now, done, "converged")
        if now > cap_s:
            return Warm(now, done, "cap")


def bias(trace: Trace, begin_s: float, *, seconds: float) -> float:
    """Return how far the true median of a pass lies from the settled level, as a ratio minus 1."""
    return float(np.median(_course(trace, begin_s, seconds))) - 1.0


def is_drifting(trace: Trace, rng: np.random.Generator, begin_s: float, *, seconds: float) -> bool:
    """Return whether the measured pass would carry the flag `drifting`."""
    return spread.is_drifting(_noisy(_course(trace, begin_s, seconds), rng))


def _course(trace: Trace, begin_s: float, seconds: float) -> Floats:
    count = min(4000, max(6, round(seconds / trace.step_s)))
    return trace.course(begin_s + seconds * np.arange(count) / count)


def _some(trace: Trace, rng: np.random.Generator, now: float, done: int) -> Floats:
    """As many iterations as the next block can have, and more."""
    slowest = float(trace.course(np.array([now]))[0]) * trace.step_s
    count = max(1, min(20 + int(0.03 / trace.step_s), int(0.5 / trace.step_s)))
    took = trace.step_s * _noisy(trace.course(now + slowest * np.arange(count)), rng)
    for each in trace.compiles:
        if done <= each < done + count:
            took[each - done] += COMPILE_S
    return took


def _noisy(course: Floats, rng: np.random.Generator) -> Floats:
    noise = np.exp(NOISE * rng.standard_normal(course.size))
    return course * noise * np.where(rng.random(course.size) < STALLS, 5.0, 1.0)
