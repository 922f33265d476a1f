"""Naming whoever disturbed: foreign, busy, and able to run on the leased cores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.host import Host, Usage, neighbours


def process(
    ticks: int,
    *,
    parent: int = 1,
    group: int = 0,
    session: int = 0,
    started: int = 5,
    cpus: str = "01",
) -> Usage:
    allowed = tuple(map(int, cpus)) if cpus else None
    return Usage("python", parent, group, session, started, ticks, allowed)


def named(before: dict[int, Usage], after: dict[int, Usage], own: int = 10) -> list[str]:
    return neighbours(before, after, cpus=[1], seconds=10.0, own=[own], ticks_per_s=100)


def test_the_busiest_come_first_with_their_share_of_a_core() -> None:
    """At most three, from 5 % on."""
    before = {pid: process(1000) for pid in (21, 22, 23, 24, 25)}
    after = {
        pid: process(1000 + used)
        for pid, used in ((21, 50), (22, 970), (23, 2000), (24, 49), (25, 60))
    }

    expected = [
        "python (pid 23), 200 % of a core",
        "python (pid 22), 97 % of a core",
        "python (pid 25), 6 % of a core",
    ]
    assert expected == named(before, after)


def test_our_own_are_never_named() -> None:
    """Ourselves, children, their children, and whoever is in a group or session they lead."""
    after = {
        10: process(900),
        11: process(900, parent=10),
        12: process(900, parent=11),
        13: process(900, parent=1, group=11),
        14: process(900, parent=1, session=12),
    }

    assert [] == named({}, after)


def test_a_stranger_in_our_callers_group_is_named() -> None:
    """A hog that the same script started shares our group without being ours."""
    after = {10: process(900, group=3), 20: process(900, group=3)}

    assert ["python (pid 20), 90 % of a core"] == named({}, after)


def test_who_may_not_run_on_the_cores_is_innocent() -> None:
    """Affinity decides; where it cannot be read, it decides nothing."""
    after = {20: process(900, cpus="0"), 21: process(900, cpus="")}

    assert ["python (pid 21), 90 % of a core"] == named({}, after)


def test_a_new_process_under_an_old_number_counts_from_its_start() -> None:
    """A number that was given anew does not subtract the time of its former owner."""
    before, after = {20: process(5000)}, {20: process(600, started=7)}

    assert ["python (pid 20), 60 % of a core"] == named(before, after)


def test_an_empty_window_names_nobody() -> None:
    """No time passed, so no share can be told."""
    assert [] == neighbours({}, {20: process(900)}, cpus=[1], seconds=0.0, own=[1])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_busy_stranger_of_this_host_is_named() -> None:
    """A burner that is nobody's child of ours; it stops when its input closes."""
    burn = (
        "import sys, threading\n"
        "threading.Thread(target=lambda: (sys.stdin.read(), __import__('os')._exit(0))).start()\n"
        "sys.stdout.write('x'); sys.stdout.flush()\n"
        "while True: pass\n"
    )
    host, cpus = Host(), os.sched_getaffinity(0)
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as burner:
        assert burner.stdout is not None
        burner.stdout.read(1)
        before = after = host.processes()
        # half a second of its own time, however long that takes here
        while after[burner.pid].ticks - before[burner.pid].ticks < 0.5 * os.sysconf("SC_CLK_TCK"):
            after = host.processes()
        found = neighbours(
            {burner.pid: before[burner.pid]},
            {burner.pid: after[burner.pid]},
            cpus=cpus,
            seconds=1.0,
            own=[],
        )
        ours = neighbours(before, after, cpus=cpus, seconds=1.0)
        assert burner.stdin is not None
        burner.stdin.close()

    assert 1 == len(found)
    assert f"(pid {burner.pid})" in found[0]
    assert not any(f"(pid {burner.pid})" in each for each in ours)
