"""Any sequence of calls, checked after each: no entry in two places, no counter off, no law broken.

Several runs share entries, change their minds, and lose slot workers; clocks jump meanwhile.
"""

import random
from collections import Counter

import msgspec
import pytest
import redis

from farm.ledger import ENDS, Claim, Held, Ledger
from tests.farm.ledger.moves import entry, let_pass, slot

pytestmark = pytest.mark.redis
RUNS = ("r-0", "r-1", "r-2")
NAMES = [f"e{number}" for number in range(8)]
STEPS = 400


def test_any_sequence_of_calls_keeps_every_law(
    ledger: Ledger, server: redis.Redis, seed: int
) -> None:
    """And what is left of it can be worked off: every entry ends, and nothing holds one (Q3)."""
    play = Play(ledger, server, random.Random(seed))
    for _ in range(STEPS):
        play.step()
        check(server, play)

    for _ in range(200):
        let_pass(server, 400)
        server.hset("farm:meta", "grace", 0)
        ledger.tick()
        found = ledger.claim(slot(), owner="n1/cpu:0#last")
        if isinstance(found, Claim):
            ledger.finish(found, state="DONE", cause="ok")
        if set(ENDS) >= {state for run in RUNS for state in ledger.counts(run)}:
            break
    else:
        pytest.fail("there is an entry that does not end")
    check(server, play)
    assert [] == server.keys("farm:lease") + server.keys("farm:own:*") + server.keys("farm:jc:*")


class Play:
    """Random moves of submitters, slot workers, agents and clocks.

    cancelled: what a run was told that it is rid of. last: where it waits for an attempt at most.
    """

    def __init__(self, ledger: Ledger, server: redis.Redis, rng: random.Random) -> None:
        self.ledger, self.server, self.rng = ledger, server, rng
        self.hands: list[Claim] = []
        self.cancelled: set[tuple[str, str]] = set()
        self.last: set[tuple[str, str]] = set()

    def step(self) -> None:
        self.rng.choice(
            [
                *(self.submit, self.submit, self.claim, self.claim, self.claim, self.finish),
                *(self.cancel, self.cancel, self.finish, self.beat, self.release, self.hand_over),
                *(self.wait, self.jump, self.ledger.tick),
            ]
        )()

    def submit(self) -> None:
        rng, run = self.rng, self.rng.choice(RUNS)
        entries = [
            entry(
                name, rng.choice(["any", "hw.cpu"]), again=rng.random() < 0.4, prio=rng.randrange(4)
            )
            for name in rng.sample(NAMES, rng.randrange(1, 4))
        ]
        self.ledger.submit(run, entries, here=rng.random() < 0.5)
        wanted = {(run, each.key) for each in entries}
        self.cancelled -= wanted
        self.last -= wanted

    def cancel(self) -> None:
        run = self.rng.choice(RUNS)
        keys = [f"{name}.base" for name in self.rng.sample(NAMES, self.rng.randrange(1, 4))]
        verdicts = self.ledger.cancel(run, keys, running=self.rng.random() < 0.5)
        for key, verdict in zip(keys, verdicts, strict=True):
            if verdict in ("cancelled", "shared", "CANCELLED"):
                self.cancelled.add((run, key))
            if verdict in ("running", "asked"):
                self.last.add((run, key))

    def claim(self) -> None:
        owner = f"n1/cpu:0#{self.rng.randrange(100)}"
        found = self.ledger.claim(slot(), owner=owner)
        if isinstance(found, Claim):
            assert (found.run, found.key) not in self.cancelled | self.last
            self.hands.append(found)

    def finish(self) -> None:
        if self.hands:
            held = self.hands.pop(self.rng.randrange(len(self.hands)))
            end = self.rng.choice(["DONE", "FAILED", "RETRY", "RETRY", "LATER", "CANCELLED"])
            self.ledger.finish(held, state=end, cause="x", counted=self.rng.random() < 0.5)

    def hand_over(self) -> None:
        """A profile lies in the spool: its uploader ends the entry with the same token."""
        if self.hands:
            held = self.rng.choice(self.hands)
            self.ledger.finish(held, state="UPLOADING", cause="ok", owner="n1/spool")

    def beat(self) -> None:
        held = [Held(key=each.key, fence=each.fence) for each in self.hands]
        for each, answer in zip(held, self.ledger.beat(held), strict=True):
            wanting = set(self.server.smembers(f"farm:jr:{each.key}"))
            waiting = {run for run, key in self.last if key == each.key}
            assert answer != "CANCEL" or wanting <= waiting

    def release(self) -> None:
        owner = f"n1/cpu:0#{self.rng.randrange(100)}"
        self.ledger.release(owner, cause="worker_lost", counted=self.rng.random() < 0.5)

    def wait(self) -> None:
        let_pass(self.server, self.rng.choice([0.5, 3, 400]))

    def jump(self) -> None:
        self.server.hincrbyfloat("farm:meta", "offset", self.rng.choice([-3.6e6, 3.6e6, 1000]))
        self.ledger.tick()


def check(server: redis.Redis, play: Play) -> None:
    stands = _entries(server)
    _check_places(server, stands)
    for run in RUNS:
        read = {each.key: str(each.state) for each in play.ledger.entries(run)}
        assert dict(Counter(read.values())) == play.ledger.counts(run), run
        rows = server.hgetall(f"farm:rj:{run}")
        assert {key for key, row in rows.items() if not row} == {
            key for key, each in stands.items() if run in each.wanted
        }, run
        for key, state in read.items():
            assert (run, key) not in play.cancelled or state == "CANCELLED", (run, key, state)
            assert (run, key) not in play.last or state in ("RUNNING", "UPLOADING", *ENDS), (
                run,
                key,
                state,
            )


class Stand(msgspec.Struct):
    """An entry as the server holds it; leaving: those of the runs that want no retry."""

    row: dict[str, str]
    wanted: set[str]
    leaving: set[str]


def _entries(server: redis.Redis) -> dict[str, Stand]:
    keys = [f"{name}.base" for name in NAMES]
    pipe = server.pipeline()
    for key in keys:
        pipe.hgetall(f"farm:j:{key}").smembers(f"farm:jr:{key}").smembers(f"farm:jc:{key}")
    told = iter(pipe.execute())
    found = {key: Stand(next(told), set(next(told)), set(next(told))) for key in keys}
    return {key: each for key, each in found.items() if each.row}


def _check_places(server: redis.Redis, stands: dict[str, Stand]) -> None:
    """Each entry is in exactly the place that its state names, and only there."""
    owners = server.keys("farm:own:*")
    pipe = server.pipeline()
    pipe.zrange("farm:lease", 0, -1).zrange("farm:delay", 0, -1)
    pipe.zunion(["farm:r:any", "farm:r:hw.cpu"])
    for each in owners:
        pipe.smembers(each)
    leases, delayed, ready, *rest = pipe.execute()
    owned = [key for found in rest for key in found]
    by_state: dict[str, list[str]] = {"READY": [], "RUNNING": [], "UPLOADING": [], "BACKOFF": []}
    for key, each in stands.items():
        state = each.row["state"]
        by_state.setdefault(state, []).append(key)
        runs = state in ("RUNNING", "UPLOADING")
        assert runs or not each.leaving, key
        assert each.leaving <= each.wanted, key
        assert ("cancel" in each.row) == (runs and each.leaving == each.wanted), key
        assert ({"fence", "owner"} <= each.row.keys()) == runs, key
    assert sorted(ready) == sorted(by_state["READY"])
    assert sorted(delayed) == sorted(by_state["BACKOFF"])
    held = [*by_state["RUNNING"], *by_state["UPLOADING"]]
    assert sorted(owned) == sorted(held)
    fences = [f"{key}|{stands[key].row['fence']}" for key in held]
    assert sorted(leases) == sorted(fences)
