"""Heat of the CPU: its temperature, and how often heat has slowed its cores down."""

from collections.abc import Iterable, Iterator
from typing import Final

from workers.host.tree import Host, number

_ZONES: Final = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc-thermal")
_SENSORS: Final = ("coretemp", "k10temp", "zenpower")


def temperature_c(host: Host) -> float | None:
    """Return the temperature of the hottest CPU package, °C; None where no sensor shows one."""
    found = [value / 1000 for value in (*_zones(host), *_sensors(host)) if value is not None]
    return max(found, default=None)


def throttle_count(host: Host, cpus: Iterable[int]) -> int | None:
    """Return how often heat has slowed these CPUs or their packages since boot.

    None if any of them does not say: a sum over some of them would look like a cool one. Only
    differences mean something, siblings count the same event.
    """
    total = None
    for cpu in cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
        core = number(host.text(f"{folder}/core_throttle_count"))
        if core is None:
            return None
        package = number(host.text(f"{folder}/package_throttle_count")) or 0
        total = (total or 0) + core + package
    return total


def _zones(host: Host) -> Iterator[int | None]:
    for name in host.names("sys/class/thermal"):
        folder = f"sys/class/thermal/{name}"
        if (host.text(f"{folder}/type") or "").strip() in _ZONES:
            yield number(host.text(f"{folder}/temp"))


def _sensors(host: Host) -> Iterator[int | None]:
    for name in host.names("sys/class/hwmon"):
        folder = f"sys/class/hwmon/{name}"
        if (host.text(f"{folder}/name") or "").strip() in _SENSORS:
            yield number(host.text(f"{folder}/temp1_input"))
