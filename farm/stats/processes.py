"""Several processes become one figure: the process, not the iteration, is the unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from farm.stats.percentiles import (
    FloatArray,
    Samples,
    checked,
    interval,
    needed_n,
    percentile,
    published_n,
)
from farm.stats.spread import std

_ORDER_STATISTICS_FROM: Final = 6  # processes; below it the t-interval on logarithms
DISAGREE: Final = 0.05  # of `proc_cv`: beyond it processes disagree, and no pool stands for them
_UNKNOWN_BELOW: Final = 6  # samples

Stability = Literal["stable", "acceptable", "noisy", "unknown"]


@dataclass(frozen=True, slots=True)
class Headline:
    """The median of process medians; lo and hi are None for the reason, which is else ""."""

    value: float
    lo: float | None
    hi: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pooled:
    """A percentile of the pooled samples; lo and hi are None for the reason, which is else "".

    n_eff: effective samples behind it, over all repeats. least, most: of the repeats' own.
    """

    value: float
    lo: float | None
    hi: float | None
    reliable: bool
    n_eff: int
    least: float
    most: float
    reason: str = ""


def headline(process_medians: Samples) -> Headline:
    """Return the median of process medians with its 95 % interval, in their unit.

    process_medians: R >= 1, positive. R = 1: no interval, `single_repeat`; up to 5: t-interval on
    logarithms; from 6 on: order statistics, each process counting once.
    """
    medians = checked(process_medians)
    value = float(np.median(medians))
    if medians.size == 1:
        return Headline(value, None, None, "single_repeat")
    if medians.size >= _ORDER_STATISTICS_FROM:
        found = interval(medians, 50.0, m=medians.size)
        low, high = found if found is not None else (value, value)
    else:
        low, high = _t_interval(medians)
    # exp(ln x) may miss x by one unit in the last place
    return Headline(value, min(low, value), max(high, value))


def proc_cv(process_medians: Samples) -> float | None:
    """Return the standard deviation (ddof 1) of ln process medians; None for a single process."""
    return std(np.log(checked(process_medians)))


def pooled(repeats: Sequence[Samples], q: float) -> Pooled:
    """Return the q-th percentile over the samples of all repeats, in their unit.

    repeats: one array per process, each n >= 1, in the order they were taken. The effective sample
    sizes add up. There is no interval below the needed size (`below_resolution`), nor where
    process medians spread by more than 5 % (`processes_disagree`): no pool stands for them.
    """
    arrays = [checked(samples) for samples in repeats]
    pool = np.concatenate(arrays)
    m = sum(published_n(samples, q) for samples in arrays)
    own = [percentile(samples, q) for samples in arrays]
    spread = proc_cv([float(np.median(samples)) for samples in arrays])
    found, reason = None, ""
    if spread is not None and spread > DISAGREE:
        reason = "processes_disagree"
    elif (found := interval(pool, q, m=m)) is None:
        reason = f"below_resolution: {_wanting(q, m)}"
    return Pooled(
        value=percentile(pool, q),
        lo=found[0] if found else None,
        hi=found[1] if found else None,
        reliable=found is not None,
        n_eff=m,
        least=min(own),
        most=max(own),
        reason=reason,
    )


def stability(
    *,
    iqr_rel: float,
    drift: float | None,
    proc_cv: float | None,
    caused_share: float | None,
    bimodal: bool,
    n: int,
    repeats: int,
) -> Stability:
    """Return the class of a spread: ratios in, a word out.

    None is a reading that could not be had, and never passes; only `proc_cv` of a single repeat,
    which cannot exist, leaves `acceptable` open.
    """
    if n < _UNKNOWN_BELOW:
        return "unknown"
    within = (
        repeats >= 2
        and not bimodal
        and iqr_rel <= 0.02
        and _at_most(drift, 0.01)
        and _at_most(proc_cv, 0.01)
        and _at_most(caused_share, 0.01)
    )
    if within:
        return "stable"
    agree = repeats == 1 or _at_most(proc_cv, 0.03)
    return "acceptable" if iqr_rel <= 0.10 and _at_most(drift, 0.02) and agree else "noisy"


def _wanting(q: float, m: int) -> str:
    if not 0.0 < q < 100.0:
        return "no number of samples bounds an extreme"
    return f"needs {needed_n(q)} effective samples, has {m}"


def _at_most(value: float | None, limit: float) -> bool:
    return value is not None and abs(value) <= limit


def _t_interval(medians: FloatArray) -> tuple[float, float]:
    from scipy.special import stdtrit  # lighter than scipy.stats, which takes most of a second

    logs = np.log(medians)
    reach = float(stdtrit(logs.size - 1, 0.975)) * float(np.std(logs, ddof=1)) / np.sqrt(logs.size)
    return float(np.exp(logs.mean() - reach)), float(np.exp(logs.mean() + reach))
