"""What a system card says of a GPU: what it is, what it may draw, how it is set up."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from workers.gpu.nvml import Library
from workers.gpu.record import Reading

_SM, _MEM, _GRAPHICS = 1, 2, 0
# Cores of a multiprocessor by compute capability (CUDA C++ Programming Guide, table of features).
_CORES: Final = {
    (6, 0): 64, (6, 1): 128, (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64, (8, 6): 128,
    (8, 7): 128, (8, 9): 128, (9, 0): 128, (10, 0): 128, (10, 3): 128, (12, 0): 128,
}  # fmt: skip
_ARCHITECTURES: Final = {
    4: "pascal", 5: "volta", 6: "turing", 7: "ampere", 8: "ada", 9: "hopper", 10: "blackwell",
}  # fmt: skip
_CALLS: Final[Mapping[str, tuple[Sequence[str], tuple[int, ...]]]] = {
    "compute_capability": (("nvmlDeviceGetCudaComputeCapability",), ()),
    "architecture": (("nvmlDeviceGetArchitecture",), ()),
    "core_count": (("nvmlDeviceGetNumGpuCores",), ()),
    "memory_bus_bits": (("nvmlDeviceGetMemoryBusWidth",), ()),
    "power_limit_w": (("nvmlDeviceGetEnforcedPowerLimit",), ()),
    "power_default_w": (("nvmlDeviceGetPowerManagementDefaultLimit",), ()),
    "power_range_w": (("nvmlDeviceGetPowerManagementLimitConstraints",), ()),
    "sm_max_hz": (("nvmlDeviceGetMaxClockInfo",), (_SM,)),
    "mem_max_hz": (("nvmlDeviceGetMaxClockInfo",), (_MEM,)),
    "clock_lock_hz": (("nvmlDeviceGetApplicationsClock",), (_GRAPHICS,)),
    "base_clock_hz": (("nvmlDeviceGetDefaultApplicationsClock",), (_GRAPHICS,)),
    "ecc": (("nvmlDeviceGetEccMode",), ()),
    "vbios": (("nvmlDeviceGetVbiosVersion",), ()),
    "gsp_firmware": (("nvmlDeviceGetGspFirmwareVersion",), ()),
    "board_part_number": (("nvmlDeviceGetBoardPartNumber",), ()),
    "pcie_gen_max": (("nvmlDeviceGetMaxPcieLinkGeneration",), ()),
    "pcie_width_max": (("nvmlDeviceGetMaxPcieLinkWidth",), ()),
    "virtualization": (("nvmlDeviceGetVirtualizationMode",), ()),
}


def facts(library: Library, gpu: Any) -> dict[str, Reading]:
    """Return the facts of a GPU by the names of its card; watts, hertz, and plain words."""
    found = {name: library.read(names, gpu, *more) for name, (names, more) in _CALLS.items()}
    found["cuda_driver"] = library.read(
        ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion")
    )
    found["nvidia"] = library.read(("nvmlSystemGetDriverVersion",))
    return {name: _in_units(name, each) for name, each in found.items()}


def sm_count(library: Library, gpu: Any) -> int | None:
    """Return the multiprocessors of a GPU: its cores over those of each, where that is known."""
    cores = library.read(("nvmlDeviceGetNumGpuCores",), gpu).value
    capability = library.read(("nvmlDeviceGetCudaComputeCapability",), gpu).value
    each = _CORES.get(tuple(capability)) if capability is not None else None
    return cores // each if cores and each else None


def _in_units(name: str, found: Reading) -> Reading:
    value = found.value
    if value is None:
        return found
    if name == "compute_capability":
        return Reading(".".join(map(str, value)))
    if name == "architecture":
        word = _ARCHITECTURES.get(value)
        return Reading(word) if word else Reading(reason=f"not_supported: architecture {value}")
    if name == "cuda_driver":  # 12040 is 12.4
        return Reading(f"{value // 1000}.{value % 1000 // 10}")
    if name == "ecc":
        return Reading(bool(value[0]))
    if name == "power_range_w":
        return Reading([round(each / 1000) for each in value])
    if name.endswith("_w"):
        return Reading(round(value / 1000))
    return Reading(value * 1_000_000) if name.endswith("_hz") else found
