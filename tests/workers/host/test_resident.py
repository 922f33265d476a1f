"""Several peaks of one process: each since its own reset, and one of the whole life."""

from typing import Any

import pytest

from workers.host import Peak

KIB = 1024


@pytest.fixture
def process(machine: Any) -> Any:
    """A process whose high-water mark is written here, in KiB."""

    def high(kib: int) -> None:
        machine.write("proc/self/status", f"VmHWM:\t{kib} kB\n")

    machine.write("proc/self/clear_refs", "")
    high(100)
    return high


def test_a_peak_is_that_since_the_reset(machine: Any, process: Any) -> None:
    """Without one there is none; the life goes on."""
    peak = Peak(machine.host)
    before = peak.since_reset()

    process(900)
    reset = peak.reset()
    process(300)

    assert (None, True) == (before, reset)
    assert "5" == (machine.root / "proc/self/clear_refs").read_text()
    assert (300 * KIB, 900 * KIB) == (peak.since_reset(), peak.lifetime())


def test_the_life_of_a_process_is_one_for_all_of_its_peaks(machine: Any, process: Any) -> None:
    """Also for one that comes after the reset of another."""
    first = Peak(machine.host)
    process(900)
    first.reset()
    process(300)

    second = Peak(machine.host)
    second.reset()

    assert 900 * KIB == second.lifetime() == first.lifetime()
    assert 300 * KIB == second.since_reset()


def test_a_reset_takes_nothing_from_another_peak(machine: Any, process: Any) -> None:
    """The kernel forgets the 700 KiB of the first for the sake of the second."""
    first, second, third = (Peak(machine.host) for _ in range(3))
    first.reset()
    process(700)

    second.reset()
    process(200)

    assert (700 * KIB, 200 * KIB) == (first.since_reset(), second.since_reset())
    assert third.since_reset() is None
    first.reset()
    assert 200 * KIB == first.since_reset()


def test_where_the_kernel_resets_nothing_there_is_no_peak(machine: Any, process: Any) -> None:
    """Nor is one left of an earlier reset."""
    peak = Peak(machine.host)
    peak.reset()
    (machine.root / "proc/self/clear_refs").unlink()
    (machine.root / "proc/self/clear_refs").mkdir()

    assert not peak.reset()

    assert (None, 100 * KIB) == (peak.since_reset(), peak.lifetime())


def test_a_process_without_proc_has_no_peak(machine: Any) -> None:
    peak = Peak(machine.host)

    assert not peak.reset()
    assert (None, None) == (peak.since_reset(), peak.lifetime())


def test_a_forked_process_lives_a_life_of_its_own(machine: Any, process: Any) -> None:
    """Its mark begins at what it was given, which may be far below that of its parent."""
    pid = 1
    peak = Peak(machine.host, pid=lambda: pid)
    process(900)
    parents = peak.lifetime()

    pid = 2
    process(50)
    childs = peak.lifetime()

    assert (900 * KIB, 50 * KIB) == (parents, childs)
