"""What a process may ask about itself and its cores: scheduler evidence and memory peaks."""

import os
import resource
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from workers.host.resident import Peak
from workers.host.thermal import throttle_count
from workers.host.tree import Host, number
from workers.record import Edge, MemoryReading


@dataclass(frozen=True, slots=True)
class Ticks:
    """Counters of some CPUs together since boot, in clock ticks; total includes idle and steal."""

    busy: int
    steal: int
    total: int


class Probe:
    """The readings of this process, made in the thread that steps."""

    def __init__(self, host: Host, *, cpus: Collection[int]) -> None:
        self._host = host
        self._cpus = tuple(cpus)
        self._after_load: int | None = None
        self._peak = Peak(host)
        self._thread = _open_schedstat(host)

    def edge(self) -> Edge:
        """Return the scheduler evidence of this moment."""
        return edge(self._host, cores=self._cpus)

    def waited_ns(self) -> int | None:
        """Return how long this thread has been runnable without a core; it costs some 3 µs.

        The thread is the one that made the probe.
        """
        if self._thread is None:
            return None
        fields = os.pread(self._thread, 128, 0).split()
        return int(fields[1]) if len(fields) >= 2 and fields[1].isdigit() else None

    def loaded(self) -> None:
        """Take the resident memory as that after loading."""
        self._after_load = self._host.bytes_of("proc/self/status", "VmRSS:")

    def reset_peak(self) -> None:
        """Start a new peak; where the kernel does not let us, `memory` reports none."""
        self._peak.reset()

    def memory(self) -> MemoryReading:
        """Return resident memory after load, its peak since the reset and ever, and its fair share.

        The fair share (PSS) walks the page tables: never ask inside a measured pass.
        """
        return MemoryReading(
            rss_after_load_bytes=self._after_load,
            rss_peak_bytes=self._peak.since_reset(),
            rss_peak_lifetime_bytes=self._peak.lifetime(),
            pss_bytes=self._host.bytes_of("proc/self/smaps_rollup", "Pss:"),
        )


def edge(host: Host, *, cores: Collection[int] = ()) -> Edge:
    """Return the scheduler evidence of this process and of the given CPUs, in well under 1 ms.

    Differences of two edges mean something, single ones do not. Thread counters are summed over
    the threads alive at the moment: a pass must not end threads between its edges.
    """
    ticks = core_ticks(host, cores)
    run_ns, wait_ns = _schedstat(host)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Edge(
        at_ns=time.monotonic_ns(),
        run_ns=run_ns,
        wait_ns=wait_ns,
        steal_ticks=ticks.steal if ticks else None,
        total_ticks=ticks.total if ticks else None,
        psi_some_us=number(host.text("proc/pressure/cpu"), r"some .*total="),
        nr_throttled=throttled(host),
        major_faults=usage.ru_majflt,
        involuntary_switches=usage.ru_nivcsw,
        suspended_ns=suspended_ns(),
        heat_throttles=throttle_count(host, cores) if cores else None,
    )


def core_ticks(host: Host, cpus: Collection[int]) -> Ticks | None:
    """Return the tick counters of the given logical CPUs together; None if one is not listed."""
    wanted = {f"cpu{cpu}" for cpu in cpus}
    if not wanted:
        return None
    busy = steal = total = 0
    for line in (host.text("proc/stat") or "").splitlines():
        name, *fields = line.split() or [""]
        # user nice system idle iowait irq softirq steal; guest time is inside user
        counts = [int(field) for field in fields[:8] if field.isdecimal()]
        if name in wanted and len(counts) == 8:
            wanted.remove(name)
            total += sum(counts)
            steal += counts[7]
            busy += sum(counts) - counts[3] - counts[4] - counts[7]
    return None if wanted else Ticks(busy, steal, total)


def throttled(host: Host) -> int | None:
    """Return how often the CPU quota of this group, or of one above, has stopped its threads.

    A level that shows its counters without this one has no quota and counts 0; None if no level
    can be read.
    """
    found = None
    for folder in host.cgroup_folders("cpu"):
        text = host.text(f"{folder}/cpu.stat")
        if text is not None:
            found = (found or 0) + (number(text, "nr_throttled ") or 0)
    return found


def suspended_ns(
    *,
    monotonic: Callable[[], int] = time.monotonic_ns,
    boottime: Callable[[], int] | None = None,
) -> int | None:
    """Return boottime minus monotonic, ns: it grows only while the machine sleeps.

    Two clocks cannot be read at once: the closest of three tries counts, which is good to some
    microseconds. None where the system has no such clock.
    """
    if boottime is None:
        if not hasattr(time, "CLOCK_BOOTTIME"):
            return None
        boottime = _boottime
    tries = []
    for _ in range(3):
        before, boot, after = monotonic(), boottime(), monotonic()
        tries.append((after - before, boot - (before + after) // 2))
    return min(tries)[1]


def _boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _schedstat(host: Host) -> tuple[int | None, int | None]:
    """Time on a CPU, and time runnable without one, summed over the threads of this process."""
    run = wait = 0
    for thread in host.names("proc/self/task"):
        fields = (host.text(f"proc/self/task/{thread}/schedstat") or "").split()
        if len(fields) >= 2 and fields[0].isdecimal() and fields[1].isdecimal():
            run, wait = run + int(fields[0]), wait + int(fields[1])
    # A thread that reads this has run: 0 means that the kernel does not count.
    return (run, wait) if run > 0 else (None, None)


def _open_schedstat(host: Host) -> int | None:
    """Kept open: a new open for each reading would cost four times as much."""
    thread = threading.get_native_id()
    try:
        return os.open(host.root / f"proc/self/task/{thread}/schedstat", os.O_RDONLY)
    except OSError:
        return None
