"""Which iterations of a pass a slowed clock has touched."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.telemetry.samples import THROTTLING, Sample, percentile, values_of

_LOW_OF_MEDIAN: Final = 0.9


def throttled(
    samples: Sequence[Sample],
    *,
    begins_ns: NDArray[np.int64],
    ends_ns: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which iterations ran while the clock was below 0.9 of the pass median, or throttled.

    A sample speaks for all the time between its neighbours, so that an iteration near an event is
    labelled rather than missed.
    """
    marked = np.zeros(len(begins_ns), dtype=np.bool_)
    if not len(begins_ns):
        return marked
    inside = [each for each in samples if begins_ns[0] <= each.at_ns <= ends_ns[-1]]
    middle = percentile(values_of(inside, "sm_clock_hz"), 50)
    for index, each in enumerate(samples):
        if not _is_slowed(each, middle):
            continue
        since = samples[index - 1].at_ns if index else each.at_ns
        until = samples[index + 1].at_ns if index + 1 < len(samples) else each.at_ns
        marked |= (begins_ns <= until) & (ends_ns >= since)
    return marked


def spans(
    latency_ns: NDArray[np.int64], *, begin_ns: int, end_ns: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when each iteration of a pass began and ended: what lay between them is spread evenly.

    Only their durations are recorded. The pass is longer than their sum by what the loop itself
    costs, and each iteration gets an equal part of that.
    """
    count = len(latency_ns)
    if not count:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    between = max(0, end_ns - begin_ns - int(latency_ns.sum())) // count
    ends = begin_ns + np.cumsum(latency_ns + between)
    return ends - latency_ns, ends


def _is_slowed(sample: Sample, middle: float | None) -> bool:
    low = (
        middle is not None
        and sample.sm_clock_hz is not None
        and sample.sm_clock_hz < _LOW_OF_MEDIAN * middle
    )
    return low or bool((sample.events or 0) & THROTTLING)
