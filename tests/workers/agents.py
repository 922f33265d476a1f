"""Agents as real processes, with the ledger and store that they serve; jobs of the fake backend."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import redis

from farm import schema
from farm.catalog import rows
from farm.ledger import Entry, Ledger, Record, Slot
from farm.schema import Effort, Inputs, Job, Model, Order, Profile, Protocol, Selector, Workload
from farm.store import LocalStore

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

    def start(
        self, name: str = "n1", *, words: Sequence[str] = (), **environ: str
    ) -> "subprocess.Popen[bytes]":
        """Start an agent and return it once its slots are registered."""
        agent = self.popen(name, words=words, **environ)
        self.until(
            lambda: name in [each.name for each in self.ledger.nodes()], f"{name} is not registered"
        )
        return agent

    def popen(
        self, name: str, *, folder: str = "", words: Sequence[str] = (), **environ: str
    ) -> "subprocess.Popen[bytes]":
        """Start an agent; folder: of its state, beside that of others. words: more of its own."""
        at = self.folder / folder
        places = ["--state-dir", str(at / "state"), "--lock-dir", str(at / "locks")]
        with (self.folder / "agent.log").open("ab") as log:
            agent = subprocess.Popen(
                [FARM_WORKER, "start", *places, "--drain", "60s", *words],
                env={
                    **os.environ,
                    "FARM_BROKER": self.url,
                    "FARM_STORE": str(self.store.root),
                    "FARM_NODE_NAME": name,
                    "FARM_LEASE_S": "2",
                    "FARM_GATES": "off",  # other tests run beside them
                    "FARM_LIFELINE": "stdin",
                    "FARM_TEST_PLACE": str(self.folder),
                    **environ,
                },
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self.agents.append(agent)
        return agent

    def submit(self, *jobs: Job, class_: str = "any") -> str:
        """Submit the jobs and return the key of the last one."""
        effort = Effort(repeats=1, budget_ms=1000)
        entries = [
            Entry(
                key=f"{each.job_id}.base",
                class_=class_,
                spec=schema.encode(
                    Order(job=each, effort=effort, repeat_set="base", label="fake")
                ).decode(),
            )
            for each in jobs
        ]
        self.ledger.submit("r-1", entries)
        return entries[-1].key

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
                mine = str(self.folder).encode() in (each / "environ").read_bytes()
                state = (each / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if word.encode() in words and mine and state not in "ZX":
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
