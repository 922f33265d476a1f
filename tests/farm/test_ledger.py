"""The ledger against a real server: leases, fences, retries, and no entry lost in between."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
import redis

from farm.errors import Unreachable
from farm.ledger import ENDS, Claim, Entry, Held, Ledger, Slot

pytestmark = pytest.mark.redis


@pytest.fixture
def ledger(redis_url: str) -> Iterator[Ledger]:
    made = Ledger(redis_url, ttl_s=2.0)
    made.forget()
    made.setup()
    yield made
    made.close()


@pytest.fixture
def server(redis_url: str) -> Iterator["redis.Redis[str]"]:
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    yield client
    client.close()


def slot(node: str = "n1", *classes: str) -> Slot:
    names = list(classes) or ["hw.cpu", "any"]
    return Slot(
        node=node, slot="cpu-0", classes=names, device="cpu", system_id="s", system_class="c"
    )


def entry(name: str, queue: str = "any", *, again: bool = False) -> Entry:
    return Entry(key=f"{name}.base", class_=queue, spec="{}", again=again)


def claim(ledger: Ledger, owner: str = "n1/cpu-0#a", at: Slot | None = None) -> Claim:
    found = ledger.claim(at or slot(), owner=owner)
    assert isinstance(found, Claim)
    return found


def forget_clock(server: "redis.Redis[str]", seconds: float) -> None:
    """Let ledger time pass: the next tick finds leases that much older."""
    for key, expiry in server.zrange("farm:lease", 0, -1, withscores=True):
        server.zadd("farm:lease", {key: expiry - 1000 * seconds})
    for key, due in server.zrange("farm:delay", 0, -1, withscores=True):
        server.zadd("farm:delay", {key: due - 1000 * seconds})


def test_an_entry_is_claimed_by_one_and_ended_by_its_holder(ledger: Ledger) -> None:
    """Between submit and finish an entry is in one hand only."""
    assert ["new"] == ledger.submit("r-1", [entry("a")])

    held = claim(ledger)

    assert not isinstance(ledger.claim(slot(), owner="n1/cpu-1#b"), Claim)
    assert "DONE" == ledger.finish(held, state="DONE", cause="ok", profile_key="p")
    assert {"DONE": 1} == ledger.counts("r-1")


def test_who_lost_the_lease_changes_nothing(ledger: Ledger, server: "redis.Redis[str]") -> None:
    """A holder whose lease ran out gets STALE, whatever it wants to say."""
    ledger.submit("r-1", [entry("a")])
    first = claim(ledger)
    forget_clock(server, 3)
    assert ["a.base"] == ledger.tick().reaped

    second = claim(ledger, owner="n2/cpu-0#b")

    assert "STALE" == ledger.finish(first, state="DONE", cause="ok")
    assert ["LOST taken"] == ledger.beat([Held(key=first.key, fence=first.fence)])
    assert "DONE" == ledger.finish(second, state="DONE", cause="ok")
    assert int(second.fence) > int(first.fence)


def test_who_beats_keeps_the_lease(ledger: Ledger, server: "redis.Redis[str]") -> None:
    """A lease that is renewed does not run out."""
    ledger.submit("r-1", [entry("a")])
    held = claim(ledger)

    for _ in range(5):
        forget_clock(server, 1.5)
        assert ["OK"] == ledger.beat([Held(key=held.key, fence=held.fence)])
        assert [] == ledger.tick().reaped


def test_a_loss_of_redis_is_told_apart_from_a_lost_lease(ledger: Ledger) -> None:
    """An unknown entry is `LOST unknown`: its measurement is finished and stored all the same."""
    ledger.submit("r-1", [entry("a")])
    held = claim(ledger)

    ledger.forget()

    assert ["LOST unknown"] == ledger.beat([Held(key=held.key, fence=held.fence)])


def test_a_dead_owner_gives_back_what_it_held(ledger: Ledger) -> None:
    """Release hands an entry on at once; the fourth loss ends it as DEAD."""
    ledger.submit("r-1", [entry("a")])
    for expected in ("READY", "BACKOFF", "BACKOFF", "DEAD"):
        held = claim(ledger, owner="n1/cpu-0#x")
        assert {held.key: expected} == ledger.release(
            "n1/cpu-0#x", cause="worker_lost", counted=True
        )
        if expected == "BACKOFF":
            assert not isinstance(ledger.claim(slot(), owner="n1/cpu-0#y"), Claim)
            _make_due(ledger)

    assert {"DEAD": 1} == ledger.counts("r-1")
    assert "worker_lost" == ledger.entries("r-1")[0].cause


def test_an_uncounted_return_costs_no_try(ledger: Ledger) -> None:
    """A drained slot gives an entry back as often as it likes, up to 20 claims."""
    ledger.submit("r-1", [entry("a")])
    for _ in range(19):
        held = claim(ledger)
        assert "READY" == ledger.finish(held, state="RETRY", cause="released", counted=False)

    assert "DEAD" == ledger.finish(claim(ledger), state="RETRY", cause="x", counted=False)


def test_two_runs_share_an_entry_and_both_see_its_end(ledger: Ledger) -> None:
    """The same job submitted twice is measured once."""
    ledger.submit("r-1", [entry("a")])

    assert ["shared"] == ledger.submit("r-2", [entry("a")])
    ledger.finish(claim(ledger), state="FAILED", cause="oom")

    assert {"FAILED": 1} == ledger.counts("r-1") == ledger.counts("r-2")
    assert ["known"] == ledger.submit("r-3", [entry("a")])
    assert ["new"] == ledger.submit("r-4", [entry("a", again=True)])


def test_a_run_lets_go_of_what_only_it_wanted(ledger: Ledger) -> None:
    """Withdrawing cancels waiting entries, spares shared ones, and lets one in hand end."""
    ledger.submit("r-1", [entry("a"), entry("b"), entry("c")])
    ledger.submit("r-2", [entry("b")])
    held = claim(ledger)
    assert "a.base" == held.key

    assert ["running", "shared", "cancelled"] == ledger.withdraw("r-1")

    assert {"READY": 1} == ledger.counts("r-2")
    assert "CANCELLED" == ledger.finish(held, state="RETRY", cause="released", counted=False)
    assert "b.base" == claim(ledger).key


def test_tickets_are_as_many_as_there_is_work_up_to_the_cap(ledger: Ledger) -> None:
    """A tick asks for min(ready, 64) tickets of each class, less those that wait."""
    ledger.submit("r-1", [entry(f"a{i}", "hw.cpu") for i in range(100)])
    ledger.submit("r-1", [entry("b", "any")])

    assert {"hw.cpu": 64, "any": 1} == ledger.tick().tickets


def test_a_failed_node_is_avoided_while_another_can_take_the_entry(ledger: Ledger) -> None:
    """After a counted loss another live node goes first."""
    ledger.node("n1", state="up", slots=[slot("n1")])
    ledger.node("n2", state="up", slots=[slot("n2")])
    ledger.submit("r-1", [entry("a")])
    claim(ledger, owner="n1/cpu-0#a")
    ledger.release("n1/cpu-0#a", cause="worker_lost", counted=True)

    assert not isinstance(ledger.claim(slot("n1"), owner="n1/cpu-0#b"), Claim)
    assert "a.base" == claim(ledger, "n2/cpu-0#c", slot("n2")).key


def test_a_step_of_the_clock_reaps_nobody(ledger: Ledger, server: "redis.Redis[str]") -> None:
    """A jump of an hour either way opens a grace of one lease instead of emptying the farm."""
    ledger.submit("r-1", [entry("a")])
    claim(ledger)
    for jump in (3_600_000, -3_600_000):
        ledger.tick()
        server.hincrbyfloat("farm:meta", "offset", jump)
        assert [] == ledger.tick().reaped


def test_a_node_without_a_sign_of_life_has_no_slots(
    ledger: Ledger, server: "redis.Redis[str]"
) -> None:
    """Slots are those of nodes that beat within a lease."""
    ledger.node("n1", state="up", slots=[slot("n1")])
    assert ["n1"] == [each.node for each in ledger.slots()]

    server.hincrbyfloat("farm:node:n1", "heartbeat", -5000)

    assert [] == ledger.slots()


def test_one_leads_the_tick(ledger: Ledger) -> None:
    """The lead is kept by whoever has it and given to nobody else meanwhile."""
    assert [True, False, True] == [ledger.lead("a"), ledger.lead("b"), ledger.lead("a")]


def test_a_flushed_script_cache_changes_nothing(ledger: Ledger, server: "redis.Redis[str]") -> None:
    """SCRIPT FLUSH between two calls is survived (Q5)."""
    ledger.submit("r-1", [entry("a")])
    server.script_flush()

    assert "a.base" == claim(ledger).key


def test_a_server_that_is_away_is_said_in_one_sentence() -> None:
    """No library error reaches a caller."""
    lost = Ledger("redis://127.0.0.1:1/0")
    with pytest.raises(Unreachable, match="the broker cannot be reached"):
        lost.setup()
    lost.close()


def test_any_sequence_of_calls_keeps_each_entry_in_one_place(
    ledger: Ledger, server: "redis.Redis[str]", seed: int
) -> None:
    """Random work with clock jumps: one place per entry, counters equal recounts, all end (Q3)."""
    play = _Play(ledger, server, random.Random(seed))
    for _ in range(400):
        play.step()
        _check(server)

    for _ in range(200):
        _make_due(ledger)
        got = ledger.claim(slot(), owner="n1/cpu-0#last")
        if isinstance(got, Claim):
            ledger.finish(got, state="DONE", cause="ok")
        forget_clock(server, 400)
        server.hset("farm:meta", "grace", 0)
        ledger.tick()
    _check(server)
    assert {"DONE", "FAILED", "DEAD", "CANCELLED"} >= {
        state for run in range(3) for state in ledger.counts(f"r-{run}")
    }


class _Play:
    """Random moves of submitters, slot workers and clocks."""

    def __init__(self, ledger: Ledger, server: "redis.Redis[str]", rng: random.Random) -> None:
        self.ledger, self.server, self.rng = ledger, server, rng
        self.hands: list[Claim] = []

    def step(self) -> None:
        rng, some = self.rng, self.rng.random
        moves = [self.submit, self.submit, self.claim, self.claim, self.finish, self.beat]
        moves += [self.wait, self.jump, self.ledger.tick]
        moves += [lambda: self.ledger.withdraw(f"r-{rng.randrange(3)}")] if some() < 0.2 else []
        rng.choice(moves)()

    def submit(self) -> None:
        rng = self.rng
        queue = rng.choice(["any", "hw.cpu"])
        names = rng.sample([f"e{i}" for i in range(12)], 3)
        entries = [entry(name, queue, again=rng.random() < 0.2) for name in names]
        self.ledger.submit(f"r-{rng.randrange(3)}", entries)

    def claim(self) -> None:
        got = self.ledger.claim(slot(), owner=f"n1/cpu-0#{self.rng.randrange(100)}")
        self.hands += [got] if isinstance(got, Claim) else []

    def finish(self) -> None:
        if self.hands:
            held = self.hands.pop(self.rng.randrange(len(self.hands)))
            state = self.rng.choice(["DONE", "FAILED", "RETRY"])
            self.ledger.finish(held, state=state, cause="x", counted=self.rng.random() < 0.7)  # type: ignore[arg-type]

    def beat(self) -> None:
        self.ledger.beat([Held(key=each.key, fence=each.fence) for each in self.hands])

    def wait(self) -> None:
        forget_clock(self.server, self.rng.choice([0.5, 3, 400]))

    def jump(self) -> None:
        self.server.hincrbyfloat("farm:meta", "offset", self.rng.choice([-3.6e6, 3.6e6, 1000]))
        self.ledger.tick()


def _make_due(ledger: Ledger) -> None:
    client = ledger._redis
    for key in client.zrange("farm:delay", 0, -1):
        client.zadd("farm:delay", {key: 0})
    ledger.tick()


def _check(server: "redis.Redis[str]") -> None:
    """Every entry stands in exactly the place its state names, and every counter is a recount."""
    leases = {each.split("|")[0] for each in server.zrange("farm:lease", 0, -1)}
    delayed = set(server.zrange("farm:delay", 0, -1))
    owned = {k for own in server.keys("farm:own:*") for k in server.smembers(own)}
    ready = [k for queue in server.keys("farm:r:*") for k in server.zrange(queue, 0, -1)]
    assert len(ready) == len(set(ready))
    per_run: dict[str, Counter[str]] = {}
    for name in server.keys("farm:j:*"):
        key = name.removeprefix("farm:j:")
        state = server.hget(name, "state")
        places = {
            "READY": key in ready,
            "RUNNING": key in leases and key in owned,
            "BACKOFF": key in delayed,
        }
        assert [state] * (state not in ENDS) == [s for s, here in places.items() if here], key
        for run in server.smembers(f"farm:jr:{key}"):
            per_run.setdefault(run, Counter())[state] += 1
    for name in server.keys("farm:run:*"):
        counted = {s: int(n) for s, n in server.hgetall(name).items() if int(n)}
        counted.pop("CANCELLED", None)  # a withdrawn run counts entries it no longer wants
        recount = per_run.get(name.removeprefix("farm:run:"), Counter())
        recount.pop("CANCELLED", None)
        assert counted == dict(recount), name
