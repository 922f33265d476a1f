"""From the samples of one or more processes to the times of a callable JSON, and their trust."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from farm.interchange.document import Detail, Interval, Times
from farm.schema import Stability, Validity
from farm.stats import percentiles, processes, spread
from farm.stats.percentiles import Samples

_CONFIDENCE: Final = 0.95
_POINTS: Final = (90, 95, 99)


class Figures(NamedTuple):
    """reasons: why a part of the detail is null, by its path from there."""

    latency: Times
    detail: Detail
    reasons: dict[str, str]


def figures(
    samples_ms: Sequence[Samples],
    *,
    timer_floor_ns: int | None = None,
    of_blocks: int = 1,
    stability: Stability | None = None,
    validity: Validity | None = None,
    why_unknown: str = "not_probed",
) -> Figures:
    """Return the figures of samples, one array for each process, in ms and in their order.

    The median is that of process medians, other percentiles are of the pooled samples
    (`measurement.md` §7). why_unknown: the reason of whatever else is given as None. Raises Refused
    without a sample.
    """
    arrays = [percentiles.checked(each) for each in samples_ms]
    pool = percentiles.checked(np.concatenate(arrays) if arrays else [])
    medians = [percentiles.percentile(each, 50) for each in arrays]
    head = processes.headline(medians)
    points = {q: processes.pooled(arrays, q) for q in _POINTS}
    n_eff = {50: len(arrays), **{q: each.n_eff for q, each in points.items()}}
    bounds = {50: (head.lo, head.hi), **{q: (each.lo, each.hi) for q, each in points.items()}}
    given: dict[str, Any] = {
        "std_ms": spread.std(pool),
        "timer_floor_ns": timer_floor_ns,
        "stability": stability,
        "validity": validity,
    }
    reasons = {name: why_unknown for name, value in given.items() if value is None}
    if given["std_ms"] is None:
        reasons["std_ms"] = "single_sample"
    reasons |= _whys({50: head.reason, **{q: each.reason for q, each in points.items()}})
    detail = Detail(
        n=len(pool),
        p90_ms=points[90].value,
        min_ms=float(pool.min()),
        max_ms=float(pool.max()),
        mad_ms=spread.mad(pool),
        intervals={f"p{q}": _interval(*bounds[q], n_eff[q]) for q in bounds},
        reliable={f"p{q}": bounds[q][0] is not None for q in bounds},
        process_p50_ms=medians,
        of_blocks=of_blocks,
        **given,
    )
    latency = Times(
        p50_ms=head.value,
        p95_ms=points[95].value,
        p99_ms=points[99].value,
        mean_ms=float(pool.mean()),
    )
    return Figures(latency, detail, reasons)


def _whys(reasons: Mapping[int, str]) -> dict[str, str]:
    return {f"intervals.p{q}": why for q, why in reasons.items() if why}


def _interval(lo: float | None, hi: float | None, n_eff: int) -> Interval | None:
    if lo is None or hi is None:
        return None
    return Interval(low_ms=lo, high_ms=hi, confidence=_CONFIDENCE, n_eff=n_eff)
