"""The caches of some CPUs, as the kernel shows them."""

from collections.abc import Sequence
from typing import Final

from workers.host.tree import Host, number

_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cache_bytes(host: Host, cpus: Sequence[int]) -> int | None:
    """Return what the last-level caches of the CPUs hold together; None if they are not shown."""
    sizes: dict[tuple[int, str], int] = {}
    for cpu in cpus:
        levels = _levels(host, cpu)
        if levels:
            level, shared, size = max(levels)
            sizes[level, shared] = size
    return sum(sizes.values()) or None


def _levels(host: Host, cpu: int) -> list[tuple[int, str, int]]:
    """Return level, the CPUs that share it, and size of each cache that holds data."""
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache"
    found = []
    for index in host.names(folder):
        words = {
            name: (host.text(f"{folder}/{index}/{name}") or "").strip()
            for name in ("level", "type", "size", "shared_cpu_list")
        }
        level, size = number(words["level"]), number(words["size"])
        if level is not None and size is not None and words["type"] != "Instruction":
            unit = _UNITS.get(words["size"][-1:], 1)
            found.append((level, words["shared_cpu_list"] or str(cpu), size * unit))
    return found
