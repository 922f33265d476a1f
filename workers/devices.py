"""The slots of this machine: which cores a job is given, and what its process may see.

One CPU slot takes whole physical cores, one thread of each, and leaves one core for housekeeping
where there are two. Cores are counted after the operator's affinity, cpuset and quota.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from farm.errors import NoResult, Refused, did_you_mean
from farm.schema import Device
from workers.host import Host, cpu_list

_SELECTORS: Final = ["all", "cpu", "gpu"]
_GPU_IDS: Final = ("GPU-", "MIG-", "gpu-", "mig-")

# What a child gets of its parent's environment: names, and beginnings of names.
_KEPT: Final = frozenset({"PATH", "LANG", "LD_LIBRARY_PATH", "NVIDIA_TF32_OVERRIDE"})
_KEPT_PREFIXES: Final = (
    *("CUDA_", "OMP_", "MKL_", "OPENBLAS_"),
    *("TORCH_", "PYTORCH_", "TRITON_", "NCCL_"),
)
_SECRET_WORDS: Final = ("token", "secret", "passw", "credential", "api_key", "access_key")
_THREAD_COUNTS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Kept, but said elsewhere on a card, or no matter of numbers.
_NOT_SHOWN: Final = {*_THREAD_COUNTS, "PATH", "LANG", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"}


@dataclass(frozen=True, slots=True)
class Slot:
    """One device that jobs are pinned to.

    cpus: leased logical CPUs, one per leased physical core, ascending. flags: doubts that hold for
    every job of the slot.
    """

    number: int
    cpus: tuple[int, ...]
    housekeeping: tuple[int, ...]
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"cpu:{self.number}"

    def device(self, model: str | None) -> Device:
        """Return the device as a profile shows it; model: of the CPU, where it is known."""
        return Device(name=model or "cpu", slot=self.name, kind="cpu", cpus=list(self.cpus))


def slots(
    host: Host, selector: str = "all", *, affinity: Collection[int] | None, count: int = 1
) -> list[Slot]:
    """Return the slots that a selector names: `all`, `cpu`, or one as `cpu:0`.

    affinity: the logical CPUs that this process may use; None where the system has no such thing.
    count: CPU slots that share the cores. Raises Refused for words that are no selector, NoResult
    for a device that is not here; this version serves no GPU, and says how many there are.
    """
    if count < 1:
        raise Refused(f"{count} CPU slots", why="a node serves at least one")
    wanted = _wanted(selector, host)
    found = _cpu_slots(_cores(host, affinity), count)
    if affinity is None:
        found = [replace(slot, flags=(*slot.flags, "not_pinned")) for slot in found]
    if wanted is None:
        return found
    chosen = [slot for slot in found if slot.number == wanted]
    if not chosen:
        served = ", ".join(slot.name for slot in found)
        raise NoResult(f"no device {selector!r} here", why=f"this node has {served}")
    return chosen


def own_affinity() -> set[int] | None:
    """Return the logical CPUs that this process may use; None on a system that cannot pin."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def core_names(host: Host, cpus: Collection[int]) -> list[int]:
    """Return what the physical cores of the CPUs are called in leases, ascending.

    A core is called by its lowest logical CPU, allowed or not, so that two workers which may use
    different threads of one core still meet at its lock.
    """
    return sorted({min(_siblings(host, cpu), default=cpu) for cpu in cpus})


def gpu_count(host: Host) -> int:
    """Return how many GPUs the NVIDIA driver shows; 0 without a driver."""
    return len(host.names("proc/driver/nvidia/gpus"))


def child_environment(
    parent: Mapping[str, str],
    *,
    threads: int,
    folder: Path,
    cache: Path | None = None,
    accelerator: str = "",
) -> dict[str, str]:
    """Return the whole environment of a child on a CPU slot: an allow-list, and what pins it.

    folder: private to the child, its HOME and TMPDIR. cache: of the slot, for compiled code; in the
    folder, hence cold, if None. Names that look like a secret are dropped even if they are allowed.
    accelerator: `cuda` or `cuda:N` for a child that sees the GPUs that its parent was given
    (S1.21); "" for one that sees none.
    """
    kept = {name: value for name, value in parent.items() if _is_kept(name)}
    store = cache if cache is not None else folder / "cache"
    return {
        **kept,
        **dict.fromkeys(_THREAD_COUNTS, str(threads)),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **_visible(parent, accelerator),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(store),
        "TORCHINDUCTOR_CACHE_DIR": str(store / "inductor"),
        "TRITON_CACHE_DIR": str(store / "triton"),
        "HF_HUB_OFFLINE": "1",
    }


def _visible(parent: Mapping[str, str], accelerator: str) -> dict[str, str]:
    """Return what says which GPUs the child sees: none, or those that its parent was given."""
    if not accelerator:
        return {"CUDA_VISIBLE_DEVICES": ""}
    given = parent.get("CUDA_VISIBLE_DEVICES")
    return {} if given is None else {"CUDA_VISIBLE_DEVICES": given}


def measuring_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a child that change its numbers: what a system card shows of it.

    Thread counts and device visibility are stated elsewhere; a value that holds a path stays out,
    because it may name a person.
    """
    return {
        name: value
        for name, value in sorted(environment.items())
        if _is_kept(name) and name not in _NOT_SHOWN and "/" not in value
    }


def _is_kept(name: str) -> bool:
    lower = name.lower()
    allowed = name in _KEPT or name.startswith(_KEPT_PREFIXES)
    return allowed and not any(word in lower for word in _SECRET_WORDS)


def _wanted(selector: str, host: Host) -> int | None:
    """The number of one CPU slot, or None for every one."""
    if selector in ("all", "cpu"):
        return None
    kind, _, index = selector.partition(":")
    if kind == "cpu" and index.isdecimal():
        return int(index)
    is_address = selector.count(":") >= 1 and selector[:1].isdecimal()
    if kind == "gpu" or selector.isdecimal() or is_address or selector.startswith(_GPU_IDS):
        count = gpu_count(host)
        seen = f"{count} NVIDIA GPU{'s' if count != 1 else ''} here" if count else "no GPU here"
        raise NoResult(
            f"no device {selector!r} to serve",
            why=f"this version serves CPU slots; there {'are' if count > 1 else 'is'} {seen}",
            hint="say `cpu`",
        )
    raise Refused(
        f"unknown device selector {selector!r}",
        why="known: all, cpu, cpu:0, gpu",
        hint=did_you_mean(selector, _SELECTORS),
    )


def _cores(host: Host, affinity: Collection[int] | None) -> list[int]:
    """The first allowed CPU of each physical core; as many as the quota grants, at least one."""
    online = set(cpu_list(host.text("sys/devices/system/cpu/online") or ""))
    allowed = set(affinity) if affinity is not None else online or set(range(os.cpu_count() or 1))
    for limit in (online, set(host.cpuset() or ())):
        # An empty set says nothing, and a disjoint one belongs to another view of the machine.
        allowed = allowed & limit or allowed
    first: dict[int, int] = {}
    for cpu in sorted(allowed):
        first.setdefault(core_names(host, [cpu])[0], cpu)
    found = sorted(first.values())
    quota = host.cpu_quota()
    return found if quota is None else found[: max(1, int(quota))]


def _siblings(host: Host, cpu: int) -> list[int]:
    """The threads of the CPU's core; none where the topology is hidden: each CPU is then a core."""
    folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
    for name in ("core_cpus_list", "thread_siblings_list"):
        found = cpu_list(host.text(f"{folder}/{name}") or "")
        if cpu in found:
            return found
    return []


def _cpu_slots(cores: list[int], count: int) -> list[Slot]:
    alone = len(cores) == 1
    lease = cores if alone else cores[1:]
    flags: tuple[str, ...] = ("no_housekeeping_core",) if alone else ()
    if len(lease) < count:
        flags += ("shared_cores",)  # they take turns by the leases of the cores
    return [
        Slot(number, tuple(_share(lease, number, count)), (cores[0],), flags)
        for number in range(count)
    ]


def _share(cores: list[int], number: int, count: int) -> list[int]:
    """Neighbouring cores, evenly; all of them where there are fewer cores than slots."""
    if len(cores) < count:
        return cores
    return cores[number * len(cores) // count : (number + 1) * len(cores) // count]
