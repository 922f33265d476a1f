"""The ledger against a real server: leases, fences, retries, and what lives in between."""

import select

import pytest
import redis

from farm.errors import Unreachable
from farm.ledger import Claim, Held, Ledger
from tests.farm.ledger.moves import claim, entry, let_pass, slot

pytestmark = pytest.mark.redis


def test_an_entry_is_claimed_by_one_and_ended_by_its_holder(ledger: Ledger) -> None:
    """Between submit and finish an entry is in one hand only."""
    assert ["new"] == ledger.submit("r-1", [entry("a")])

    held = claim(ledger)

    assert not isinstance(ledger.claim(slot(), owner="n1/cpu:1#b"), Claim)
    assert "DONE" == ledger.finish(held, state="DONE", cause="ok", profile_key="p")
    assert {"DONE": 1} == ledger.counts("r-1")


def test_who_lost_the_lease_changes_nothing(ledger: Ledger, server: redis.Redis) -> None:
    """A holder whose lease ran out gets STALE, whatever it wants to say."""
    ledger.submit("r-1", [entry("a")])
    first = claim(ledger)
    let_pass(server, 3)
    assert ["a.base"] == ledger.tick().reaped

    second = claim(ledger, owner="n2/cpu:0#b")

    assert "STALE" == ledger.finish(first, state="DONE", cause="ok")
    assert ["LOST taken"] == ledger.beat([Held(key=first.key, fence=first.fence)])
    assert "DONE" == ledger.finish(second, state="DONE", cause="ok")
    assert int(second.fence) > int(first.fence)


def test_who_beats_keeps_the_lease(ledger: Ledger, server: redis.Redis) -> None:
    """A lease that is renewed does not run out."""
    ledger.submit("r-1", [entry("a")])
    held = claim(ledger)

    for _ in range(5):
        let_pass(server, 1.5)
        assert ["OK"] == ledger.beat([Held(key=held.key, fence=held.fence)])
        assert [] == ledger.tick().reaped


def test_a_loss_of_redis_is_told_apart_from_a_lost_lease(ledger: Ledger) -> None:
    """An unknown entry is `LOST unknown`: its measurement is finished and stored all the same."""
    ledger.submit("r-1", [entry("a")])
    held = claim(ledger)

    ledger.forget()

    assert ["LOST unknown"] == ledger.beat([Held(key=held.key, fence=held.fence)])


def test_a_dead_owner_gives_back_what_it_held(ledger: Ledger, server: redis.Redis) -> None:
    """Release hands an entry on at once; the fourth loss ends it as DEAD."""
    ledger.submit("r-1", [entry("a")])
    for expected in ("READY", "BACKOFF", "BACKOFF", "DEAD"):
        held = claim(ledger, owner="n1/cpu:0#x")
        assert {held.key: expected} == ledger.release(
            "n1/cpu:0#x", cause="worker_lost", counted=True
        )
        if expected == "BACKOFF":
            assert not isinstance(ledger.claim(slot(), owner="n1/cpu:0#y"), Claim)
            let_pass(server, 400)
            ledger.tick()

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
    claim(ledger, owner="n1/cpu:0#a")
    ledger.release("n1/cpu:0#a", cause="worker_lost", counted=True)

    assert not isinstance(ledger.claim(slot("n1"), owner="n1/cpu:0#b"), Claim)
    assert "a.base" == claim(ledger, "n2/cpu:0#c", slot("n2")).key


def test_a_step_of_the_clock_reaps_nobody(ledger: Ledger, server: redis.Redis) -> None:
    """A jump of an hour either way opens a grace of one lease instead of emptying the farm."""
    ledger.submit("r-1", [entry("a")])
    claim(ledger)
    for jump in (3_600_000, -3_600_000):
        ledger.tick()
        server.hincrbyfloat("farm:meta", "offset", jump)
        assert [] == ledger.tick().reaped


def test_a_flushed_script_cache_changes_nothing(ledger: Ledger, server: redis.Redis) -> None:
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


# ── the farm ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", ["tick", "scheduler"])
def test_one_leads(ledger: Ledger, what: str) -> None:
    """The lead is kept by whoever has it and given to nobody else meanwhile."""
    assert "" == ledger.leader(what)

    assert [True, False, True] == [ledger.lead(who, what=what) for who in "aba"]

    assert "a" == ledger.leader(what)
    assert ledger.lead("c", what="another")


def test_what_is_forgotten_is_told_by_the_runs_that_were_open(
    ledger: Ledger, server: redis.Redis
) -> None:
    ledger.submit("r-2", [entry("a")])
    ledger.submit("r-1", [entry("b")])
    ledger.submit("r-3", [entry("c")], here=True)

    assert ["r-2", "r-1"] == ledger.forget()

    assert [] == server.keys("*")
    assert [] == ledger.forget()


# ── between people and a running job ─────────────────────────────────────────────────────────────


def test_a_log_is_asked_for_where_the_job_runs(ledger: Ledger) -> None:
    ledger.submit("r-1", [entry("a")])
    ears = ledger.listen("n1")

    assert not ledger.ask_log("a.base")
    assert not ledger.ask_log("none.base")
    held = claim(ledger)
    assert ledger.ask_log("a.base")

    assert [ears] == select.select([ears], [], [], 10)[0]
    assert [{"do": "log", "key": "a.base", "fence": held.fence}] == ears.heard()
    ears.close()


def test_lines_of_a_job_are_followed_from_an_id(ledger: Ledger) -> None:
    ledger.put_log("a.base", ["one", "two"])
    found = ledger.log("a.base")
    ledger.put_log("a.base", ["three"])

    assert ["one", "two"] == [line for _, line in found]
    assert ["three"] == [line for _, line in ledger.log("a.base", after=found[-1][0])]
    assert [] == ledger.log("b.base")


def test_lines_of_a_job_are_kept_for_a_while_only(ledger: Ledger, server: redis.Redis) -> None:
    """Two minutes after the last of them, and no more than about two thousand."""
    ledger.put_log("a.base", [str(number) for number in range(3000)])

    assert 2000 <= server.xlen("farm:log:a.base") < 2200
    assert "2999" == ledger.log("a.base")[-1][1]
    assert 0 < server.ttl("farm:log:a.base") <= 120
