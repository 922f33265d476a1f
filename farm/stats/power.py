"""How much to measure for a question: repeats for an interval, pairs for a comparison."""

from math import ceil, expm1, sqrt
from typing import Final

from farm.errors import Refused

FIRST_LOOK: Final = 6  # pairs; fewer decide nothing
POWER: Final = 0.9
# (z(0.975) + z(0.9))² = 10.5 variances of a difference, each of which is two of a process
_VARIANCES: Final = 21.0
_ROUNDING: Final = 1e-9  # 21·σ²/δ² of round numbers is a whole number and a bit
_MOST: Final = 1 << 20


def repeats_needed(spread: float, *, half_width: float) -> int:
    """Return the smallest number of repeats whose mean has a 95 % interval of this half-width.

    spread: standard deviation between processes; half_width in the same unit (both relative, or
    both in ms). The smallest R >= 2 with R >= (t(0.975, R - 1)·spread/half_width)². Raises Refused
    unless spread is 0 or more and half_width positive, and where 2^20 repeats would not do.
    """
    _check(spread, half_width)
    most = 2
    while not _suffice(most, spread / half_width):
        if most >= _MOST:
            raise Refused(
                f"no number of repeats reaches {half_width!r}", why=f"they spread by {spread!r}"
            )
        most *= 2
    least = most // 2  # does not suffice, or is 1, which has no interval
    while most - least > 1:
        middle = (least + most) // 2
        if _suffice(middle, spread / half_width):
            most = middle
        else:
            least = middle
    return most


def pairs_needed(spread: float, *, change: float) -> int:
    """Return how many pairs find a change with probability 0.9, planned before any is run.

    spread: standard deviation of ln process medians of one side; change: a ratio minus 1. The
    smallest whole number from 21·spread²/change² on, and at least the 6 of the first look. Raises
    Refused unless spread is 0 or more and change positive.
    """
    _check(spread, change)
    return max(FIRST_LOOK, ceil(_VARIANCES * (spread / change) ** 2 - _ROUNDING))


def detectable_change(spread: float, *, pairs: int, limit: float = 0.05) -> float:
    """Return the change, a ratio minus 1, that so many pairs call with probability 0.9.

    spread: standard deviation (ddof 1) of the differences, which is √2 times that between the
    processes of one side; pairs >= 2; limit: the p that the call needs.
    """
    from scipy.special import stdtrit

    df = pairs - 1
    certain, powerful = stdtrit(df, 1.0 - limit / 2.0), stdtrit(df, POWER)
    return expm1(float(certain + powerful) * spread / sqrt(pairs))


def _suffice(repeats: int, ratio: float) -> bool:
    from scipy.special import stdtrit

    return repeats >= (float(stdtrit(repeats - 1, 0.975)) * ratio) ** 2


def _check(spread: float, wanted: float) -> None:
    if not spread >= 0.0:
        raise Refused(f"a spread of {spread!r}", why="it is 0 or more")
    if not wanted > 0.0:
        raise Refused(f"{wanted!r} cannot be reached", why="it must be more than 0")
