"""Percentiles: a point, how many independent samples stand behind it, and its interval.

The samples of one process are correlated, so an interval rests on an effective sample size and not
on the count. The child reaches this module through `warmup`, and what it imports is part of the
memory it measures: the binomial distribution is therefore summed here and not taken from scipy.
"""

from collections.abc import Sequence
from math import ceil, floor, log
from typing import Final

import numpy as np
import numpy.typing as npt

from farm.errors import Refused

FloatArray = npt.NDArray[np.float64]
Samples = Sequence[float] | npt.NDArray[np.float64] | npt.NDArray[np.int64]

_TAIL: Final = 0.025  # each side of a 95 % interval
_ROUNDING: Final = 1e-12  # a pair sum of 0 that went through a Fourier transform


def percentile(samples: Samples, q: float) -> float:
    """Return the q-th percentile by linear interpolation, in the unit of the samples.

    samples: n >= 1, any order; q in [0, 100]. Raises Refused if n is 0 or q is out of range.
    Source: Hyndman and Fan 1996, type 7; S1.34.
    """
    values = checked(samples)
    if not 0.0 <= q <= 100.0:
        raise Refused(f"percentile {q!r} does not exist", why="it lies in 0 … 100")
    return float(np.percentile(values, q))


def effective_n(samples: Samples, q: float) -> float:
    """Return how many independent samples would know the q-th percentile as well as these do.

    samples: n >= 1 in the order they were taken. The result lies in [1, n]; equal samples give n.
    Source: Geyer 1992, initial positive sequence, on the indicator of "at most the percentile";
    biased autocorrelations. Where that holds of all samples, because many share the largest value,
    the indicator is "below it": a clock with coarse ticks would else hide every correlation.
    """
    values = checked(samples)
    n = values.size
    least, most = values.min(), values.max()
    if least == most:
        return float(n)
    point = max(least, percentile(values, q))  # interpolation may miss an end by a rounding
    below = (values <= point if point < most else values < most).astype(np.float64)
    rho = _autocorrelation(below)
    whole = (n - 1) // 2
    pairs = rho[1 : 2 * whole + 1].reshape(whole, 2).sum(axis=1)
    ended = np.flatnonzero(pairs <= _ROUNDING)
    positive = pairs[: ended[0]] if ended.size else pairs
    return float(np.clip(n / (1.0 + 2.0 * positive.sum()), 1.0, n))


def published_n(samples: Samples, q: float) -> int:
    """Return the effective sample size that an interval at q rests on.

    It is the smaller of those at q and at the median, rounded down: an indicator with few
    exceedances cannot see the correlation that widens its interval.
    """
    at_median = effective_n(samples, 50.0)
    return floor(at_median if q == 50.0 else min(at_median, effective_n(samples, q)))


def ranks(m: int, q: float) -> tuple[int, int] | None:
    """Return the ranks (from 1) of the order statistics that bound the q-th percentile at 95 %.

    m: independent samples. None if a rank would lie outside 1 … m: the samples cannot bound it.
    Source: the exact binomial interval, l = max{l: P(Bin(m, p) <= l - 1) <= 0.025} and
    u = min{u: P(Bin(m, p) >= u) <= 0.025}.
    """
    p = q / 100.0
    if m < 1 or not 0.0 < p < 1.0:
        return None
    mass = _binomial(m, p)
    low = int(np.searchsorted(np.cumsum(mass), _TAIL, side="right"))
    high = m + 1 - int(np.searchsorted(np.cumsum(mass[::-1]), _TAIL, side="right"))
    return (low, high) if low >= 1 and high <= m else None


def needed_n(q: float) -> int:
    """Return the smallest effective sample size that gives the q-th percentile an interval.

    p50 6, p90 36, p95 72, p99 368, p99.9 3,688. Raises Refused unless 0 < q < 100.
    """
    if not 0.0 < q < 100.0:
        raise Refused(f"no sample size bounds percentile {q!r}", why="it lies between 0 and 100")
    return ceil(log(_TAIL) / log(max(q, 100.0 - q) / 100.0))


def interval(samples: Samples, q: float, *, m: int) -> tuple[float, float] | None:
    """Return the 95 % interval of the q-th percentile, in the unit of the samples.

    m: effective sample size, at most n; the ranks for m samples are stretched to n.
    None if m samples cannot bound it. Raises Refused if m is larger than n.
    """
    ordered = np.sort(checked(samples))
    n = ordered.size
    if m > n:
        raise Refused(f"{m} effective samples out of {n}", why="there cannot be more than samples")
    found = ranks(m, q)
    if found is None:
        return None
    low, high = found
    return float(ordered[low * n // m - 1]), float(ordered[-(-high * n // m) - 1])


def checked(samples: Samples) -> FloatArray:
    """Return the samples as float64[n], or raise Refused if there is none."""
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise Refused("no samples", why="a statistic needs at least one, in one dimension")
    return values


def _autocorrelation(series: FloatArray) -> FloatArray:
    """All lags at once; padded with as many zeros, so that the ends do not meet."""
    centred = series - series.mean()
    size = 1 << (2 * series.size - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    covariance = np.fft.irfft(power, size)[: series.size]
    return np.asarray(covariance / covariance[0], dtype=np.float64)


def _binomial(m: int, p: float) -> FloatArray:
    """P(Bin(m, p) = k) for k = 0 … m, through logarithms: m may be 10^6."""
    k = np.arange(m + 1, dtype=np.float64)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(k[1:]))))
    log_ways = log_factorial[m] - log_factorial - log_factorial[::-1]
    return np.asarray(np.exp(log_ways + k * log(p) + (m - k) * np.log1p(-p)), dtype=np.float64)
