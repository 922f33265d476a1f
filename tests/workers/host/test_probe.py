"""Scheduler evidence and memory peaks of a process."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from workers.host import Host, Probe, Ticks, core_ticks, edge
from workers.host.probe import suspended_ns, throttled

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
STAT = """cpu  9 9 9 9 9 9 9 9 0 0
cpu0 100 1 10 1000 5 2 3 4 50 0
cpu1 200 2 20 2000 10 4 6 8 0 0
intr 5
"""


def test_ticks_of_some_cores_are_added(machine: Any) -> None:
    """Busy without idle, iowait and steal; guest time is not counted twice."""
    machine.write("proc/stat", STAT)

    assert Ticks(busy=116, steal=4, total=1125) == core_ticks(machine.host, [0])
    assert Ticks(busy=348, steal=12, total=3375) == core_ticks(machine.host, [0, 1])


def test_ticks_of_a_core_that_is_not_listed_are_none(machine: Any) -> None:
    """A sum over some of the cores would look like a quiet one."""
    machine.write("proc/stat", STAT)

    assert core_ticks(machine.host, [1, 2]) is None
    assert core_ticks(machine.host, []) is None


def test_an_edge_sums_the_threads_of_the_process(machine: Any) -> None:
    """Run and wait over every thread, pressure, throttling and steal of the cores."""
    machine.write("proc/self/task/11/schedstat", "1000 200 3\n")
    machine.write("proc/self/task/12/schedstat", "500 50 1\n")
    machine.write("proc/self/task/13/schedstat", "")
    machine.write("proc/stat", STAT)
    machine.write(
        "proc/pressure/cpu",
        "some avg10=1.00 avg60=0.00 avg300=0.00 total=777\nfull avg10=0 total=5\n",
    )
    machine.write("proc/self/cgroup", "0::/a/b\n")
    machine.write("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 3\n")
    machine.write("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4\n")

    found = edge(machine.host, cores=[1])

    assert (1500, 250) == (found.run_ns, found.wait_ns)
    assert (8, 2250) == (found.steal_ticks, found.total_ticks)
    assert (777, 7) == (found.psi_some_us, found.nr_throttled)


def test_an_edge_of_a_host_without_proc_is_all_unknown(machine: Any) -> None:
    """None and never 0: nothing was measured."""
    found = edge(machine.host, cores=[0])

    assert (None, None) == (found.run_ns, found.wait_ns)
    assert (None, None) == (found.steal_ticks, found.total_ticks)
    assert (None, None) == (found.psi_some_us, found.nr_throttled)
    assert found.at_ns > 0


def test_a_kernel_that_does_not_count_is_unknown(machine: Any) -> None:
    """Zeros in schedstat cannot be true for a process that runs."""
    machine.write("proc/self/task/11/schedstat", "0 0 0\n")

    assert edge(machine.host).run_ns is None


def test_a_level_without_quota_was_never_throttled(machine: Any) -> None:
    """The root shows its counters without that one; an unreadable group is unknown."""
    machine.write("proc/self/cgroup", "0::/\n")
    unknown = throttled(machine.host)
    machine.write("sys/fs/cgroup/cpu.stat", "usage_usec 5\n")

    assert unknown is None
    assert 0 == throttled(machine.host)


def test_sleep_is_what_boottime_gains() -> None:
    """The closest of three tries counts: a preempted reading is not a sleep."""
    monotonic = iter([0, 900, 1000, 1002, 2000, 2050])
    boottime = iter([5_000_000, 5_001_001, 5_002_900])

    found = suspended_ns(monotonic=lambda: next(monotonic), boottime=lambda: next(boottime))

    assert 5_000_000 == found


def test_a_peak_is_known_only_after_a_reset(machine: Any) -> None:
    """Without the reset the peak is that of the import and no phase's; lifetime stays known."""
    machine.write("proc/self/status", "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n")
    machine.write("proc/self/smaps_rollup", "Rss: 9 kB\nPss:    150 kB\n")
    machine.write("proc/self/clear_refs", "")
    probe = Probe(machine.host, cpus=[0])
    probe.loaded()
    before = probe.memory()
    probe.reset_peak()
    machine.write("proc/self/status", "VmHWM:\t  250 kB\nVmRSS:\t  220 kB\n")
    after = probe.memory()

    assert "5" == (machine.root / "proc/self/clear_refs").read_text()
    assert before.rss_peak_bytes is None
    assert (204_800, 256_000) == (after.rss_after_load_bytes, after.rss_peak_bytes)
    assert (307_200, 153_600) == (after.rss_peak_lifetime_bytes, after.pss_bytes)


def test_a_probe_of_a_host_without_proc_knows_nothing(machine: Any) -> None:
    """Every reading is None, and none raises."""
    probe = Probe(machine.host, cpus=[0])
    probe.loaded()
    probe.reset_peak()
    memory = probe.memory()

    assert probe.waited_ns() is None
    assert {None} == {getattr(memory, name) for name in memory.__struct_fields__}
    assert probe.edge().run_ns is None


def test_waiting_is_that_of_the_thread_that_made_the_probe(machine: Any) -> None:
    """Read again at each call, from a descriptor that stays open."""
    path = f"proc/self/task/{threading.get_native_id()}/schedstat"
    machine.write(path, "1000 200 3\n")
    probe = Probe(machine.host, cpus=[0])
    first = probe.waited_ns()
    machine.write(path, "1000 5200 3\n")

    assert (200, 5200) == (first, probe.waited_ns())


@needs_proc
def test_a_freed_allocation_stays_in_the_peak_until_the_reset() -> None:
    """Allocate 100 MB, free it, expect it; started from a parent fatter than that."""
    program = (
        "from workers.host import Host, Probe\n"
        "probe = Probe(Host(), cpus=[0]); probe.loaded(); probe.reset_peak()\n"
        "block = bytearray(100_000_000); del block\n"
        "first = probe.memory(); probe.reset_peak(); second = probe.memory()\n"
        "print(first.rss_after_load_bytes, first.rss_peak_bytes,"
        " second.rss_peak_bytes, second.rss_peak_lifetime_bytes)\n"
    )
    fat = bytearray(300_000_000)
    fat[::4096] = b"x" * len(fat[::4096])
    out = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    loaded, peak, again, lifetime = map(int, out.split())

    assert len(fat) > lifetime
    assert loaded + 99_000_000 < peak < loaded + 130_000_000
    assert again < peak
    assert lifetime >= peak


@needs_proc
def test_the_edges_of_this_host_grow_with_work() -> None:
    """Our run time grows while we work, and the counters are all there."""
    host, cores = Host(), sorted(os.sched_getaffinity(0))
    before = edge(host, cores=cores)
    sum(i * i for i in range(300_000))
    after = edge(host, cores=cores)

    assert after.at_ns > before.at_ns
    if before.run_ns is not None and after.run_ns is not None:
        assert after.run_ns > before.run_ns
    assert before.total_ticks is not None
    assert before.suspended_ns is not None
