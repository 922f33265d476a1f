"""What a GPU shows while a job runs: power, clocks, heat, and what slows it down.

One call reads all field values; nothing here takes a lock that a kernel launch waits for.
"""

from collections.abc import Mapping
from typing import Any, Final

from workers.gpu.nvml import Library
from workers.gpu.record import Reading

_INSTANT, _AVERAGE = 186, 185  # power in mW; the average is that of a second
# How long each reason has slowed the GPU down since the driver was loaded, in ns.
_COUNTERS: Final = {
    "sw_power_ns": 74,
    "sw_thermal_ns": 269,
    "hw_thermal_ns": 270,
    "power_brake_ns": 271,
}
_OLD_THERMAL: Final = 75  # what drivers before 535 count in place of the three
_CLOCK: Final = ("nvmlDeviceGetClockInfo",)
_SM, _MEMORY = 1, 2
_EVENTS: Final = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
)
_SCALE: Final = {"power_w": 1e-3, "sm_clock_hz": 1e6, "mem_clock_hz": 1e6}


def sensors(library: Library, gpu: Any) -> Mapping[str, float | int | str]:
    """Return the fields of `telemetry.Sample`: a number each, or the null code of why not."""
    fields = library.fields(gpu, [_INSTANT, _AVERAGE, *_COUNTERS.values(), _OLD_THERMAL])
    found = {name: fields[each] for name, each in _COUNTERS.items()}
    if found["sw_thermal_ns"].value is None:
        found["sw_thermal_ns"] = fields[_OLD_THERMAL]
    usage = ("nvmlDeviceGetPowerUsage",)
    powers = (fields[_INSTANT], fields[_AVERAGE])
    known = next((each for each in powers if each.value is not None), None)
    found["power_w"] = known or library.read(usage, gpu)
    found["sm_clock_hz"] = library.read(_CLOCK, gpu, _SM)
    found["mem_clock_hz"] = library.read(_CLOCK, gpu, _MEMORY)
    found["temperature_c"] = library.read(("nvmlDeviceGetTemperature",), gpu, 0)
    found["events"] = library.read(_EVENTS, gpu)
    return {name: _said(name, each) for name, each in found.items()}


def _said(name: str, found: Reading) -> float | int | str:
    if found.value is None:
        return found.reason
    return found.value * _SCALE[name] if name in _SCALE else int(found.value)
