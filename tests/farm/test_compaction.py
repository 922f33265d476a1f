"""The catalogue is brought up to date when there is something to take in, by one process a time."""

import os
from pathlib import Path

import pytest

from farm.catalog import chain
from farm.compaction import LONGEST_S, MOST_NEW, Compaction, starter
from tests.farm import make


class Started:
    """A process of which a test says how it ends."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.was_killed = False

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.was_killed = True

    def wait(self, timeout: float | None = None) -> int:
        return self.code or 0


class Place:
    """A compaction under a clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0
        self.started: list[Started] = []
        self.compaction = Compaction(self._start, clock=lambda: self.now)

    def _start(self) -> Started:
        self.started.append(Started())
        return self.started[-1]

    def look(self, *, closed: bool = False, ended: int = 0, after_s: float = 1.0) -> int:
        """Return how many were started by now."""
        self.now += after_s
        self.compaction.look(closed=closed, ended=ended)
        return len(self.started)


@pytest.fixture
def place() -> Place:
    return Place()


def test_the_end_of_a_run_starts_one(place):
    assert (0, 1) == (place.look(ended=3), place.look(closed=True))


def test_many_new_profiles_start_one_and_few_do_not(place):
    assert (0, 1) == (place.look(ended=MOST_NEW - 1), place.look(ended=MOST_NEW))


def test_some_news_start_one_after_ten_minutes(place):
    """Without any nothing is started, however long that lasts."""
    assert 0 == place.look(after_s=10 * LONGEST_S)
    assert 1 == place.look(ended=1)
    place.started[0].code = 0

    assert (1, 2) == (place.look(ended=2), place.look(ended=2, after_s=LONGEST_S))


def test_one_runs_at_a_time_and_what_was_due_meanwhile_is_made_up_for(place):
    place.look(closed=True)

    assert (1, 1) == (place.look(closed=True), place.look())
    place.started[0].code = 0
    assert 2 == place.look()


def test_one_that_fails_is_said_and_the_next_makes_up_for_it(place, caplog):
    place.look(closed=True)
    place.started[0].code = 4

    assert (1, 2) == (place.look(), place.look(closed=True))
    assert "exit code 4" in caplog.text


def test_jobs_of_runs_that_were_closed_do_not_count_against_later_ones(place):
    place.look(ended=4000)
    place.look(closed=True, ended=4000)
    place.started[0].code = 0
    place.look(ended=0)

    assert (1, 2) == (place.look(ended=MOST_NEW - 1), place.look(ended=MOST_NEW))


def test_the_end_leaves_no_process(place):
    place.compaction.end()
    place.look(closed=True)

    place.compaction.end()

    assert place.started[0].was_killed


def test_the_command_that_is_started_takes_in_what_has_arrived(store, tmp_path: Path):
    """A real one: profile in the inbox, part in the catalogue."""
    store.probe()
    make.put(store, make.profile(make.job()))
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}

    process = starter(str(store.root), environ)()

    assert 0 == process.wait(timeout=60)
    pinned = chain.newest(store)
    assert pinned is not None
    assert [1] == [each.rows for each in pinned.document.parts]
