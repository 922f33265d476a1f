"""What clocks, heat and power limits did while a pass was measured, and the doubts that follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from workers.telemetry.samples import (
    EVENT_NAMES,
    HW_SLOWDOWN,
    IDLE,
    POWER_CAP,
    THROTTLING,
    Sample,
    percentile,
    values_of,
)

# At 10 Hz an event of 200 ms lies in a sample; a wider gap could hide it. The rest is jitter.
_WIDEST_GAP_NS: Final = 200_000_000
_LOW_OF_BASE, _LOW_OF_MEDIAN, _UNSTABLE, _BLIP_SHARE = 0.75, 0.9, 0.03, 0.01
_COUNTERS: Final = ("sw_thermal_ns", "hw_thermal_ns", "power_brake_ns")
_ALL_COUNTERS: Final = ("sw_power_ns", *_COUNTERS)
_SENSOR: Final = {
    "sm_clock_median_hz": "sm_clock_hz",
    "sm_clock_p5_hz": "sm_clock_hz",
    "sm_clock_p95_hz": "sm_clock_hz",
    "mem_clock_median_hz": "mem_clock_hz",
    "temperature_start_c": "temperature_c",
    "temperature_max_c": "temperature_c",
    "power_mean_w": "power_w",
    "power_capped_share": "events",
    "idle_share": "events",
}


@dataclass(frozen=True, kw_only=True)
class Telemetry:
    """What a pass ran under; None with its code in `reasons`.

    throttle_ms: by reason, what its counter grew by. events: names of every bit that was seen.
    shares: of the samples in the pass.
    """

    samples: int
    sm_clock_median_hz: float | None
    sm_clock_p5_hz: float | None
    sm_clock_p95_hz: float | None
    mem_clock_median_hz: float | None
    temperature_start_c: float | None
    temperature_max_c: float | None
    power_mean_w: float | None
    throttle_ms: dict[str, float | None]
    power_capped_share: float | None
    idle_share: float | None
    events: list[str]
    flags: list[str]
    reasons: dict[str, str]


def window(
    samples: Sequence[Sample],
    *,
    begin_ns: int,
    end_ns: int,
    base_clock_hz: float | None,
    foreign: tuple[bool | None, bool | None],
) -> Telemetry:
    """Return what the samples say about a pass, with its flags.

    foreign: whether another process was on the device before and after the pass, None if that
    cannot be known. Counters use the last sample before the pass and the first after it.

    Flags: throttled, clock_blip, clock_low, clock_unstable, power_capped, clock_idle,
    foreign_gpu_process; throttle_unknown, clock_unknown, sharing_unknown where a check could not be
    made, also for a gap over 200 ms between samples.
    """
    inside = [each for each in samples if begin_ns <= each.at_ns <= end_ns]
    masks = [each.events for each in inside if each.events is not None]
    grown = {name: _grown(samples, name, begin_ns, end_ns) for name in _ALL_COUNTERS}
    capped = _any(masks, POWER_CAP) or (grown["sw_power_ns"] or 0) > 0
    flags = [
        *_throttle_flags(inside, grown, begin_ns, end_ns),
        *_clock_flags(inside, base_clock_hz, begin_ns, end_ns),
        *_sharing_flags(foreign),
        *(["power_capped"] if capped else []),
        *(["clock_idle"] if _any(masks, IDLE) else []),
    ]
    values = _values(inside, masks)
    reasons = {name: _why(inside, _SENSOR[name]) for name in values if values[name] is None}
    for name in _ALL_COUNTERS:
        if grown[name] is None:
            reasons[f"throttle_ms.{_word(name)}"] = _why_not_grown(samples, name, begin_ns, end_ns)
    seen = int(np.bitwise_or.reduce(masks)) if masks else 0
    return Telemetry(
        samples=len(inside),
        throttle_ms={
            _word(name): None if value is None else value / 1e6 for name, value in grown.items()
        },
        events=[name for bit, name in EVENT_NAMES.items() if seen & bit],
        flags=sorted(flags),
        reasons=reasons,
        **values,
    )


def _values(inside: Sequence[Sample], masks: Sequence[int]) -> dict[str, float | None]:
    clocks = values_of(inside, "sm_clock_hz")
    temperatures, powers = values_of(inside, "temperature_c"), values_of(inside, "power_w")
    return {
        "sm_clock_median_hz": percentile(clocks, 50),
        "sm_clock_p5_hz": percentile(clocks, 5),
        "sm_clock_p95_hz": percentile(clocks, 95),
        "mem_clock_median_hz": percentile(values_of(inside, "mem_clock_hz"), 50),
        "temperature_start_c": temperatures[0] if temperatures else None,
        "temperature_max_c": max(temperatures, default=None),
        "power_mean_w": float(np.mean(powers)) if powers else None,
        "power_capped_share": _share(masks, POWER_CAP),
        "idle_share": _share(masks, IDLE),
    }


def _word(counter: str) -> str:
    return counter.removesuffix("_ns")


def _throttle_flags(
    inside: Sequence[Sample], grown: Mapping[str, int | None], begin_ns: int, end_ns: int
) -> list[str]:
    counters = [grown[name] for name in _COUNTERS]
    hits = [each.events & THROTTLING for each in inside if each.events]
    hits = [bits for bits in hits if bits]
    if any((value or 0) > 0 for value in counters):
        return ["throttled"]
    if hits:
        is_blip = hits == [HW_SLOWDOWN] and len(hits) <= _BLIP_SHARE * len(inside)
        return ["clock_blip"] if is_blip else ["throttled"]
    polled = [each for each in inside if each.events is not None]
    # The thermal and brake counters leave a plain hardware slowdown out: the mask alone shows it.
    return ["throttle_unknown"] if _has_gap(polled, begin_ns, end_ns) else []


def _clock_flags(
    inside: Sequence[Sample], base_hz: float | None, begin_ns: int, end_ns: int
) -> list[str]:
    known = [each for each in inside if each.sm_clock_hz is not None]
    clocks = np.asarray(values_of(inside, "sm_clock_hz"))
    flags = []
    if base_hz is None or _has_gap(known, begin_ns, end_ns):
        flags.append("clock_unknown")
    if not len(clocks):
        return flags
    if base_hz is not None and clocks.mean() < _LOW_OF_BASE * base_hz:
        flags.append("clock_low")
    low, middle, high = np.percentile(clocks, (5, 50, 95))
    # Percentiles do not see what took less than 5 % of the pass, 200 ms in a long one: a sample
    # beyond what labels an iteration tells it.
    dipped = clocks.min() < _LOW_OF_MEDIAN * middle or middle < _LOW_OF_MEDIAN * clocks.max()
    if dipped or high - low > _UNSTABLE * middle:
        flags.append("clock_unstable")
    return flags


def _sharing_flags(foreign: tuple[bool | None, bool | None]) -> list[str]:
    if True in foreign:
        return ["foreign_gpu_process"]
    return ["sharing_unknown"] if None in foreign else []


def _has_gap(known: Sequence[Sample], begin_ns: int, end_ns: int) -> bool:
    stamps = [begin_ns, *(each.at_ns for each in known), end_ns]
    gaps = [after - before for before, after in pairwise(stamps)]
    return not known or max(gaps) > _WIDEST_GAP_NS


def _around(
    samples: Sequence[Sample], begin_ns: int, end_ns: int
) -> tuple[Sample | None, Sample | None]:
    before = [each for each in samples if each.at_ns <= begin_ns]
    after = [each for each in samples if each.at_ns >= end_ns]
    return (before[-1] if before else None), (after[0] if after else None)


def _grown(samples: Sequence[Sample], name: str, begin_ns: int, end_ns: int) -> int | None:
    a, b = _around(samples, begin_ns, end_ns)
    before: int | None = getattr(a, name, None)
    after: int | None = getattr(b, name, None)
    if before is None or after is None or after < before:
        return None
    return after - before


def _why_not_grown(samples: Sequence[Sample], name: str, begin_ns: int, end_ns: int) -> str:
    a, b = _around(samples, begin_ns, end_ns)
    if a is None or b is None:
        return "not_probed: no sample on both sides of the pass"
    for each in (a, b):
        if getattr(each, name) is None:
            return each.missing.get(name, "not_probed")
    return "counter_reset"


def _why(inside: Sequence[Sample], name: str) -> str:
    if not inside:
        return "not_probed: no sample in the pass"
    return inside[0].missing.get(name, "not_probed")


def _share(masks: Sequence[int], bit: int) -> float | None:
    return sum(bool(each & bit) for each in masks) / len(masks) if masks else None


def _any(masks: Sequence[int], bit: int) -> bool:
    return any(each & bit for each in masks)
