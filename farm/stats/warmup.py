"""When a warm-up may end and when a pass has measured enough: the two rules that the child applies.

Everything here is cheap, and reaches numpy alone: the child calls it between iterations.
"""

from math import ceil, floor, sqrt
from typing import Final

import numpy as np

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
