"""Two sides that were not measured as pairs: they lean, and no verdict comes of it.

Stored profiles differ in more than what one wants to compare: day, temperature, neighbours. What
is here is printed beside "inconclusive", and gates nothing.
"""

from dataclasses import dataclass
from math import copysign, exp, expm1, inf, sqrt
from typing import Final, Literal

import numpy as np

from farm.errors import Refused
from farm.stats.compare import LEAST_CHANGE, SAME_WITHIN
from farm.stats.pairs import LargerIs
from farm.stats.percentiles import Samples, checked
from farm.stats.spread import std

Lean = Literal["worse", "better", "same", "none"]

_SINGLE: Final = "single_repeat"


@dataclass(frozen=True, slots=True)
class Moments:
    """One side: processes, their mean, their sample standard deviation (None for n = 1)."""

    n: int
    mean: float
    std: float | None


@dataclass(frozen=True, slots=True)
class Welch:
    """The difference b - a, its standard error, Welch's t and df, and the two-sided p."""

    difference: float
    error: float
    df: float
    t: float
    p: float


@dataclass(frozen=True, slots=True)
class Leaning:
    """The ratio b/a with its 95 % interval; lo, hi and p are None for the reason, else ""."""

    ratio: float
    lo: float | None
    hi: float | None
    p: float | None
    leaning: Lean
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TwoErrors:
    """The rule of the seeds: |difference| against twice the combined standard error.

    false_alarm: how often equal sides of these sizes exceed the bound. bound, exceeds and
    false_alarm are None for the reason, which is else "".
    """

    difference: float
    bound: float | None
    exceeds: bool | None
    false_alarm: float | None
    reason: str = ""


def moments(samples: Samples) -> Moments:
    """Return number, mean and sample standard deviation (ddof 1) of one value per process."""
    values = checked(samples)
    return Moments(values.size, float(values.mean()), std(values))


def log_moments(samples: Samples) -> Moments:
    """Return the moments of the logarithms, as a profile stores them of its process medians.

    samples: one value per process, n >= 1. Raises Refused unless all are positive.
    """
    values = checked(samples)
    if values.min() <= 0.0:
        raise Refused("a value is not positive", why="it has no logarithm")
    return moments(np.log(values))


def sample_std(population_std: float, n: int) -> float | None:
    """Return the sample standard deviation behind one that was divided by n; None for n = 1.

    Files of other programs hold such; twice their standard error alarms falsely in 29 % at n = 2.
    """
    return population_std * sqrt(n / (n - 1)) if n > 1 else None


def welch(a: Moments, b: Moments) -> Welch | None:
    """Return Welch's comparison of two means; None where a side has a single process.

    Without any spread t is infinite, or 0 where the means are equal. Source: Welch 1947.
    """
    from scipy.special import stdtr

    if a.std is None or b.std is None:
        return None
    difference = b.mean - a.mean
    of_a, of_b = a.std**2 / a.n, b.std**2 / b.n
    error = sqrt(of_a + of_b)
    if error == 0.0:
        t = copysign(inf, difference) if difference else 0.0
        return Welch(difference, error, float(a.n + b.n - 2), t, 0.0 if difference else 1.0)
    df = (of_a + of_b) ** 2 / (of_a**2 / (a.n - 1) + of_b**2 / (b.n - 1))
    t = difference / error
    return Welch(difference, error, df, t, 2.0 * float(stdtr(df, -abs(t))))


def welch_log(a: Moments, b: Moments, *, larger_is: LargerIs = "worse") -> Leaning:
    """Return the ratio b/a of two sides, its 95 % interval, and which way they lean.

    a, b: moments of ln process values. They lean to `worse` or `better` where the interval lies on
    one side of 1 and the ratio is 1 % or more away, else to `same` where it lies within 2 % of 1,
    else nowhere. larger_is: what a larger value means. A side with a single process has a ratio
    and no more: `single_repeat`.
    """
    from scipy.special import stdtrit

    found = welch(a, b)
    if found is None:
        return Leaning(exp(b.mean - a.mean), None, None, None, "none", _SINGLE)
    reach = float(stdtrit(found.df, 0.975)) * found.error
    low, high = found.difference - reach, found.difference + reach
    return Leaning(
        ratio=exp(found.difference),
        lo=exp(low),
        hi=exp(high),
        p=found.p,
        leaning=_lean(low, high, larger_is),
    )


def two_se(a: Moments, b: Moments) -> TwoErrors:
    """Return the rule of the seeds, b - a in the unit of the means, with its false-alarm rate.

    The bound is 2·√(s_a²/n_a + s_b²/n_b), and the difference must exceed it. A side with a single
    process cannot support the call: `single_repeat`.
    """
    difference = b.mean - a.mean
    if a.std is None or b.std is None:
        return TwoErrors(difference, None, None, None, _SINGLE)
    bound = 2.0 * sqrt(a.std**2 / a.n + b.std**2 / b.n)
    return TwoErrors(difference, bound, abs(difference) > bound, two_se_false_alarm(a.n, b.n))


def two_se_false_alarm(n_a: int, n_b: int) -> float:
    """Return how often equal normal sides of n_a and n_b processes differ by two standard errors.

    n: at least 2 each. Exact for equal n: Student's t beyond 2 at 2n - 2 degrees of freedom, 18.3 %
    at n = 2 and 4.6 % at infinity. Else with the degrees of Welch and Satterthwaite at equal
    variances. Raises Refused below 2.
    """
    from scipy.special import stdtr

    if min(n_a, n_b) < 2:
        raise Refused("a single repeat cannot support the call", why="it shows no spread")
    of_a, of_b = 1.0 / n_a, 1.0 / n_b
    df = (of_a + of_b) ** 2 / (of_a**2 / (n_a - 1) + of_b**2 / (n_b - 1))
    return 2.0 * float(stdtr(df, -2.0))


def _lean(low: float, high: float, larger_is: LargerIs) -> Lean:
    one_side = low > 0.0 or high < 0.0
    if one_side and abs(expm1((low + high) / 2.0)) >= LEAST_CHANGE:
        return "worse" if (low > 0.0) == (larger_is == "worse") else "better"
    return "same" if max(-low, high) <= SAME_WITHIN else "none"
