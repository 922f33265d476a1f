"""Two agents of one machine want the same device, and somebody is killed again and again."""

import os
import signal
import subprocess
import time
from random import Random

import pytest

from farm.schema import Job
from tests.workers.agents import Place, job

VICTIMS = ("farm-worker", "workers.tasks", "workers.child")
ENDS = {"DONE", "FAILED", "DEAD"}


class Pair:
    """Two agents with states of their own that share the locks of the machine."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.shared = ("--lock-dir", str(place.folder / "locks"), "--devices", "cpu:0")
        self.agents = {name: self._started(name) for name in ("n1", "n2")}

    def _started(self, name: str) -> "subprocess.Popen[bytes]":
        return self.place.popen(name, folder=name, words=self.shared, FARM_GATES="off")

    def tend(self) -> None:
        """Start again whoever is gone."""
        for name, agent in self.agents.items():
            if agent.poll() is not None:
                self.agents[name] = self._started(name)

    def kill(self, word: str, random: Random) -> None:
        pids = self.place.pids(word)
        if pids:
            os.kill(random.choice(pids), signal.SIGKILL)


def jobs(place: Place, count: int) -> list[Job]:
    """Jobs that tell if two of them are measured at once."""
    device = str(place.folder / "device")
    return [job(batch, alone=device) for batch in range(1, count + 1)]


@pytest.mark.redis
@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.long)])
def test_no_schedule_of_kills_puts_two_jobs_on_one_device(
    place: Place, seed: int, kills: int
) -> None:
    """An agent, a slot worker or a child, at any moment; and every job ends all the same."""
    random = Random(seed)
    place.submit(*jobs(place, 3 + kills // 4))
    pair = Pair(place)
    place.until(lambda: place.pids("workers.tasks"), "nobody serves")

    for _ in range(kills):
        time.sleep(random.uniform(0.0, 1.5))
        pair.kill(random.choice(VICTIMS), random)
        pair.tend()

    def ended() -> bool:
        pair.tend()
        return set(place.states()) <= ENDS

    place.until(ended, "jobs do not end", seconds=120 + 3 * kills)
    assert (place.folder / "device").exists()
    assert not (place.folder / "device.twice").exists()
    winners = {each.job_id for each in place.profiles() if each.status == "ok"}
    done = {each.key.partition(".")[0] for each in place.records() if each.state == "DONE"}
    assert done == winners


@pytest.mark.redis
def test_the_proof_itself_works(place: Place) -> None:
    """Two agents without common locks do measure at once, and it shows."""
    place.submit(*(job(b, alone=str(place.folder / "device"), load_ms=3000) for b in (1, 2)))
    for name in ("n1", "n2"):
        place.popen(name, folder=name, words=("--devices", "cpu:0"), FARM_GATES="off")

    place.until(lambda: (place.folder / "device.twice").exists(), "nobody noticed", seconds=60)
