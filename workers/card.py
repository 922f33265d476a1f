"""The system card of one slot: the hardware and software that its numbers depend on.

What a number depends on is hashed into `system_id`; what only says where stands beside it. Nothing
private is collected: no host name, address, serial number, user or path.
"""

import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from farm import identity
from farm.schema import (
    PROTOCOL_VERSION,
    Cpu,
    Drivers,
    Frameworks,
    NodeFacts,
    Stable,
    System,
    SystemCard,
    null_paths,
)
from workers import accelerators
from workers.devices import Slot
from workers.environment import measuring_settings
from workers.gpu import Board, Reading
from workers.host import Host, cpu_list, number

_CLASS_LENGTH: Final = 64
_CPU: Final = "sys/devices/system/cpu"
# Instruction sets that decide which kernel a library picks.
_ISA: Final = {
    *("sse4_2", "avx", "avx2", "avx_vnni", "fma", "f16c"),
    *("avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "i8mm"),
}
_ARM_VENDORS: Final = {0x41: "ARM", 0x61: "Apple", 0xC0: "Ampere", 0x48: "HiSilicon"}
_PRODUCTS: Final = (
    ("kvm", "kvm"),
    ("qemu", "kvm"),
    ("google compute engine", "kvm"),
    ("amazon ec2", "kvm"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("virtual machine", "hyperv"),
    ("hvm domu", "xen"),
)
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
        virtualization=_virtualization(host),
        memory_bytes=host.bytes_of("proc/meminfo", "MemTotal:"),
        cpu=_cpu(host, slot),
        os=_system(host),
        drivers=_drivers(host, slot, told),
        frameworks=Frameworks(
            python=platform.python_version(),
            torch=_version(versions, "torch"),
            numpy=_version(versions, "numpy"),
            onnxruntime=_runtime(versions),
            farm_protocol=PROTOCOL_VERSION,
        ),
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


def _drivers(host: Host, slot: Slot, facts: Mapping[str, Reading]) -> Drivers:
    if slot.board is None:
        return Drivers(nvidia=driver_version(host))
    known = facts.get("nvidia", Reading()).value or driver_version(host)
    return Drivers(nvidia=known, cuda_driver=facts.get("cuda_driver", Reading()).value)


def _on_the_bus(slot: Slot, salt: str) -> dict[str, Any]:
    """Return where the slot's GPU is, and which one among its equals."""
    if slot.board is None:
        return {}
    return {
        "device_hash": accelerators.device_hash(slot.board.uuid, salt=salt),
        "pci_bdf": slot.board.pci_bdf or None,
        "numa_node": slot.board.numa_node,
    }


def _cpu(host: Host, slot: Slot) -> Cpu:
    online = cpu_list(host.text(f"{_CPU}/online") or "") or list(range(os.cpu_count() or 1))
    first = f"{_CPU}/cpu{slot.cpus[0]}"
    sockets = _places(host, online, "physical_package_id")
    cores = _places(host, online, "physical_package_id", "core_id")
    smt = (host.text(f"{_CPU}/smt/active") or "").strip()
    hz = number(host.text(f"{first}/cpufreq/cpuinfo_max_freq"))
    info = host.text("proc/cpuinfo")
    numa = [each for each in host.names("sys/devices/system/node") if re.match(r"node\d", each)]
    flags = set((_field(info, "flags") or _field(info, "Features") or "").split())
    return Cpu(
        vendor=_vendor(info),
        model=_field(info, "model name"),
        arch=platform.machine(),
        sockets=len(sockets) or None,
        physical_cores=len(cores) or None,
        logical_cpus=len(online),
        leased_cores=len(slot.cpus),
        smt=smt == "1" if smt else None,
        isa=sorted(flags & _ISA) if flags else None,
        max_hz=hz * 1000 if hz is not None else None,
        governor=(host.text(f"{first}/cpufreq/scaling_governor") or "").strip() or None,
        l3_bytes=_l3_bytes(host, f"{first}/cache"),
        numa_nodes=len(numa) or None,
    )


def _system(host: Host) -> System:
    release = host.text("etc/os-release")
    words = [_field(release, name, "=") for name in ("ID", "VERSION_ID")]
    libc = " ".join(platform.libc_ver()).strip()
    clock = host.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    return System(
        distro=" ".join(word.strip('"') for word in words if word) or None,
        kernel=(host.text("proc/sys/kernel/osrelease") or platform.release()).strip(),
        libc=libc or None,
        clocksource=(clock or "").strip() or None,
    )


def _virtualization(host: Host) -> str | None:
    """`none` on bare metal, the hypervisor's name or `vm`; None where the CPU does not tell."""
    flags = _field(host.text("proc/cpuinfo"), "flags")
    if flags is None:
        return None
    if "hypervisor" not in flags.split():
        return "none"
    folder = "sys/class/dmi/id"
    names = (host.text(f"{folder}/{each}") or "" for each in ("product_name", "sys_vendor"))
    product = " ".join(names).lower()
    xen = (host.text("sys/hypervisor/type") or "").strip()
    return next((kind for word, kind in _PRODUCTS if word in product), xen or "vm")


def _vendor(info: str | None) -> str | None:
    code = re.search(r"^CPU implementer\s*:\s*(0x[0-9a-f]+)", info or "", re.MULTILINE)
    return _ARM_VENDORS.get(int(code[1], 16), code[1]) if code else _field(info, "vendor_id")


def _places(host: Host, cpus: Iterable[int], *names: str) -> set[tuple[int, ...]]:
    """The distinct places of the CPUs in the topology; none where it is hidden."""
    found = set()
    for cpu in cpus:
        place = [number(host.text(f"{_CPU}/cpu{cpu}/topology/{name}")) for name in names]
        known = tuple(each for each in place if each is not None)
        if len(known) == len(names):
            found.add(known)
    return found


def _l3_bytes(host: Host, folder: str) -> int | None:
    """The third-level cache that the first leased CPU sees."""
    for index in host.names(folder):
        if number(host.text(f"{folder}/{index}/level")) == 3:
            size = re.match(r"(\d+)([KM])", host.text(f"{folder}/{index}/size") or "")
            return int(size[1]) << (10 if size[2] == "K" else 20) if size else None
    return None


def _field(text: str | None, name: str, sign: str = ":") -> str | None:
    found = re.search(rf"^{name}[ \t]*{sign}[ \t]*(\S.*?)\s*$", text or "", re.MULTILINE)
    return found[1] if found else None


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
        "node.cgroup_cpus": "not_applicable: no quota",
    }
    if path in known:
        return known[path]
    return "not_supported" if host.names("proc") else "not_supported: no /proc on this system"
