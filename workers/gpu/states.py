"""A GPU as gates look at it: memory, processes, error counters, limits, modes.

Some of these calls hold a lock of the driver for milliseconds: never ask within a measured pass.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from workers.gpu.nvml import ABSENT, Library
from workers.gpu.record import Process, Reading, State

_CORRECTED, _UNCORRECTED, _VOLATILE = 0, 1, 0
_SINGLE_BIT, _DOUBLE_BIT = 0, 1  # why a page was retired
_SLOWDOWN, _SHUTDOWN = 1, 0
_SM = 1
_RECOVERY, _REPLAYS = 230, 94
_LINKS: Final = 18
_LINK_ERRORS: Final = 4  # counters of a link: replay, recovery, and two of checksums
_LISTS: Final[Mapping[Any, Sequence[str]]] = {
    "compute": ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses"),
    "graphics": (
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses",
    ),
    "mps": (
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses",
    ),
}
# What each reading is asked with, the newest name first; where it takes more, that stands behind.
_CALLS: Final[Mapping[str, tuple[Sequence[str], tuple[int, ...]]]] = {
    "temperature_c": (("nvmlDeviceGetTemperature",), (0,)),
    "slowdown_c": (("nvmlDeviceGetTemperatureThreshold",), (_SLOWDOWN,)),
    "shutdown_c": (("nvmlDeviceGetTemperatureThreshold",), (_SHUTDOWN,)),
    "power_limit_mw": (("nvmlDeviceGetEnforcedPowerLimit",), ()),
    "power_default_mw": (("nvmlDeviceGetPowerManagementDefaultLimit",), ()),
    "sm_clock_mhz": (("nvmlDeviceGetClockInfo",), (_SM,)),
    "sm_max_mhz": (("nvmlDeviceGetMaxClockInfo",), (_SM,)),
    "compute_mode": (("nvmlDeviceGetComputeMode",), ()),
    "persistence": (("nvmlDeviceGetPersistenceMode",), ()),
    "mig_mode": (("nvmlDeviceGetMigMode",), ()),
    "ecc_mode": (("nvmlDeviceGetEccMode",), ()),
    "ecc_corrected": (("nvmlDeviceGetTotalEccErrors",), (_CORRECTED, _VOLATILE)),
    "ecc_uncorrected": (("nvmlDeviceGetTotalEccErrors",), (_UNCORRECTED, _VOLATILE)),
    "remapped": (("nvmlDeviceGetRemappedRows",), ()),
    "retired_pending": (("nvmlDeviceGetRetiredPagesPendingStatus",), ()),
    "retired_single": (("nvmlDeviceGetRetiredPages",), (_SINGLE_BIT,)),
    "retired_double": (("nvmlDeviceGetRetiredPages",), (_DOUBLE_BIT,)),
    "pcie_gen": (("nvmlDeviceGetCurrPcieLinkGeneration",), ()),
    "pcie_width": (("nvmlDeviceGetCurrPcieLinkWidth",), ()),
}


def state(
    library: Library,
    handle: Any,
    gpu: Any,
    *,
    at_ns: int,
    xids: list[tuple[int, int]],
    pid_max: int,
) -> State:
    """Return the state of a device; handle: of itself, gpu: of what it is a slice of.

    Memory and processes are those of the device, everything else of its GPU. pid_max: a number
    from there on is none of a process: some drivers fill the list wrongly.
    """
    found = {name: library.read(names, gpu, *more) for name, (names, more) in _CALLS.items()}
    found |= memory(library, handle)
    use = library.read(("nvmlDeviceGetUtilizationRates",), handle)
    found["utilization_pct"] = _part(use, lambda rates: rates.gpu)
    fields = library.fields(gpu, [_RECOVERY, _REPLAYS])
    found["recovery_action"], found["pcie_replays"] = fields[_RECOVERY], fields[_REPLAYS]
    found["nvlink_errors"] = _link_errors(library, gpu)
    for name in ("retired_single", "retired_double"):
        found[name] = _part(found[name], len)
    for name in ("remapped", "mig_mode", "ecc_mode"):
        found[name] = _part(found[name], list)
    processes, why = _processes(library, handle, pid_max=pid_max)
    return State(
        at_ns=at_ns, readings=found, xids=list(xids), processes=processes, processes_reason=why
    )


def memory(library: Library, handle: Any) -> dict[str, Reading]:
    """Return total, used and reserved memory in bytes.

    The old call counts what the driver reserved as used: `reserved` is missing then.
    """
    names, version = ("nvmlDeviceGetMemoryInfo",), library.constant("nvmlMemory_v2")
    found = library.read(names, handle, version) if version else Reading(reason="symbol_missing")
    if found.value is not None or found.code not in (*ABSENT, 25):
        reserved = _part(found, lambda info: info.reserved)
    else:
        found = library.read(names, handle)
        reserved = Reading(reason="not_supported: this driver counts it as used")
    return {
        "memory_total_bytes": _part(found, lambda info: info.total),
        "memory_used_bytes": _part(found, lambda info: info.used),
        "memory_reserved_bytes": reserved,
    }


def _processes(library: Library, handle: Any, *, pid_max: int) -> tuple[list[Process] | None, str]:
    """Return every process, None with the reason where a list could not be had.

    A list of graphics or of MPS clients that a GPU does not offer is an empty one.
    """
    found: list[Process] = []
    for kind, names in _LISTS.items():
        listed = library.read(names, handle)
        if listed.value is None and (kind == "compute" or listed.code not in ABSENT):
            return None, listed.reason
        for each in listed.value or ():
            pid = each.pid if 0 < each.pid < pid_max else 0
            found.append(Process(pid=pid, kind=kind, used_bytes=each.usedGpuMemory))
    return found, ""


def _link_errors(library: Library, gpu: Any) -> Reading:
    """Return the errors of all links that are up, together; what cannot be read hides none."""
    total, is_any_up = 0, False
    for link in range(_LINKS):
        up = library.read(("nvmlDeviceGetNvLinkState",), gpu, link)
        if up.value is None and up.code in ABSENT and link:
            break  # there are no more of them
        if up.value is None:
            return up
        for counter in range(_LINK_ERRORS if up.value == 1 else 0):
            each = library.read(("nvmlDeviceGetNvLinkErrorCounter",), gpu, link, counter)
            if each.value is None:
                return each
            total, is_any_up = total + int(each.value), True
    return Reading(total) if is_any_up else Reading(reason="not_supported: no link is up")


def _part(whole: Reading, take: Callable[[Any], Any]) -> Reading:
    return whole if whole.value is None else Reading(take(whole.value))
