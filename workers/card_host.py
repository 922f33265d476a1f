"""What a system card says of the host itself: its processor and its operating system."""

import os
import platform
import re
from collections.abc import Iterable, Sequence
from typing import Final

from farm.schema import Cpu, System
from workers.host import Host, cpu_list, number

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


def cpu(host: Host, cpus: Sequence[int]) -> Cpu:
    """Return the processor as the first leased CPU sees it; None where the host does not tell."""
    online = cpu_list(host.text(f"{_CPU}/online") or "") or list(range(os.cpu_count() or 1))
    first = f"{_CPU}/cpu{cpus[0]}"
    sockets = _places(host, online, "physical_package_id")
    cores = _places(host, online, "physical_package_id", "core_id")
    smt = (host.text(f"{_CPU}/smt/active") or "").strip()
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
        leased_cores=len(cpus),
        smt=smt == "1" if smt else None,
        isa=sorted(flags & _ISA) if flags else None,
        max_hz=_hz(host.text(f"{first}/cpufreq/cpuinfo_max_freq")),
        governor=(host.text(f"{first}/cpufreq/scaling_governor") or "").strip() or None,
        l3_bytes=_cache_bytes(host, f"{first}/cache", level=3),
        numa_nodes=len(numa) or None,
        base_hz=_hz(host.text(f"{first}/cpufreq/base_frequency")),
        boost=_boost(host),
        l1d_bytes=_cache_bytes(host, f"{first}/cache", level=1),
        l2_bytes=_cache_bytes(host, f"{first}/cache", level=2),
        microcode=_field(info, "microcode"),
    )


def system(host: Host) -> System:
    """Return the operating system as far as numbers depend on it."""
    release = host.text("etc/os-release")
    words = [_field(release, name, "=") for name in ("ID", "VERSION_ID")]
    libc = " ".join(platform.libc_ver()).strip()
    clock = host.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    pages = host.text("sys/kernel/mm/transparent_hugepage/enabled")
    chosen = re.search(r"\[(\w+)\]", pages or "")
    line = host.text("proc/cmdline")  # of which one word is told: others may be private
    return System(
        distro=" ".join(word.strip('"') for word in words if word) or None,
        kernel=(host.text("proc/sys/kernel/osrelease") or platform.release()).strip(),
        libc=libc or None,
        clocksource=(clock or "").strip() or None,
        thp=chosen[1] if chosen else None,
        mitigations=None if line is None else "off" if "mitigations=off" in line else "on",
    )


def virtualization(host: Host) -> str | None:
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


def _cache_bytes(host: Host, folder: str, *, level: int) -> int | None:
    """Return the cache for data of a level that the CPU sees."""
    for index in host.names(folder):
        kind = (host.text(f"{folder}/{index}/type") or "Unified").strip()
        if number(host.text(f"{folder}/{index}/level")) == level and kind != "Instruction":
            size = re.match(r"(\d+)([KM])", host.text(f"{folder}/{index}/size") or "")
            return int(size[1]) << (10 if size[2] == "K" else 20) if size else None
    return None


def _hz(text: str | None) -> int | None:
    """Return a clock that the kernel tells in kHz."""
    found = number(text)
    return None if found is None else found * 1000


def _boost(host: Host) -> bool | None:
    """Return whether clocks beyond the base are allowed."""
    told = number(host.text(f"{_CPU}/cpufreq/boost"))
    if told is not None:
        return told == 1
    off = number(host.text(f"{_CPU}/intel_pstate/no_turbo"))
    return None if off is None else off == 0


def _field(text: str | None, name: str, sign: str = ":") -> str | None:
    found = re.search(rf"^{name}[ \t]*{sign}[ \t]*(\S.*?)\s*$", text or "", re.MULTILINE)
    return found[1] if found else None
