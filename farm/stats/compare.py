"""The paired comparison: what may be said after so many pairs, and is another one worth its time.

A pair is two fresh processes, one of each side, next to each other in time and in random order. A
look is at 6, 10, 15, 20 and 30 pairs, and at each one the chance of a false alarm is spent in part:
five looks with an unspent 5 % each would call 15 % of equal sides different.
"""

from dataclasses import dataclass
from math import copysign, expm1, inf, log, sqrt
from typing import Final, Literal

import numpy as np

from farm.errors import Refused
from farm.stats.pairs import MOST, finite
from farm.stats.percentiles import FloatArray, Samples
from farm.stats.power import FIRST_LOOK, detectable_change

Said = Literal["worse", "better", "same", "go on", "inconclusive"]

LOOKS: Final = (FIRST_LOOK, 10, 15, 20, MOST)
LEAST_CHANGE: Final = 0.01  # a smaller change is none, however certain
SAME_WITHIN: Final = log(1.02)
# Nominal p limits of the t statistic: alpha is spent in proportion to the pairs, so that all looks
# together reach it. Found by simulating 8·10^6 series of equal sides; measurement §15.
_CHANGED: Final = {
    0.05: (0.0100, 0.0086, 0.0117, 0.0143, 0.0249),
    0.01: (0.0020, 0.0016, 0.0020, 0.0024, 0.0043),
}
_SAME: Final = (0.0100, 0.0092, 0.0126, 0.0157, 0.0271)  # one-sided, of 0.05


@dataclass(frozen=True, slots=True)
class Look:
    """What so many pairs say; changes are ratios minus 1, and positive is worse.

    lo, hi: the change that this look cannot exclude; over all looks together they hold the truth
    with probability 1 - alpha. p_same: the larger of the two one-sided p against ±2 %.
    limit, limit_same: what p and p_same may be at most. threshold: the least change that counts.
    detectable: the change that this look would have called with probability 0.9.
    """

    verdict: Said
    pairs: int
    change: float
    lo: float
    hi: float
    p: float
    p_same: float
    limit: float
    limit_same: float
    threshold: float
    detectable: float
    alpha: float


def paired_look(
    differences: Samples, *, alpha: float = 0.05, floor: float = 0.0, bimodal: bool = False
) -> Look:
    """Return what the pairs so far say; `go on` asks for pairs up to the next look.

    differences: one per pair, K of 6, 10, 15, 20 or 30, positive is worse. alpha: 0.05 for one row
    of a comparison, 0.01 for several. floor: what the timer itself takes, as a ratio to p50.
    bimodal: either side has two modes, so that six pairs decide nothing. Raises Refused for
    another K or alpha, and for differences that are not finite. Source: measurement §15.
    """
    series = finite(differences)
    limit, limit_same = _limits(series.size, alpha)
    mean, error, df = _summary(series)
    p, p_same = _two_sided(mean, error, df), _p_same(mean, error, df)
    threshold = max(LEAST_CHANGE, floor)
    change, reach = expm1(mean), _quantile(df, 1.0 - limit / 2.0) * error
    verdict: Said = "inconclusive" if series.size == LOOKS[-1] else "go on"
    if not (bimodal and series.size == LOOKS[0]):
        if p <= limit and abs(change) >= threshold:
            verdict = "worse" if change > 0.0 else "better"
        elif p_same <= limit_same:
            verdict = "same"
    seen = detectable_change(error * sqrt(series.size), pairs=series.size, limit=limit)
    return Look(
        verdict=verdict,
        pairs=series.size,
        change=change,
        lo=expm1(mean - reach),
        hi=expm1(mean + reach),
        p=p,
        p_same=p_same,
        limit=limit,
        limit_same=limit_same,
        threshold=threshold,
        detectable=max(threshold, seen),
        alpha=alpha,
    )


def clock_explains(look: Look, clocked: Samples) -> bool:
    """Return whether a change that a look calls is gone once the GPU's clock is taken out.

    clocked: differences of GPU time × mean SM clock, for the pairs of the look. True makes the row
    incomparable: the device ran slower, and not the program. Raises Refused for another number.
    """
    series = finite(clocked)
    if series.size != look.pairs:
        raise Refused(f"{series.size} clocked pairs of {look.pairs}", why="each pair has one")
    if look.verdict not in ("worse", "better"):
        return False
    mean, error, df = _summary(series)
    change = expm1(mean)
    same_side = (change > 0.0) == (look.verdict == "worse")
    certain = _two_sided(mean, error, df) <= look.limit and abs(change) >= look.threshold
    return not (certain and same_side)


def _limits(pairs: int, alpha: float) -> tuple[float, float]:
    if alpha not in _CHANGED:
        raise Refused(f"alpha {alpha!r} is not offered", why="limits are known for 0.05 and 0.01")
    if pairs not in LOOKS:
        known = ", ".join(map(str, LOOKS))
        raise Refused(f"no look is taken at {pairs} pairs", why=f"looks are at {known}")
    at = LOOKS.index(pairs)
    return _CHANGED[alpha][at], _SAME[at]


def _summary(series: FloatArray) -> tuple[float, float, int]:
    """Mean, its standard error, degrees of freedom."""
    error = float(np.std(series, ddof=1)) / sqrt(series.size)
    return float(series.mean()), error, series.size - 1


def _two_sided(mean: float, error: float, df: int) -> float:
    return 2.0 * _below(df, -abs(_t(mean, error)))


def _p_same(mean: float, error: float, df: int) -> float:
    """The larger p of "below -2 %" and "above +2 %": both must be excluded."""
    return _below(df, _t(abs(mean) - SAME_WITHIN, error))


def _t(value: float, error: float) -> float:
    if error > 0.0:
        return value / error
    return copysign(inf, value) if value else 0.0


def _below(df: int, t: float) -> float:
    from scipy.special import stdtr

    return float(stdtr(df, t))


def _quantile(df: int, p: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, p))
