"""The system card of one slot: the hardware and software that its numbers depend on.

What a number depends on is hashed into `system_id`; what only says where stands beside it. Nothing
private is collected: no host name, address, serial number, user or path.
"""

import platform
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from farm import identity
from farm.schema import (
    PROTOCOL_VERSION,
    Drivers,
    Frameworks,
    NodeFacts,
    Stable,
    SystemCard,
    null_paths,
)
from workers import accelerators, card_host
from workers.devices import Slot
from workers.environment import measuring_settings
from workers.gpu import Board, Reading
from workers.host import Host, boot_of

_CLASS_LENGTH: Final = 64
_LIBRARIES: Final = {
    "cuda_runtime": "nvidia-cuda-runtime",
    "cudnn": "nvidia-cudnn",
    "nccl": "nvidia-nccl",
    "cupti": "nvidia-cuda-cupti",
}
# Words of a CPU's name that tell no machine from another.
_EMPTY_WORDS: Final = re.compile(
    r"\((?:r|tm)\)|\b(?:cpu|processor|amd|intel)\b|\d+(?:st|nd|rd|th) gen|\d+-core|@.*|with .*",
    re.IGNORECASE,
)


def collect(
    slot: Slot,
    host: Host,
    *,
    node_id: str,
    lease_scope: Literal["host", "user"],
    name: str = "",
    labels: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    facts: Mapping[str, Reading] | None = None,
    salt: str = "",
    versions: Callable[[str], str] = version,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> SystemCard:
    """Return the card of a slot as it is now, with a reason for everything that could not be had.

    name: of the node, by default the first 8 digits of its id. environment: of a child, for the
    settings that change numbers. facts: of the slot's GPU; salt: of its hash. versions: as
    `importlib.metadata.version` of the interpreter that will measure; no framework is imported.
    """
    board, told = slot.board, facts or {}
    made, reasons = accelerators.accelerator(board, told) if board is not None else (None, {})
    stable = Stable(
        simulated=slot.simulated,
        virtualization=card_host.virtualization(host),
        memory_bytes=host.bytes_of("proc/meminfo", "MemTotal:"),
        cpu=card_host.cpu(host, slot.cpus),
        os=card_host.system(host),
        drivers=_drivers(host, slot, told, versions),
        frameworks=_frameworks(versions),
        settings=measuring_settings(environment or {}),
        accelerators=UNSET if made is None else [made],
    )
    quota = host.cpu_quota()
    node = NodeFacts(
        node_id=node_id,
        name=name or node_id[:8],
        collected_at=clock().isoformat(timespec="seconds").replace("+00:00", "Z"),
        lease_scope=lease_scope,
        leased_cpus=list(slot.cpus),
        housekeeping_cpus=list(slot.housekeeping),
        cgroup_cpus=None if quota is None else int(quota),
        labels=dict(labels or {}),
        **_around(host),
        **_on_the_bus(slot, salt),
    )
    plain = msgspec.to_builtins(stable)
    unknown = null_paths({"stable": plain, "node": msgspec.to_builtins(node)})
    return SystemCard(
        system_id=identity.system_id(plain),
        system_class=system_class(stable, board),
        stable=stable,
        node=node,
        null_reasons={path: _reason(path, host, reasons) for path in unknown},
    )


def system_class(stable: Stable, board: Board | None = None) -> str:
    """Return the readable class that groups machines: CPU model and leased cores, `epyc-7b13_1c`.

    Of a GPU it is that of the device and the CPU model, `h100-sxm-80g_epyc-7b13`. It matches
    `[a-z0-9][a-z0-9_-]{0,63}`; `cpu` stands for a model that is unknown, and simulated machines
    start with `sim-`.
    """
    words = _EMPTY_WORDS.sub(" ", stable.cpu.model or "")
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "cpu"
    start = "sim-" if stable.simulated else ""
    if board is not None:
        return f"{start}{accelerators.class_name(board)}_{slug}"[:_CLASS_LENGTH].rstrip("-_")
    end = f"_{stable.cpu.leased_cores}c"
    room = _CLASS_LENGTH - len(start) - len(end)
    return start + slug[:room].rstrip("-") + end


def driver_version(host: Host) -> str | None:
    """Return the version of the loaded NVIDIA kernel module, or None without one."""
    text = host.text("proc/driver/nvidia/version") or ""
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text, re.MULTILINE)
    return found[1] if found else None


def _drivers(
    host: Host, slot: Slot, facts: Mapping[str, Reading], versions: Callable[[str], str]
) -> Drivers:
    if slot.board is None:
        return Drivers(nvidia=driver_version(host))
    text = host.text("proc/driver/nvidia/version")
    return Drivers(
        nvidia=facts.get("nvidia", Reading()).value or driver_version(host),
        cuda_driver=facts.get("cuda_driver", Reading()).value,
        kernel_module=None if text is None else "open" if "Open Kernel" in text else "proprietary",
        **{name: _first(versions, package) for name, package in _LIBRARIES.items()},
    )


def _frameworks(versions: Callable[[str], str]) -> Frameworks:
    torch = _version(versions, "torch")
    return Frameworks(
        python=platform.python_version(),
        torch=torch,
        numpy=_version(versions, "numpy"),
        onnxruntime=_runtime(versions),
        torch_build=_build(torch),
        triton=_version(versions, "triton") or UNSET,
        farm_protocol=PROTOCOL_VERSION,
    )


def _first(versions: Callable[[str], str], package: str) -> str | None:
    """Return the version of a library of CUDA, which comes in a package for each of its majors."""
    found = (_version(versions, f"{package}{end}") for end in ("", "-cu13", "-cu12", "-cu11"))
    return next(filter(None, found), None)


def _build(torch: str | None) -> str | UnsetType:
    """Return for what torch was built, `cpu` or `cu128`, where its version says it."""
    return (torch or "").partition("+")[2] or UNSET


def _around(host: Host) -> dict[str, Any]:
    """Return what limits this node, and where it stands; None where the host does not tell."""
    paranoid = (host.text("proc/sys/kernel/perf_event_paranoid") or "").strip()
    swap, huge = (host.bytes_of("proc/meminfo", f"{name}:") for name in ("SwapTotal", "Hugetlb"))
    return {
        "boot_hash": boot_of(host) or None,
        "swap_bytes": swap,
        "hugepages_bytes": huge,
        "container": _container(host),
        "perf_event_paranoid": int(paranoid) if re.fullmatch(r"-?\d+", paranoid) else None,
        "has_psi": host.text("proc/pressure/cpu") is not None,
    }


def _container(host: Host) -> str | None:
    """Return what kind of container this is, `none` outside of one; None without /proc."""
    if not host.names("proc"):
        return None
    if host.text("run/.containerenv") is not None:
        return "podman"
    if host.text(".dockerenv") is not None:
        return "docker"
    groups = host.text("proc/1/cgroup") or ""
    kinds = ("kubepods", "docker", "lxc", "libpod")
    return next((each for each in kinds if each in groups), "none")


def _on_the_bus(slot: Slot, salt: str) -> dict[str, Any]:
    """Return where the slot's GPU is, and which one among its equals."""
    if slot.board is None:
        return {}
    return {
        "device_hash": accelerators.device_hash(slot.board.uuid, salt=salt),
        "pci_bdf": slot.board.pci_bdf or None,
        "numa_node": slot.board.numa_node,
    }


def _runtime(versions: Callable[[str], str]) -> str | UnsetType:
    """Return the version of ONNX Runtime, which is installed under one of two names."""
    found = (_version(versions, name) for name in ("onnxruntime", "onnxruntime-gpu"))
    return next(filter(None, found), UNSET)


def _version(versions: Callable[[str], str], package: str) -> str | None:
    try:
        return versions(package)
    except PackageNotFoundError:
        return None


def _reason(path: str, host: Host, of_gpu: Mapping[str, str]) -> str:
    known = {
        **{f"stable.accelerators.0.{name}": why for name, why in of_gpu.items()},
        "stable.drivers.cuda_driver": "not_probed",
        "stable.frameworks.torch": "library_missing",
        "stable.frameworks.numpy": "library_missing",
        "stable.drivers.nvidia": "driver_not_loaded",
        "stable.drivers.kernel_module": "driver_not_loaded",
        **{f"stable.drivers.{name}": "library_missing" for name in _LIBRARIES},
        "node.cgroup_cpus": "not_applicable: no quota",
    }
    if path in known:
        return known[path]
    return "not_supported" if host.names("proc") else "not_supported: no /proc on this system"
