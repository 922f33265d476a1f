"""A device's sensors under a script of disturbances."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Counters of a reason by its bit of the event mask.
_COUNTED: Final = {
    0x4: "sw_power_ns",
    0x20: "sw_thermal_ns",
    0x40: "hw_thermal_ns",
    0x80: "power_brake_ns",
}
_QUIET: Final[Mapping[str, float | int | str]] = {
    "sm_clock_hz": 1.98e9,
    "mem_clock_hz": 2.6e9,
    "temperature_c": 55.0,
    "power_w": 350.0,
    "events": 0,
}


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """What a device goes through between two moments: bits of its event mask, a clock, a lost one.

    sm_clock_hz: the clock meanwhile, None for its usual one. lost: fields whose sensor fails.
    """

    begin_ns: int
    end_ns: int
    events: int = 0
    sm_clock_hz: float | None = None
    lost: tuple[str, ...] = ()


class FakeSensors:
    """A device's sensors under a script; the counters follow the reasons of the script.

    missing: fields that the device never has, with their null codes.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        script: Sequence[Disturbance] = (),
        *,
        usual: Mapping[str, float | int | str] = _QUIET,
        missing: Mapping[str, str] | None = None,
    ) -> None:
        self._clock, self._script = clock, script
        self._usual, self._missing = usual, missing or {}

    def read(self) -> Mapping[str, float | int | str]:
        """Return every field at this moment: a number, or a null code."""
        now_ns = self._clock()
        found = dict(self._usual)
        for counter in _COUNTED.values():
            found[counter] = 0
        for each in self._script:
            past_ns = max(0, min(now_ns, each.end_ns) - each.begin_ns)
            for bit, counter in _COUNTED.items():
                if each.events & bit:
                    found[counter] = int(found[counter]) + past_ns
        for each in self._script:
            if each.begin_ns <= now_ns < each.end_ns:
                found["events"] = int(found["events"]) | each.events
                if each.sm_clock_hz is not None:
                    found["sm_clock_hz"] = each.sm_clock_hz
                found.update(dict.fromkeys(each.lost, "error"))
        return {**found, **self._missing}
