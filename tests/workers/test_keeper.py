"""One slot's worker as its agent sees it; the process is real and is killed before it serves."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.workers.test_control import SETUP
from workers.control import Control, Holding, Stop, pair
from workers.keeper import Keeper


class Kept:
    """A keeper whose clock is turned by hand."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.lock = os.open(folder, os.O_RDONLY)
        setup = msgspec.structs.replace(SETUP, state=str(folder))
        self.keeper = Keeper(setup, lock=self.lock, clock=lambda: self.now)

    def crash(self) -> str:
        """Kill the worker that runs and return whom the keeper mourns."""
        process = self.keeper._process
        assert process is not None
        process.kill()
        process.wait(10)
        return self.keeper.died()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.keeper.kill()
    os.close(made.lock)


def test_each_worker_has_an_owner_of_its_own(kept: Kept) -> None:
    """What a dead one held is released by it, and nothing that its successor holds."""
    kept.keeper.start_when_due()
    first = kept.keeper.owner

    assert first == kept.crash()
    assert "" == kept.keeper.died()
    kept.keeper.start_when_due()

    assert first.startswith("n1/cpu:0#")
    assert first != kept.keeper.owner
    assert kept.keeper.owner == kept.keeper.kill()
    assert ("", False) == (kept.keeper.kill(), kept.keeper.is_running)


def test_a_worker_that_dies_again_and_again_is_started_less_and_less_often(kept: Kept) -> None:
    """At once, then after 1, 3, 7 … 59 s; one that has run for half a minute starts anew."""
    pauses = []
    for _ in range(8):
        kept.keeper.start_when_due()
        kept.crash()
        pause = 0
        while not kept.keeper.is_running:
            kept.keeper.start_when_due()
            pause += not kept.keeper.is_running
            kept.now += not kept.keeper.is_running
        pauses.append(pause)
    assert [0, 1, 3, 7, 15, 31, 59, 59] == pauses

    kept.now += 31
    assert "" == kept.keeper.died()
    kept.crash()
    kept.keeper.start_when_due()

    assert kept.keeper.is_running


def test_what_the_worker_holds_is_heard_until_it_is_gone(kept: Kept) -> None:
    """A line without progress keeps the last one of the same entry, and is no news."""
    kept.keeper.control, theirs = pair()
    worker = Control(theirs)
    said = [
        (Holding(key="a", fence="1"), True),
        (Holding(key="a", fence="1", progress="{}"), True),
        (Holding(key="a", fence="1"), False),
        (Holding(), True),
    ]

    for message, is_news in said:
        worker.send(message)
        assert is_news == kept.keeper.hear()
    assert Holding() == kept.keeper.holding

    kept.keeper.tell(Stop(why="cancel", fence="1"))
    assert [Stop(why="cancel", fence="1")] == worker.receive()
    worker.close()
    assert not kept.keeper.hear()
    assert kept.keeper.control is None
    kept.keeper.tell(Stop(why="release"))  # nobody is there, and nothing is raised


def test_a_worker_is_asked_once_to_end_after_its_job(kept: Kept) -> None:
    """Celery takes a second SIGTERM for an order to drop it."""
    kept.keeper.start_when_due()
    process = kept.keeper._process
    assert process is not None
    asked: list[int] = []
    process.terminate = lambda: asked.append(signal.SIGTERM)  # type: ignore[method-assign]

    kept.keeper.wind_up()
    kept.keeper.wind_up()

    assert [signal.SIGTERM] == asked
