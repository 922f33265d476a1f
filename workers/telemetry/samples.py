"""What a device's sensors say at one moment, and how to ask for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, Protocol

import numpy as np

# Bits of the event mask, and which of them slow a device down against its will.
IDLE, POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x1, 0x4, 0x8, 0x20, 0x40, 0x80
THROTTLING: Final = HW_SLOWDOWN | SW_THERMAL | HW_THERMAL | POWER_BRAKE
EVENT_NAMES: Final = {
    IDLE: "idle",
    POWER_CAP: "sw_power_cap",
    HW_SLOWDOWN: "hw_slowdown",
    SW_THERMAL: "sw_thermal",
    HW_THERMAL: "hw_thermal",
    POWER_BRAKE: "power_brake",
}


class Source(Protocol):
    """A device's sensors: by field of `Sample` a number, or the null code of why there is none."""

    def read(self) -> Mapping[str, float | int | str]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One reading of all sensors, begun at one moment; None where a sensor has no number.

    The counters hold how long a reason has slowed the device down since the driver was loaded. They
    are read by name: their field numbers differ between drivers. missing: null code by field.
    """

    at_ns: int
    sm_clock_hz: float | None = None
    mem_clock_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    events: int | None = None
    sw_power_ns: int | None = None
    sw_thermal_ns: int | None = None
    hw_thermal_ns: int | None = None
    power_brake_ns: int | None = None
    missing: Mapping[str, str] = field(default_factory=dict)


def take(source: Source, *, at_ns: int) -> Sample:
    """Return a sample of the source; a field that it does not name is `not_probed`."""
    found = source.read()
    names = [each.name for each in fields(Sample) if each.name not in ("at_ns", "missing")]
    values = {name: found.get(name, "not_probed") for name in names}
    missing = {name: value for name, value in values.items() if isinstance(value, str)}
    known = {name: value for name, value in values.items() if not isinstance(value, str)}
    return Sample(at_ns=at_ns, missing=missing, **known)  # type: ignore[arg-type]


def values_of(samples: Sequence[Sample], name: str) -> list[float]:
    """Return the numbers that a sensor gave, in order; samples without one are left out."""
    return [value for each in samples if (value := getattr(each, name)) is not None]


def percentile(values: Sequence[float], q: float) -> float | None:
    """Return a percentile of plain numbers, None of none."""
    return float(np.percentile(values, q)) if values else None
