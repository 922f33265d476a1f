"""How busy a host was: over two seconds, from counters that only grow, without our own work."""

from pathlib import Path

import pytest

from workers.fakes import FakeClock
from workers.host import Host
from workers.host.history import Busy, History, free_share

S = 1_000_000_000


class Desk:
    """A host of two CPUs whose counters a test moves, and the history of the second."""

    def __init__(self, root: Path) -> None:
        self.root, self.clock = root, FakeClock(now_ns=100 * S)
        self.busy, self.idle, self.some_us = 1000, 5000, 70_000
        self.write()
        self.history = History(Host(root), (1,), clock=self.clock)

    def write(self, *, pressure: bool = True) -> None:
        (self.root / "proc/pressure").mkdir(parents=True, exist_ok=True)
        line = f"cpu1 {self.busy} 0 0 {self.idle} 0 0 0 0 0 0\n"
        (self.root / "proc/stat").write_text(f"cpu0 9 0 0 9 0 0 0 0 0 0\n{line}")
        psi = self.root / "proc/pressure/cpu"
        if pressure:
            psi.write_text(f"some avg10=0 avg60=0 avg300=0 total={self.some_us}\n")
        else:
            psi.unlink(missing_ok=True)

    def second(self, *, busy: float = 0.0, some: float = 0.0) -> None:
        """Let a second pass in which the CPU is busy and something waits for that share of it."""
        self.busy += round(100 * busy)
        self.idle += round(100 * (1 - busy))
        self.some_us += round(1e6 * some)
        self.clock.advance(S)
        self.write()
        self.history.mark()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.history.mark()
    return made


def test_nothing_is_known_before_half_a_second(desk: Desk) -> None:
    assert Busy(None, None, is_known=False) == desk.history.over()

    desk.clock.advance(S // 2)
    assert desk.history.over().is_known


def test_a_hog_shows_and_is_forgotten_two_seconds_after_its_end(desk: Desk) -> None:
    for _ in range(3):
        desk.second(busy=1.0, some=0.5)
    assert Busy(1.0, 0.5) == desk.history.over()

    desk.second()
    assert Busy(0.5, 0.25) == desk.history.over()
    desk.second()
    desk.second()
    assert Busy(0.0, 0.0) == desk.history.over()


def test_what_we_did_ourselves_is_nobody_elses(desk: Desk) -> None:
    for _ in range(3):
        desk.second(busy=1.0, some=1.0)

    desk.history.begin_anew()

    assert not desk.history.over().is_known
    desk.second(busy=0.2)
    assert pytest.approx(0.2) == desk.history.over().cores


def test_a_host_that_does_not_tell_is_not_taken_for_a_quiet_one(desk: Desk) -> None:
    desk.second()
    desk.write(pressure=False)
    assert (0.0, None) == desk.history.over()[:2]
    (desk.root / "proc/stat").unlink()

    assert Busy(None, None) == desk.history.over()


def test_a_thread_keeps_it_without_being_asked(tmp_path: Path) -> None:
    history = History(Host(tmp_path), (0,))

    history.keep()
    try:
        assert not history.over().is_known
    finally:
        history.end()


def test_the_disk_of_a_folder_is_free_to_some_share(tmp_path: Path) -> None:
    share = free_share(tmp_path)

    assert share is not None
    assert 0 < share < 1
    assert free_share(tmp_path / "none") is None
