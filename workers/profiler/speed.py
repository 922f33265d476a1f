"""A latency taken in somebody's own process, and what two of them say about a change."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from farm.stats.percentiles import interval, percentile, published_n


class Milliseconds(float):
    """The median of timed calls in ms: a number like any other, which knows how sure it is.

    samples_ms: every call in order. lo, hi: its 95 % interval, None below six effective samples.
    It is of one process: another process of the same program may differ by more (S2.13).
    """

    samples_ms: tuple[float, ...]
    lo: float | None
    hi: float | None

    def __new__(cls, samples_ms: Sequence[float]) -> "Milliseconds":
        made = super().__new__(cls, percentile(samples_ms, 50.0))
        found = interval(samples_ms, 50.0, m=published_n(samples_ms, 50.0))
        made.samples_ms = tuple(samples_ms)
        made.lo, made.hi = found if found is not None else (None, None)
        return made

    def __getnewargs__(self) -> tuple[tuple[float, ...]]:  # type: ignore[override]
        """Return what a copy is made of: the calls, where a plain number is made of its value."""
        return (self.samples_ms,)


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """How many times faster: before over after, with its 95 % interval, None without one.

    said: `faster` or `slower` if the interval leaves no doubt, else `no difference shown`.
    """

    ratio: float
    lo: float | None
    hi: float | None
    said: str


def speedup(before: Milliseconds, after: Milliseconds) -> Speedup:
    """Return whether a change made the calls faster; both latencies are positive.

    The interval is that of the difference of two logarithms, from the intervals of both medians.
    Both are of one process each, so it says what these calls show, and no more: builds are
    compared by pairs of fresh processes. Source: Zou and Donner 2008 (MOVER); S2.13.
    """
    ratio = float(before) / float(after)
    if before.lo is None or before.hi is None or after.lo is None or after.hi is None:
        return Speedup(ratio=ratio, lo=None, hi=None, said="too few calls to tell")
    down = _reach(log(before / before.lo), log(after.hi / after))
    up = _reach(log(before.hi / before), log(after / after.lo))
    lo, hi = ratio * exp(-down), ratio * exp(up)
    said = "faster" if lo > 1.0 else "slower" if hi < 1.0 else "no difference shown"
    return Speedup(ratio=ratio, lo=lo, hi=hi, said=said)


def _reach(one: float, other: float) -> float:
    return sqrt(one**2 + other**2)
