"""What the file trees say: control groups, quotas, memory, processes."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.host import Host, Probe, cpu_list, edge, number

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0-3,8\n", [0, 1, 2, 3, 8]), ("5", [5]), ("", []), ("\n", []), ("8,0-1,1", [0, 1, 8])],
)
def test_kernel_lists_are_read(text: str, expected: list[int]) -> None:
    """Ranges, single numbers, nothing; ascending and without repetition."""
    assert expected == cpu_list(text)


@given(st.sets(st.integers(0, 200)))
def test_any_set_of_cpus_survives_its_kernel_list(cpus: set[int]) -> None:
    """What is written one by one is read back whole."""
    assert sorted(cpus) == cpu_list(",".join(map(str, cpus)))


def test_a_number_is_found_at_the_start_of_its_line() -> None:
    """Not in the middle of another, and not where there is none."""
    text = "nr_periods 7\nnr_throttled 12\n"

    assert 12 == number(text, "nr_throttled ")
    assert number(text, "throttled ") is None
    assert number("max\n") is None
    assert number(None) is None


def test_a_host_without_trees_has_no_readings(machine: Any) -> None:
    """An empty folder, as on macOS: no value and no exception."""
    host = machine.host

    assert host.text("proc/stat") is None
    assert [] == host.names("proc")
    assert [] == list(host.cgroup_folders("cpu"))
    assert host.cpu_quota() is None
    assert host.cpuset() is None
    assert host.memory_to_use() is None
    assert {} == host.processes()


def test_the_nearest_group_comes_first_and_the_root_last(machine: Any) -> None:
    """Version 2 in both of its usual places."""
    machine.write("proc/self/cgroup", "0::/a/b\n")

    expected = [
        *("sys/fs/cgroup/a/b", "sys/fs/cgroup/a", "sys/fs/cgroup"),
        *("sys/fs/cgroup/unified/a/b", "sys/fs/cgroup/unified/a", "sys/fs/cgroup/unified"),
    ]
    assert expected == list(machine.host.cgroup_folders("cpu"))


def test_version_1_groups_are_found_by_their_controller(machine: Any) -> None:
    """A joint mount goes by both names; groups of other controllers are not asked."""
    machine.write("proc/self/cgroup", "3:cpu,cpuacct:/x\n2:cpuset:/y\n")

    cpu = list(machine.host.cgroup_folders("cpu"))

    assert "sys/fs/cgroup/cpu,cpuacct/x" == cpu[0]
    assert "sys/fs/cgroup/cpu/x" in cpu
    assert ["sys/fs/cgroup/cpuset/y", "sys/fs/cgroup/cpuset"] == list(
        machine.host.cgroup_folders("cpuset")
    )


@pytest.mark.parametrize(
    ("text", "expected"), [("150000 100000", 1.5), ("max 100000", None), ("", None)]
)
def test_the_quota_of_a_group_above_counts(machine: Any, text: str, expected: float | None) -> None:
    """The tightest level decides, and `max` is no limit."""
    machine.quota(text)

    assert expected == machine.host.cpu_quota()


@pytest.mark.parametrize(("quota", "expected"), [("250000", 2.5), ("-1", None)])
def test_a_version_1_quota_is_read(machine: Any, quota: str, expected: float | None) -> None:
    """Quota over period; -1 is no limit."""
    machine.write("proc/self/cgroup", "3:cpu:/\n")
    machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota)
    machine.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")

    assert expected == machine.host.cpu_quota()


def test_the_nearest_cpuset_that_says_something_counts(machine: Any) -> None:
    """An empty file inherits from above."""
    machine.write("proc/self/cgroup", "0::/a\n")
    machine.write("sys/fs/cgroup/a/cpuset.cpus.effective", "\n")
    machine.write("sys/fs/cgroup/cpuset.cpus.effective", "2-3\n")

    assert [2, 3] == machine.host.cpuset()


def test_memory_to_use_leaves_a_reserve(machine: Any) -> None:
    """What the host calls available, less 256 MiB."""
    machine.write("proc/meminfo", f"MemTotal: 9 kB\nMemAvailable:   {4 * GIB // 1024} kB\n")

    assert 4 * GIB - (256 << 20) == machine.host.memory_to_use()


def test_a_groups_memory_limit_counts_less_what_is_used(machine: Any) -> None:
    """Page cache that can be dropped is not used; no group, no limit; never below 0."""
    machine.write("proc/meminfo", f"MemAvailable:   {8 * GIB // 1024} kB\n")
    machine.write("proc/self/cgroup", "0::/a\n")
    machine.write("sys/fs/cgroup/a/memory.max", f"{2 * GIB}\n")
    machine.write("sys/fs/cgroup/a/memory.current", f"{GIB}\n")
    machine.write("sys/fs/cgroup/a/memory.stat", f"anon 5\ninactive_file {GIB // 4}\n")
    left = machine.host.memory_to_use()
    machine.write("sys/fs/cgroup/a/memory.current", f"{3 * GIB}\n")

    assert GIB + GIB // 4 - (256 << 20) == left
    assert 0 == machine.host.memory_to_use()


def test_a_version_1_group_without_limit_has_none(machine: Any) -> None:
    """It writes a huge number instead of a word."""
    machine.write("proc/meminfo", f"MemAvailable:   {GIB // 1024} kB\n")
    machine.write("proc/self/cgroup", "4:memory:/\n")
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n")

    assert GIB - (256 << 20) == machine.host.memory_to_use()


def test_a_process_is_read_whatever_it_is_called(machine: Any) -> None:
    """Brackets, blanks and control characters in the command; what is no process is skipped."""
    stat = "7 (a) b\x1b(c) S 5 6 4 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 999 0 0\n"
    machine.write("proc/7/stat", stat)
    machine.write("proc/7/status", "Name: x\nCpus_allowed_list:\t1,3-4\n")
    machine.write("proc/8/stat", "8 (gone")
    machine.write("proc/meminfo", "")

    found = machine.host.processes()

    assert [7] == list(found)
    assert "a) b?(c" == found[7].command
    assert (5, 6, 4) == (found[7].parent, found[7].group, found[7].session)
    assert (42, 999, (1, 3, 4)) == (found[7].ticks, found[7].started, found[7].cpus)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60))
def test_damaged_files_raise_nothing(text: str) -> None:
    """Whatever the files hold, each reading is a value or None."""
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder))
        for path in (
            *("proc/stat", "proc/pressure/cpu", "proc/meminfo", "proc/7/stat", "proc/7/status"),
            *("proc/self/status", "proc/self/task/7/schedstat", "sys/fs/cgroup/cpu.stat"),
            *("sys/fs/cgroup/cpu.max", "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
        ):
            (host.root / path).parent.mkdir(parents=True, exist_ok=True)
            (host.root / path).write_text(text)
        (host.root / "proc/self/cgroup").write_text(f"0::/\n{text}")

        edge(host, cores=[0])
        Probe(host, cpus=[0]).memory()
        host.processes()
        host.memory_to_use()
        host.cpu_quota()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_this_process_is_among_those_of_this_host() -> None:
    """The real thing: our own parent, and CPUs that we may run on."""
    own = Host().processes()[os.getpid()]

    assert os.getppid() == own.parent
    assert os.sched_getaffinity(0) == set(own.cpus or ())
