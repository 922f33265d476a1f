"""Pairs of processes: their differences, and how often chance alone would sign them like that."""

from typing import Final, Literal

import numpy as np

from farm.errors import Refused
from farm.stats.percentiles import FloatArray, Samples, checked

LargerIs = Literal["worse", "better"]

MOST: Final = 30  # pairs that a comparison runs
_TIE: Final = (
    1e-9  # sums of the same numbers in another order differ by less, relative to their size
)


def differences(a: Samples, b: Samples, *, larger_is: LargerIs = "worse") -> FloatArray:
    """Return ln(b/a) pair by pair, its sign turned so that positive is worse.

    a, b: one value per process, in pairs: equal in number, n >= 1, positive. larger_is: what a
    larger value means; for throughput it is "better". Raises Refused otherwise.
    """
    before, after = checked(a), checked(b)
    if before.size != after.size:
        raise Refused(f"{before.size} and {after.size} processes", why="they come in pairs")
    if before.min() <= 0.0 or after.min() <= 0.0:
        raise Refused("a value is not positive", why="a ratio to it needs a positive one")
    ratios = np.log(after / before)
    return ratios if larger_is == "worse" else -ratios


def sign_flip_p(differences: Samples) -> float:
    """Return the exact two-sided p of the mean when every sign could as well be the other.

    differences: 1 to 30. Evidence beside the t statistic, which assumes nothing but symmetry: at 6
    pairs it cannot fall below 0.031, so it never decides. Raises Refused for more than 30.
    Source: Fisher 1935; all 2^K sums, as 2^(K/2) of one half against those of the other.
    """
    series = finite(differences)
    if series.size > MOST:
        raise Refused(f"{series.size} differences", why=f"at most {MOST} pairs are compared")
    slack = _TIE * float(np.abs(series).sum())
    observed = abs(float(series.sum())) - slack
    if observed <= 0.0:
        return 1.0
    half = series.size // 2
    first, second = _signed_sums(series[:half]), np.sort(_signed_sums(series[half:]))
    above = second.size - np.searchsorted(second, observed - first)
    return float(2.0 * above.sum() / 2.0**series.size)


def finite(differences: Samples) -> FloatArray:
    """Return the differences as float64[n], or raise Refused if one is not a finite number."""
    series = checked(differences)
    if not np.isfinite(series).all():
        raise Refused("a difference is not finite", why="each pair needs two positive values")
    return series


def _signed_sums(values: FloatArray) -> FloatArray:
    """All 2^n sums of the values with either sign each."""
    sums = np.zeros(1)
    for each in values:
        sums = np.concatenate((sums - each, sums + each))
    return sums
