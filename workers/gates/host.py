"""The gates of the host: whether its cores, memory and disk are free for a measurement.

A CPU slot measures on the cores themselves and waits for them; a GPU slot only feeds its device.
"""

from collections.abc import Mapping
from typing import Any, Final

from workers.gates.record import HostState, Severity, Verdict

Limits = Mapping[str, Any]
Said = tuple[Verdict, str, Severity]

_GIB: Final = 1 << 30
_OK: Final[Said] = ("ok", "", "")
_SETTLING: Final[Said] = ("skipped", "our own work has just ended there", "")


def host_cores(host: HostState, on_cpu: bool, limits: Limits) -> Said:
    """Whether others compute on the leased cores."""
    if host.is_settling:
        return _SETTLING
    if host.busy_share is None:
        return "unknown", "the use of the cores cannot be read", ""
    return _shared(host.busy_share, limits["busy_share"], "others use {} % of its cores", on_cpu)


def host_pressure(host: HostState, on_cpu: bool, limits: Limits) -> Said:
    """Whether something waits for a core."""
    if host.is_settling:
        return _SETTLING
    if host.some_share is None:
        return "skipped", "this kernel does not tell of pressure", ""
    said = "something waited for a core in {} % of the time"
    return _shared(host.some_share, limits["some_share"], said, on_cpu)


def host_memory(host: HostState, limits: Limits) -> Said:
    if host.available_bytes is None:
        return "unknown", "the free memory cannot be read", ""
    if host.available_bytes < host.need_bytes + limits["spare_bytes"]:
        free, need = host.available_bytes / _GIB, host.need_bytes / _GIB
        return "defer", f"{free:.1f} GiB are free, and the job may take {need:.1f}", ""
    return _OK


def host_disk(host: HostState, limits: Limits) -> Said:
    if host.free_share is None:
        return "unknown", "the free space cannot be read", ""
    said = f"{100 * host.free_share:.0f} % of its disk are free"
    if host.free_share < limits["defer_share"]:
        return "defer", said, ""
    return ("degraded", said, "") if host.free_share < limits["degraded_share"] else _OK


def host_clock(host: HostState, limits: Limits) -> Said:
    if host.clocksource is None:
        return "unknown", "the clock source cannot be read", ""
    if host.clocksource not in limits["known"]:
        return "degraded", f"its clock is {host.clocksource}, which takes a system call", ""
    return _OK


def _shared(share: float, most: float, said: str, on_cpu: bool) -> Said:
    if share <= most:
        return _OK
    return ("defer" if on_cpu else "degraded"), said.format(f"{100 * share:.0f}"), ""
