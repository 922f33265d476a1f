"""The two file trees of a host, and what they say about its processes and control groups."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KIB: Final = 1024
# Left to the node's own programs when a job may use what is free.
_MEMORY_RESERVE: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    """One process at one moment; ticks: user and system time of all its threads, ended ones too."""

    command: str
    parent: int
    group: int
    session: int
    started: int
    ticks: int
    cpus: tuple[int, ...] | None  # that it may run on


@dataclass(frozen=True, slots=True)
class Host:
    """A machine by the folder that holds its `proc` and `sys` trees; paths are relative to it."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """Return the content of a file, or None if it cannot be read."""
        try:
            with open(os.path.join(self.root, path), "rb", buffering=0) as file:
                return file.readall().decode(errors="replace")
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        """Return the names in a folder; none if it cannot be listed."""
        try:
            return os.listdir(os.path.join(self.root, path))
        except OSError:
            return []

    def bytes_of(self, path: str, key: str) -> int | None:
        """Return the value of a line such as `VmRSS:  340 kB` in bytes, or None."""
        found = number(self.text(path), rf"{key}\s*")
        return None if found is None else found * _KIB

    def cgroup_folders(self, controller: str) -> Iterator[str]:
        """Yield the folders of this process's control group and of those above, nearest first.

        Versions 1 and 2. A container may see its own group as the top, so a folder that is named
        need not exist.
        """
        for line in (self.text("proc/self/cgroup") or "").splitlines():
            hierarchy, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if hierarchy == "0":
                mounts = ["", "/unified"]
            elif controller in controllers.split(","):
                mounts = list(dict.fromkeys((f"/{controllers}", f"/{controller}")))
            else:
                continue
            parts = [part for part in path.split("/") if part not in ("", "..")]
            for mount in mounts:
                for depth in range(len(parts), -1, -1):
                    yield "/".join((f"sys/fs/cgroup{mount}", *parts[:depth]))

    def cpu_quota(self) -> float | None:
        """Return how many CPUs the quota of this group, or of one above, grants; None without."""
        found = []
        for folder in self.cgroup_folders("cpu"):
            limit = (self.text(f"{folder}/cpu.max") or "").split()
            if not limit:
                files = (f"{folder}/cpu.cfs_{name}_us" for name in ("quota", "period"))
                limit = [(self.text(file) or "").strip() for file in files]
            # `max` and -1 mean no limit at this level
            if len(limit) == 2 and limit[0].isdecimal() and limit[1].isdecimal():
                found.append(int(limit[0]) / max(1, int(limit[1])))
        return min(found, default=None)

    def cpuset(self) -> list[int] | None:
        """Return the CPUs that the control group allows; None if it does not say."""
        for folder in self.cgroup_folders("cpuset"):
            for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
                cpus = cpu_list(self.text(f"{folder}/{name}") or "")
                if cpus:
                    return cpus
        return None

    def memory_to_use(self) -> int | None:
        """Return how many bytes a new job may take: what is available less 256 MiB, at least 0.

        The host's MemAvailable, or less where a control group leaves less; page cache that can be
        dropped counts as available. None without /proc.
        """
        available = self.bytes_of("proc/meminfo", "MemAvailable:")
        if available is None:
            return None
        return max(0, min([available, *self._left_by_groups()]) - _MEMORY_RESERVE)

    def processes(self) -> dict[int, Usage]:
        """Return every process that can be seen, by its number; some 40 µs each."""
        found = {}
        for name in self.names("proc"):
            usage = self._usage(f"proc/{name}") if name.isdecimal() else None
            if usage is not None:
                found[int(name)] = usage
        return found

    def _left_by_groups(self) -> Iterator[int]:
        for folder in self.cgroup_folders("memory"):
            limit = number(self.text(f"{folder}/memory.max"))
            used = number(self.text(f"{folder}/memory.current"))
            if limit is None or used is None:
                limit = number(self.text(f"{folder}/memory.limit_in_bytes"))
                used = number(self.text(f"{folder}/memory.usage_in_bytes"))
            # Version 1 writes "no limit" as a huge number, which is never the smallest.
            if limit is not None and used is not None:
                statistics = self.text(f"{folder}/memory.stat")
                cache = number(statistics, "(?:total_)?inactive_file ") or 0
                yield max(0, limit - used + cache)

    def _usage(self, folder: str) -> Usage | None:
        # The command stands in brackets and may hold blanks and brackets itself.
        head, _, tail = (self.text(f"{folder}/stat") or "").rpartition(")")
        values = [int(field) for field in tail.split()[1:] if field.lstrip("-").isdecimal()]
        if len(values) < 19:
            return None
        status = self.text(f"{folder}/status") or ""
        allowed = re.search(r"^Cpus_allowed_list:(.*)", status, re.MULTILINE)
        return Usage(
            command="".join(c if c.isprintable() else "?" for c in head.partition("(")[2]),
            parent=values[0],
            group=values[1],
            session=values[2],
            ticks=values[10] + values[11],
            started=values[18],
            cpus=tuple(cpu_list(allowed[1])) if allowed else None,
        )


def cpu_list(text: str) -> list[int]:
    """Return the numbers of a kernel list such as `0-3,8`, ascending."""
    numbers: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        numbers.update(range(int(first), int(last or first) + 1))
    return sorted(numbers)


def number(text: str | None, before: str = "") -> int | None:
    """Return the first number that follows the pattern at the start of a line, or None."""
    found = re.search(rf"^{before}(\d+)", text or "", re.MULTILINE)
    return int(found[1]) if found else None
