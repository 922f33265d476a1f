"""When a latency pass has measured enough: it looks at 32, 64, 128 … samples, and never between.

A rule that looked after every sample would stop at a lucky narrow moment. The child calls this, so
it reaches numpy alone.
"""

from dataclasses import dataclass
from typing import Final

from farm.stats.percentiles import Samples, needed_n, published_n
from farm.stats.warmup import half_width

FIRST_LOOK: Final = 32
MOST: Final = FIRST_LOOK << 12  # 131,072 samples are a megabyte, and the last look
LEAST: Final = 6  # samples that bound a median: however slow the step, the pass goes on to them


@dataclass(frozen=True, slots=True)
class Reached:
    """The half-width of the median's interval in parts per million (None: no interval)."""

    half_width_ppm: int | None
    enough: bool


def next_look(n: int) -> int:
    """Return the number of samples at which the pass is judged next, after n of them.

    The smallest 32·2^k above n, at most 131,072; n >= 0.
    """
    return min(MOST, FIRST_LOOK << max(0, (n // FIRST_LOOK).bit_length()))


def enough(
    samples_ns: Samples,
    *,
    half_width_ppm: int,
    spent_ns: int,
    min_time_ns: int,
    tail: float | None = None,
) -> Reached:
    """Return how well the median is known, and whether the pass may end on it.

    samples_ns: in the order they were taken. It may where the half-width is at most the one asked
    for and the least time has passed; with a tail (the highest percentile asked for) also that many
    effective samples must be there as bound it. Source: measurement §6.
    """
    reached = half_width(samples_ns)
    precise = reached is not None and reached <= half_width_ppm and spent_ns >= min_time_ns
    if precise and tail is not None:
        precise = published_n(samples_ns, tail) >= needed_n(tail)
    return Reached(reached, precise)


def out_of_time(n: int, *, spent_ns: int, budget_ns: int) -> bool:
    """Return whether a pass of n samples ends for want of time; with fewer than 6 it never does."""
    return n >= LEAST and spent_ns >= budget_ns
