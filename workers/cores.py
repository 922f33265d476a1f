"""The physical cores of this machine, and who gets which: housekeeping, GPUs, CPU slots.

A slot takes whole physical cores, one thread of each. Cores are counted after the operator's
affinity, cpuset and quota.
"""

import os
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from workers.host import Host, cpu_list

_OF_GPU: Final = 8  # cores of a GPU slot at most: more only wait


class Share(NamedTuple):
    """Logical CPUs of a slot, one of each core, ascending. flags: doubts about all of its jobs."""

    cpus: tuple[int, ...]
    flags: tuple[str, ...] = ()


class Division(NamedTuple):
    """Who gets which cores: housekeeping, each GPU in its order, each CPU slot in its order."""

    housekeeping: tuple[int, ...]
    gpus: list[Share]
    slots: list[Share]


def divide(cores: Sequence[int], *, near: Sequence[Collection[int]], slots: int) -> Division:
    """Return the cores of GPUs and CPU slots, none of them in two shares while there are enough.

    cores: the first allowed CPU of each. near: for each GPU the CPUs near it, none where nobody
    knows. One core is for housekeeping where there are two. GPUs take theirs first, near them, at
    most 8 each, and leave the CPU slots as much and one each; these share what is left evenly.
    Who finds none has all of them, and whose cores somebody else has too takes turns
    (`shared_cores`).
    """
    alone = len(cores) == 1
    rest = list(cores if alone else cores[1:])
    gpus = len(near) or 1
    fair = len(rest) // (gpus + (1 if slots else 0))
    each = max(1, min(_OF_GPU, fair, (len(rest) - slots) // gpus))
    left, found = list(rest), []
    for wished in near:
        mine = sorted(left, key=lambda cpu: (cpu not in wished, cpu))[:each]
        left = [cpu for cpu in left if cpu not in mine]
        found.append(tuple(sorted(mine or rest)))
    found += [tuple(share(left or rest, at, slots)) for at in range(slots)]
    takes = Counter(cpu for cpus in found for cpu in cpus)
    flags = ("no_housekeeping_core",) if alone else ()
    shares = [
        Share(cpus, (*flags, "shared_cores") if any(takes[cpu] > 1 for cpu in cpus) else flags)
        for cpus in found
    ]
    return Division((cores[0],), shares[: len(near)], shares[len(near) :])


def share(cores: Sequence[int], number: int, count: int) -> Sequence[int]:
    """Return neighbouring cores, evenly; all of them where there are fewer cores than slots."""
    if len(cores) < count:
        return cores
    return cores[number * len(cores) // count : (number + 1) * len(cores) // count]


def own_affinity() -> set[int] | None:
    """Return the logical CPUs that this process may use; None on a system that cannot pin."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def names(host: Host, cpus: Collection[int]) -> list[int]:
    """Return what the physical cores of the CPUs are called in leases, ascending.

    A core is called by its lowest logical CPU, allowed or not, so that two workers which may use
    different threads of one core still meet at its lock.
    """
    return sorted({min(_siblings(host, cpu), default=cpu) for cpu in cpus})


def allowed(host: Host, affinity: Collection[int] | None) -> list[int]:
    """Return the first allowed CPU of each physical core: one at least, within the quota."""
    online = set(cpu_list(host.text("sys/devices/system/cpu/online") or ""))
    allowed = set(affinity) if affinity is not None else online or set(range(os.cpu_count() or 1))
    for limit in (online, set(host.cpuset() or ())):
        # An empty set says nothing, and a disjoint one belongs to another view of the machine.
        allowed = allowed & limit or allowed
    first: dict[int, int] = {}
    for cpu in sorted(allowed):
        first.setdefault(names(host, [cpu])[0], cpu)
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
