"""The measured passes of a repeat, cut out of the samples of its device afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Final, Literal

from farm.schema import PassTelemetry, Throttle
from workers.record import Edge, Watched
from workers.telemetry.samples import Sample
from workers.telemetry.window import Telemetry, window

Name = Literal["latency", "throughput"]
_RENAMED: Final = {"temperature_start_c": "temp_start_c", "temperature_max_c": "temp_max_c"}
_THROTTLES: Final = ("sw_power", "sw_thermal", "hw_thermal", "power_brake")


def passes(
    samples: Sequence[Sample],
    edges: Mapping[Name, tuple[Edge, Edge]],
    *,
    repeat: int,
    base_clock_hz: float | None,
) -> tuple[list[Watched], set[str]]:
    """Return what the device did in each pass, and the flags of all of them.

    edges: of the passes, by the clock of the samples. base_clock_hz: as of `window`.
    """
    made, flags = [], set[str]()
    for name, (begin, end) in edges.items():
        found = window(
            samples,
            begin_ns=begin.at_ns,
            end_ns=end.at_ns,
            base_clock_hz=base_clock_hz,
            foreign=(False, False),  # the gates have looked at both ends
        )
        made.append(_watched(found, name, repeat, base_clock_hz))
        flags |= set(found.flags)
    return made, flags


def columns(samples: Sequence[Sample]) -> dict[str, list[float | int | None]]:
    """Return the samples by sensor, None where one gave no number."""
    names = [each.name for each in fields(Sample) if each.name != "missing"]
    return {name: [getattr(each, name) for each in samples] for name in names}


def _watched(found: Telemetry, name: Name, repeat: int, base_hz: float | None) -> Watched:
    throttle = {f"{each}_ms": found.throttle_ms[each] for each in _THROTTLES}
    seen = PassTelemetry(
        repeat=repeat,
        name=name,
        samples=found.samples,
        sm_clock_median_hz=found.sm_clock_median_hz,
        sm_clock_p5_hz=found.sm_clock_p5_hz,
        sm_clock_p95_hz=found.sm_clock_p95_hz,
        mem_clock_median_hz=found.mem_clock_median_hz,
        temp_start_c=found.temperature_start_c,
        temp_max_c=found.temperature_max_c,
        power_mean_w=found.power_mean_w,
        power_capped_share=found.power_capped_share,
        idle_share=found.idle_share,
        throttle=Throttle(**throttle),
        event_reasons=found.events,
    )
    reasons = {_path(path): why for path, why in found.reasons.items()}
    return Watched(seen=seen, reasons=reasons, base_clock_hz=base_hz)


def _path(path: str) -> str:
    """Return the path of a null in a profile: it has its own names for some fields."""
    if path.startswith("throttle_ms."):
        return f"throttle.{path.partition('.')[2]}_ms"
    return _RENAMED.get(path, path)
