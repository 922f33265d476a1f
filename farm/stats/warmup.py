"""When a warm-up may end, and how well a median is known: the rules that the child applies.

Everything here is cheap, and reaches numpy alone: the child calls it between iterations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Final

import numpy as np

from farm.errors import Refused
from farm.stats.percentiles import Samples, checked, needed_n, published_n
from farm.stats.spread import MAD_TO_STD, mad, theil_sen

_BLOCK_NS: Final = 20_000_000
_BLOCK_ITERATIONS: Final = 5
# Five iterations of a 50 ms step. A block of slower steps ends here, with fewer, down to one.
_LONG_BLOCK_NS: Final = 250_000_000
WINDOW: Final = 12  # blocks that the rule looks at
_LEVEL: Final = 0.005
_SLOPE: Final = 0.01
# Standard error of the difference between the medians of two halves, in standard deviations.
_MEDIAN_SE: Final = 1.2533 * sqrt(2.0 / (WINDOW // 2))
_RANK_SPREAD: Final = 0.98  # 1.96 standard deviations of Bin(m, 1/2), which are sqrt(m)/2
_LEAST_NS: Final = 300_000_000
_LEAST_GPU_NS: Final = 1_000_000_000  # a clock that idled takes that long to come up
_CLOCK: Final = 0.01
_CAP_NS: Final = 10_000_000_000
_CAP_STEPS: Final = 15  # twelve blocks of one iteration, and a few
_CAP_MOST_NS: Final = 60_000_000_000
_CAP_SHARE: Final = 0.3  # of the job's time limit
_LAYER_WARMUP: Final = 5


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the warm-up: its median, and what else happened in it.

    Each reading but the median is None where nobody could take it: it then stands in no one's way,
    and the flags of the pass say that it is unknown. compiles, retries: events during the block;
    reserved_bytes: by how much the allocator's reservation changed; sm_clock: in any unit.
    """

    median_ns: float
    compiles: int | None = None
    reserved_bytes: int | None = None
    retries: int | None = None
    sm_clock: float | None = None
    thermal: bool | None = None

    @property
    def is_undisturbed(self) -> bool:
        """Whether nothing was compiled and the allocator kept what it had."""
        return not (self.compiles or self.reserved_bytes or self.retries)


def layer_warmup(iterations: int) -> int:
    """Return how many untimed iterations precede a layer pass: 5, or a twentieth if that is more.

    In integers, rounded up. Raises Refused below 1 iteration. Source: S0.5, S0.6.
    """
    if iterations < 1:
        raise Refused(f"a layer pass of {iterations} iterations", why="it needs at least 1")
    return max(_LAYER_WARMUP, -(-iterations // 20))


def converged(blocks: Sequence[Block], *, elapsed_ns: int, gpu: bool = False) -> bool:
    """Return whether the warm-up may end: all conditions of the steady-state rule hold.

    blocks: all so far; elapsed_ns: since the warm-up began. Over the last 12 blocks the medians are
    `steady`, nothing was compiled and the allocator kept still; 0.3 s have passed. With `gpu` 1 s
    has, the SM clock's medians of both halves lie within 1 %, and no block saw a thermal reason.
    Source: measurement §5.
    """
    window = blocks[-WINDOW:]
    if elapsed_ns < (_LEAST_GPU_NS if gpu else _LEAST_NS):
        return False
    if not all(each.is_undisturbed for each in window) or (gpu and not _clock_is_level(window)):
        return False
    return steady([each.median_ns for each in window])


def warmup_cap_ns(typical_ns: float, *, timeout_s: float) -> int:
    """Return after how much time a warm-up ends unconverged.

    typical_ns: an iteration, or 0 if unknown. 10 s, for slow steps 15 iterations if that is longer,
    never over 60 s or 30 % of the job's time limit.
    """
    wanted = min(max(_CAP_NS, _CAP_STEPS * typical_ns), _CAP_MOST_NS)
    return int(min(wanted, _CAP_SHARE * timeout_s * 1e9))


def block_is_full(iterations: int, elapsed_ns: int) -> bool:
    """Return whether a block of so many iterations and so much measured time is complete.

    It is at 20 ms and 5 iterations, or at 250 ms with any number: slow steps make short blocks.
    """
    enough = iterations >= _BLOCK_ITERATIONS and elapsed_ns >= _BLOCK_NS
    return enough or elapsed_ns >= _LONG_BLOCK_NS


def steady(block_medians: Samples) -> bool:
    """Return whether the last 12 block medians neither moved nor slope, beyond what noise explains.

    block_medians: any number; below 12 the answer is False. These are conditions 1 and 2 of the
    steady-state rule; time, compile counters and clocks are the caller's. With s the relative
    robust spread of the window and SE = 1.2533·s·sqrt(2/6): the halves' medians differ by at most
    max(0.5 %, SE), and the Theil–Sen slope times 12 is at most max(1 %, 2·SE) of the median.
    """
    if len(block_medians) < WINDOW:
        return False
    window = checked(block_medians)[-WINDOW:]
    centre = float(np.median(window))
    early = float(np.median(window[: WINDOW // 2]))
    late = float(np.median(window[WINDOW // 2 :]))
    if early <= 0.0 or centre <= 0.0:
        return False  # below the clock's tick there is nothing to judge
    error = _MEDIAN_SE * MAD_TO_STD * mad(window) / centre
    level = abs(late / early - 1.0) <= max(_LEVEL, error)
    slope = abs(theil_sen(window)) * WINDOW / centre <= max(_SLOPE, 2.0 * error)
    return level and slope


def half_width(samples_ns: Samples) -> int | None:
    """Return the half-width of the median's interval in parts per million of the median.

    samples_ns: in the order they were taken. None below six effective samples, and where the
    median is 0. Good for stopping only: ranks m/2 ∓ 0.98·sqrt(m) stand in for the exact ones.
    """
    ordered = np.sort(checked(samples_ns))
    n = ordered.size
    m = published_n(samples_ns, 50.0)
    median = float(np.median(ordered))
    if m < needed_n(50.0) or median <= 0.0:
        return None
    low = max(1, floor(m / 2 - _RANK_SPREAD * sqrt(m)))
    high = m + 1 - low
    width = ordered[-(-high * n // m) - 1] - ordered[low * n // m - 1]
    return ceil(1e6 * float(width) / 2.0 / median)


def _clock_is_level(window: Sequence[Block]) -> bool:
    """No thermal reason, and the halves' median clocks within 1 %, as far as they were read."""
    if any(each.thermal for each in window):
        return False
    halves = (window[: WINDOW // 2], window[WINDOW // 2 :])
    read = [[each.sm_clock for each in half if each.sm_clock is not None] for half in halves]
    if not all(read):
        return True
    early, late = (float(np.median(half)) for half in read)
    return early > 0.0 and abs(late / early - 1.0) <= _CLOCK
