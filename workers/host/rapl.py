"""The energy that CPU packages count by themselves (RAPL), read from the powercap tree.

Every package has a counter in µJ that starts again at `max_energy_range_uj`, some 262 kJ or 20 to
60 minutes of load. Since CVE-2020-8694 it is readable by root alone unless somebody opened it.
"""

from dataclasses import dataclass
from typing import Final, Literal

from workers.host.tree import Host, number

_TREE: Final = "sys/class/powercap"


@dataclass
class _Package:
    path: str
    wraps_at_uj: int
    last_uj: int | None = None


class Rapl:
    """The energy of all packages together: one counter that only grows.

    Parts of a package (cores, memory controller) are inside it and are not counted again; neither
    is the whole machine (`psys`), nor the second path to the same counter (`intel-rapl-mmio`). A
    wrap is undone as long as somebody reads once per wrap.
    """

    method: Final[Literal["rapl"]] = "rapl"
    scope: Final[Literal["package"]] = "package"
    wraps_at_uj: Final[None] = None  # undone here, package by package

    def __init__(self, host: Host) -> None:
        self._host = host
        self._packages = list(_packages(host))
        self._total_uj = 0

    def read(self) -> tuple[int | None, str]:
        """Return the energy since the first reading, µJ, or None with a code.

        Codes: not_supported without packages, no_permission where a counter may not be read,
        counter_reset where one went back without a wrap; what it counted meanwhile is lost, and
        the next reading goes on from there.
        """
        if not self._packages:
            return None, "not_supported: this host has no RAPL packages"
        now_uj = []
        for each in self._packages:  # all of them before any is taken on
            now = number(self._host.text(f"{each.path}/energy_uj"))
            if now is None:
                return None, f"no_permission: {each.path}/energy_uj cannot be read"
            now_uj.append(now)
        grown, reset = 0, False
        for each, now in zip(self._packages, now_uj, strict=True):
            if each.last_uj is not None:
                more = growth(each.last_uj, now, wraps_at_uj=each.wraps_at_uj)
                grown, reset = grown + (more or 0), reset or more is None
            each.last_uj = now
        self._total_uj += grown
        if reset:
            return None, "counter_reset: a package counter went back without a wrap"
        return self._total_uj, ""


def growth(before_uj: int, after_uj: int, *, wraps_at_uj: int | None) -> int | None:
    """Return how much a counter grew, µJ; None where it went back and no wrap explains it.

    A wrap explains at most half of the range: an interval that uses up more is one in which the
    counter was set to zero, as after a suspend.
    """
    if after_uj >= before_uj:
        return after_uj - before_uj
    if not wraps_at_uj:
        return None
    grown = after_uj + wraps_at_uj - before_uj
    return grown if 0 <= grown <= wraps_at_uj // 2 else None


def _packages(host: Host) -> list[_Package]:
    found = []
    for name in sorted(host.names(_TREE)):
        path = f"{_TREE}/{name}"
        title = (host.text(f"{path}/name") or "").strip()
        if name.startswith("intel-rapl:") and name.count(":") == 1 and title.startswith("package"):
            found.append(_Package(path, number(host.text(f"{path}/max_energy_range_uj")) or 0))
    return found
