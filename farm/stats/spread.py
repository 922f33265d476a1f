"""Spread and shape of a sample series: how wide, how skewed in time, how many modes."""

from typing import Final

import numpy as np

from farm.errors import Refused
from farm.stats.percentiles import FloatArray, Samples, checked, percentile

MAD_TO_STD: Final = 1.4826  # of a normal distribution
DRIFT_LIMIT: Final = 0.02  # of `drift`: beyond it a pass is `drifting`; `measurement.md` §8
_OUTLIER_STDS: Final = 10.0
_DRIFT_BLOCKS: Final = 200
_BIMODAL_N: Final = 64
_BETWEEN_SHARE: Final = 0.85  # a normal distribution split at its middle reaches 0.64
_CLASS_SHARE: Final = 0.10
_CLASS_GAP: Final = 0.02


def std(samples: Samples) -> float | None:
    """Return the sample standard deviation (ddof 1); None for a single sample."""
    values = checked(samples)
    return float(np.std(values, ddof=1)) if values.size > 1 else None


def mad(samples: Samples) -> float:
    """Return the median absolute deviation from the median, unscaled."""
    values = checked(samples)
    return float(np.median(np.abs(values - np.median(values))))


def iqr_rel(samples: Samples) -> float:
    """Return (p75 - p25)/p50, a ratio. Raises Refused unless the median is positive."""
    values = checked(samples)
    return (percentile(values, 75.0) - percentile(values, 25.0)) / _positive_median(values)


def theil_sen(values: Samples) -> float:
    """Return the median slope over all pairs, in units of the values per index.

    values: n >= 2, and at most some hundreds: there are n·(n - 1)/2 pairs. Raises Refused below 2.
    Source: Sen 1968.
    """
    series = checked(values)
    if series.size < 2:
        raise Refused("no slope through a single value")
    first, second = np.triu_indices(series.size, k=1)
    return float(np.median((series[second] - series[first]) / (second - first)))


def drift_rel(samples: Samples) -> float | None:
    """Return how far the series moves from its start to its end, as a ratio to its median.

    samples: in the order they were taken. Theil–Sen slope over the medians of at most 200 blocks
    of almost equal size, times their number, divided by the median. None for a single sample.
    Raises Refused unless the median is positive.
    """
    values = checked(samples)
    if values.size < 2:
        return None
    medians = _block_medians(values)
    return theil_sen(medians) * medians.size / _positive_median(values)


def drift_noise(samples: Samples) -> float | None:
    """Return the drift that scatter alone explains, as a ratio: three standard errors.

    The slope of B block medians with residual spread s has the standard error s·sqrt(12/B³), so the
    drift over all of them has s·sqrt(12/B). Without it 29 % of level series of 15 samples with 1 %
    noise would move by more than 1 %, and no slow step could be called stable. None for a single
    sample.
    """
    values = checked(samples)
    if values.size < 2:
        return None
    medians = _block_medians(values)
    line = theil_sen(medians) * np.arange(medians.size)
    scatter = MAD_TO_STD * mad(medians - line) / _positive_median(values)
    return float(3.0 * scatter * np.sqrt(12.0 / medians.size))


def drift(samples: Samples) -> float | None:
    """Return the drift of a series as a ratio, 0 where its scatter alone explains as much.

    samples: in the order they were taken. None for a single sample.
    """
    moved, noise = drift_rel(samples), drift_noise(samples)
    if moved is None or noise is None:
        return None
    return moved if abs(moved) > noise else 0.0


def is_drifting(samples: Samples) -> bool:
    """Return whether a pass is `drifting`; a single sample moves nowhere."""
    moved = drift(samples)
    return moved is not None and abs(moved) > DRIFT_LIMIT


def lag1(samples: Samples) -> float | None:
    """Return the biased autocorrelation at lag 1, in [-1, 1].

    samples: in the order they were taken. None for a single sample or a constant series.
    """
    values = checked(samples)
    centred = values - values.mean()
    if values.min() == values.max():
        return None
    return float(centred[:-1] @ centred[1:] / (centred @ centred))


def outlier_bound(samples: Samples) -> float:
    """Return p50 + 10·1.4826·MAD: what lies above it needs a cause, and is never deleted."""
    values = checked(samples)
    return float(np.median(values)) + _OUTLIER_STDS * MAD_TO_STD * mad(values)


def outlier_share(samples: Samples) -> float:
    """Return the share of samples above the outlier bound, in [0, 1]."""
    values = checked(samples)
    return float(np.mean(values > outlier_bound(values)))


def bimodal(samples: Samples) -> bool:
    """Return whether the samples fall into two classes that are far apart.

    On ln x without the lowest and highest 1 %, some split into two classes of at least 10 % each
    has a between-class variance of at least 0.85 of the total and medians at least 2 % apart.
    Never below 64 samples, nor where one is not positive. False flags ≤ 0.2 % on one mode; two
    modes closer than about 5 standard deviations are missed. Source: Otsu 1979.
    """
    values = np.sort(checked(samples))
    if values.size < _BIMODAL_N or values[0] <= 0.0:
        return False
    trim = values.size // 100
    logs = np.log(values[trim : values.size - trim])
    split = _best_split(logs)
    if split is None:
        return False
    gap = float(np.median(logs[split:]) - np.median(logs[:split]))
    return bool(np.expm1(gap) >= _CLASS_GAP)


def _best_split(ordered: FloatArray) -> int | None:
    """Size of the lower class where the split explains most, or None if no split explains much."""
    n = ordered.size
    sizes = np.arange(1, n)
    centred = ordered - ordered.mean()
    lower_sum = np.cumsum(centred)[:-1]
    total = float(centred @ centred)
    if total <= 0.0:
        return None
    # With a mean of 0 the between-class sum of squares is S²/k + S²/(n - k), S the sum of k.
    between = lower_sum**2 * (1.0 / sizes + 1.0 / (n - sizes))
    between[(sizes < _CLASS_SHARE * n) | (n - sizes < _CLASS_SHARE * n)] = 0.0
    best = int(np.argmax(between))
    return int(sizes[best]) if between[best] >= _BETWEEN_SHARE * total else None


def _block_medians(values: FloatArray) -> FloatArray:
    """The larger blocks first, as many as there are samples left over."""
    count = min(_DRIFT_BLOCKS, values.size)
    size, left = divmod(values.size, count)
    cut = left * (size + 1)
    parts = (values[:cut].reshape(left, size + 1), values[cut:].reshape(count - left, size))
    return np.concatenate([np.median(part, axis=1) for part in parts])


def _positive_median(values: FloatArray) -> float:
    median = float(np.median(values))
    if median <= 0.0:
        raise Refused(f"the median is {median}", why="a ratio to it needs a positive one")
    return median
