"""A real agent with real slot workers: whatever ends, what was in hand goes back at once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from farm import schema
from farm.catalog import rows
from farm.errors import Unreachable
from farm.ledger import Entry, Ledger, Record, Slot
from farm.schema import Effort, Inputs, Job, Model, Order, Profile, Protocol, Selector, Workload
from farm.store import LocalStore
from tests.workers import make
from workers.agent import Agent
from workers.node import Served

FARM_WORKER = str(Path(sys.executable).with_name("farm-worker"))
SLOT = Slot(
    node="n1",
    slot="cpu:0",
    classes=["dev.n1.0", "node.n1", "hw.cpu", "any"],
    device="cpu",
    system_id="5" * 32,
    system_class="test-cpu_1c",
)


def job(batch: int = 1, **options: str | int | bool) -> Job:
    """A job of the fake backend: 2 ms steps unless the options say otherwise."""
    return Job(
        workload=Workload(
            model=Model(name="fake", ref="fake:step", source="module", digest="0" * 64),
            inputs=Inputs(spec={}),
            precision="unspecified",
            batch=batch,
            backend="fake",
            backend_options={"duration_us": 2000, **options},
        ),
        protocol=Protocol(iterations=20, warmup=2),
        selector=Selector(kind="any"),
    )


class Place:
    """A ledger, a store, and agents of one node that are started and stopped."""

    def __init__(self, folder: Path, url: str, store: LocalStore) -> None:
        self.folder, self.url, self.store = folder, url, store
        self.ledger = Ledger(url, ttl_s=2.0)
        self.ledger.setup()
        self.server = redis.Redis.from_url(url, decode_responses=True)
        self.agents: list[subprocess.Popen[bytes]] = []

    def start(self) -> "subprocess.Popen[bytes]":
        """Start an agent and return it once its slot is registered."""
        environ = {
            **os.environ,
            "FARM_BROKER": self.url,
            "FARM_STORE": str(self.store.root),
            "FARM_LEASE_S": "2",
            "FARM_LIFELINE": "stdin",
        }
        words = ["--name", "n1", "--state-dir", str(self.folder / "state")]
        words += ["--lock-dir", str(self.folder / "locks"), "--drain", "60s"]
        with (self.folder / "agent.log").open("ab") as log:
            agent = subprocess.Popen(
                [FARM_WORKER, "start", *words],
                env=environ,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self.agents.append(agent)
        self.until(self.ledger.slots, "no slot was registered")
        return agent

    def submit(self, *jobs: Job, again: bool = False) -> None:
        effort = Effort(repeats=1, budget_ms=1000)
        entries = [
            Entry(
                key=f"{each.job_id}.base",
                class_="any",
                spec=schema.encode(
                    Order(job=each, effort=effort, repeat_set="base", label="fake")
                ).decode(),
                again=again,
            )
            for each in jobs
        ]
        self.ledger.submit("r-1", entries)

    def records(self) -> list[Record]:
        return self.ledger.entries("r-1")

    def states(self) -> list[str]:
        return sorted(each.state for each in self.records())

    def profiles(self) -> list[Profile]:
        return [each.profile for each in rows.read(self.store).rows]

    def pids(self, word: str) -> list[int]:
        """Return the live processes of this place whose command line holds the word."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            try:
                words = (each / "cmdline").read_bytes()
                mine = str(self.store.root).encode() in (each / "environ").read_bytes()
                child = str(self.folder / "state").encode() in (each / "environ").read_bytes()
                state = (each / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if word.encode() in words and (mine or child) and state not in "ZX":
                found.append(int(each.name))
        return found

    def hanging(self) -> Job:
        """A job whose first repeat never ends, so that it is in hand; every later one is quick."""
        return job(fail="hang", fail_at="latency", fail_once=str(self.folder / "hung"))

    def measuring(self) -> int:
        """Return the child that measures, as soon as its repeat is under way."""
        self.until(
            lambda: any('"latency"' in each.progress for each in self.records()), "no latency pass"
        )
        return self.until(lambda: self.pids("workers.child"), "no child")[0]

    def stretch_leases(self) -> None:
        """Let every lease run for years: whoever gives an entry back now, it is not the clock."""
        for each in self.server.zrange("farm:lease", 0, -1):
            self.server.zadd("farm:lease", {each: 4e12})

    def until(self, check: Callable[[], Any], why: str, *, seconds: float = 30) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = check()
            if found:
                return found
            time.sleep(0.02)
        log = (self.folder / "agent.log").read_text()
        raise AssertionError(f"{why}\n{self.records()}\n{log}")

    def end(self) -> None:
        for each in self.agents:
            if each.stdin is not None:
                each.stdin.close()
            if each.poll() is None:
                each.wait(30)
        for word in ("workers.tasks", "workers.child"):
            self.until(lambda word=word: not self.pids(word), f"{word} is left")
        self.ledger.close()
        self.server.close()


@pytest.fixture
def place(tmp_path: Path, redis_url: str, store: LocalStore) -> Iterator[Place]:
    made = Place(tmp_path, redis_url, store)
    yield made
    made.end()


@pytest.mark.redis
def test_a_killed_slot_worker_gives_its_entry_back_and_is_started_again(place: Place) -> None:
    """Released at once and not when the lease runs out; the child is gone; the run completes."""
    place.submit(place.hanging())
    place.start()
    child = place.measuring()
    (worker,) = place.pids("workers.tasks")

    os.kill(worker, signal.SIGKILL)
    place.stretch_leases()
    place.until(lambda: place.records()[0].infra, "not released")

    place.until(lambda: not _is_alive(child), "the child outlived its worker")
    place.until(lambda: place.states() == ["DONE"], "not completed")
    (record,), (profile,) = place.records(), place.profiles()
    assert (2, 1, "ok") == (record.attempt, record.infra, profile.status)
    assert [worker] != place.pids("workers.tasks")


@pytest.mark.redis
def test_a_drain_lets_the_job_in_hand_end_and_claims_no_other(place: Place) -> None:
    """SIGTERM: 0, one profile, the rest still queued, and the node is off the list."""
    place.submit(job(1, duration_us=20_000), job(2), job(3))
    agent = place.start()
    place.measuring()

    agent.terminate()

    assert 0 == agent.wait(30)
    assert ["DONE", "READY", "READY"] == place.states()
    assert (1, []) == (len(place.profiles()), place.ledger.slots())


@pytest.mark.redis
@pytest.mark.parametrize("how", ["second signal", "lifeline"])
def test_who_will_not_wait_gets_the_jobs_back(place: Place, how: str) -> None:
    """A second signal, or the end of whoever started the agent: uncounted, and at once."""
    place.submit(place.hanging())
    agent = place.start()
    child = place.measuring()
    began = time.monotonic()

    if how == "lifeline":
        assert agent.stdin is not None
        agent.stdin.close()
    else:
        agent.terminate()
        place.until(lambda: b"draining" in _node_state(place), "not draining")
        agent.send_signal(signal.SIGINT)

    assert 0 == agent.wait(30)
    assert time.monotonic() - began < 15  # the drain would take a minute
    (record,) = place.records()
    assert ("READY", "released", 0, []) == (
        record.state,
        record.cause,
        record.infra,
        place.profiles(),
    )
    assert not _is_alive(child)


def _node_state(place: Place) -> bytes:
    return str(place.server.hget("farm:node:n1", "state")).encode()


@pytest.mark.redis
def test_what_a_killed_agent_left_is_released_by_the_next(place: Place) -> None:
    """Its workers and their child end with it; the next agent does not wait for the lease."""
    place.submit(place.hanging())
    agent = place.start()
    child = place.measuring()

    agent.kill()
    agent.wait()
    for word in ("workers.tasks", "workers.child"):
        place.until(lambda word=word: not place.pids(word), f"{word} outlived the agent")
    place.until(lambda: not _is_alive(child), "the child outlived the agent")
    place.stretch_leases()
    place.start()
    place.until(lambda: place.states() == ["DONE"], "not completed")

    assert (2, 1) == (place.records()[0].attempt, place.records()[0].infra)
    assert 1 == len(place.profiles())


@pytest.mark.redis
def test_a_broker_that_lost_everything_hears_of_the_slots_again(place: Place) -> None:
    """Redis came back empty: within a third of a lease the node is on its list, and serves."""
    place.start()
    place.server.flushall()
    place.ledger.setup()
    assert [] == place.ledger.slots()

    place.until(lambda: [each.slot for each in place.ledger.slots()] == ["cpu:0"], "forgotten")
    place.submit(job())
    place.until(lambda: place.states() == ["DONE"], "not measured")


@pytest.mark.redis
def test_no_password_stands_in_a_command_line(place: Place) -> None:
    """The addresses travel over the line between agent and worker (Q18)."""
    password = place.url.split(":")[2].split("@")[0]
    place.start()
    pids = place.until(lambda: place.pids("workers.tasks"), "no slot worker")

    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in [*pids, place.agents[0].pid]]

    assert not [each for each in lines if password.encode() in each]
    assert password not in (place.folder / "agent.log").read_text()


def test_a_broker_that_is_away_at_the_start_is_said(tmp_path: Path) -> None:
    """Nothing is started for a broker that does not answer."""
    agent = Agent(
        [
            Served(
                slot=SLOT,
                device=make.device(),
                card=make.card(),
                environment="default",
                flags=(),
                lock_dir=tmp_path,
            )
        ],
        broker_url="redis://127.0.0.1:1/0",
        store=str(tmp_path),
        state=tmp_path,
        ttl_s=2.0,
        drain_s=1.0,
        lifeline=None,
    )

    with pytest.raises(Unreachable):
        agent.serve()

    assert not (tmp_path / "logs").exists()


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
