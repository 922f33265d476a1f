"""What becomes of an entry that its run wants no more."""

import select

import pytest
import redis

from farm.ledger import Ledger
from tests.farm.ledger.moves import (
    KEY,
    OWNER,
    beat,
    claim,
    entry,
    let_pass,
    nothing_to_claim,
    running,
    slot,
    states,
)

pytestmark = pytest.mark.redis


# ── what waits ───────────────────────────────────────────────────────────────────────────────────


def test_a_cancelled_waiting_entry_is_never_claimed(ledger: Ledger) -> None:
    ledger.submit("r-1", [entry("a")])

    assert ["cancelled"] == ledger.cancel("r-1", [KEY], running=False)

    assert nothing_to_claim(ledger)
    assert {"a": "CANCELLED"} == states(ledger, "r-1")
    assert "cancelled" == ledger.entries("r-1")[0].cause


def test_a_cancelled_entry_does_not_come_back_from_its_backoff(
    ledger: Ledger, server: redis.Redis
) -> None:
    running(ledger)
    for _ in range(2):
        ledger.release(OWNER, cause="worker_lost", counted=True)
        ledger.claim(slot(), owner=OWNER)
    assert {"a": "BACKOFF"} == states(ledger, "r-1")

    assert ["cancelled"] == ledger.cancel("r-1", [KEY], running=False)

    let_pass(server, 400)
    assert 0 == ledger.tick().woken
    assert nothing_to_claim(ledger)


def test_a_cancelled_entry_is_taken_up_by_who_asks_again(ledger: Ledger) -> None:
    """It is a new life, and none of the run that cancelled it."""
    ledger.submit("r-1", [entry("a")])
    ledger.cancel("r-1", [KEY], running=False)

    assert ["new"] == ledger.submit("r-2", [entry("a")])

    assert "r-2" == claim(ledger).run
    assert ({"a": "CANCELLED"}, {"a": "RUNNING"}) == (states(ledger, "r-1"), states(ledger, "r-2"))


# ── what runs ────────────────────────────────────────────────────────────────────────────────────


def test_a_cancelled_running_entry_goes_on_and_its_result_counts(ledger: Ledger) -> None:
    held = running(ledger)

    assert ["running"] == ledger.cancel("r-1", [KEY], running=False)

    assert "OK" == beat(ledger, held)
    assert {"a": "RUNNING"} == states(ledger, "r-1")
    assert "DONE" == ledger.finish(held, state="DONE", cause="ok", profile_key="p")
    assert {"a": "DONE"} == states(ledger, "r-1")


@pytest.mark.parametrize("by", ["holder", "agent", "tick"])
@pytest.mark.parametrize("kill", [False, True])
def test_a_cancelled_running_entry_is_not_tried_again(
    ledger: Ledger, server: redis.Redis, by: str, kill: bool
) -> None:
    """Whoever ends the attempt without an answer ends the entry."""
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=kill)

    if by == "holder":
        assert "CANCELLED" == ledger.finish(held, state="RETRY", cause="environment")
    elif by == "agent":
        assert {KEY: "CANCELLED"} == ledger.release(OWNER, cause="worker_lost", counted=True)
    else:
        let_pass(server, 3)
        assert [KEY] == ledger.tick().reaped

    assert {"a": "CANCELLED"} == states(ledger, "r-1")
    assert nothing_to_claim(ledger)
    assert "STALE" == ledger.finish(held, state="DONE", cause="ok")


def test_the_node_of_a_running_entry_is_told_to_end_it(ledger: Ledger) -> None:
    held = running(ledger)
    ears, others = ledger.listen("n1"), ledger.listen("n2")

    assert ["asked"] == ledger.cancel("r-1", [KEY], running=True)

    assert [ears] == select.select([ears], [], [], 10)[0]
    assert [{"do": "cancel", "key": KEY, "fence": held.fence}] == ears.heard()
    assert [] == others.heard()
    assert "CANCELLED" == ledger.finish(held, state="CANCELLED", cause="cancelled")
    assert {"a": "CANCELLED"} == states(ledger, "r-1")
    ears.close()
    others.close()


def test_a_cancel_that_nobody_heard_is_said_by_the_next_beat(
    ledger: Ledger, server: redis.Redis
) -> None:
    """Such a beat renews the lease all the same: the child needs time to end."""
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=True)
    let_pass(server, 1.9)

    assert "CANCEL" == beat(ledger, held)

    let_pass(server, 1)
    assert [] == ledger.tick().reaped


def test_a_cancel_that_comes_too_late_takes_no_result_away(ledger: Ledger) -> None:
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=True)

    assert "FAILED" == ledger.finish(held, state="FAILED", cause="oom", profile_key="p")

    assert {"a": "FAILED"} == states(ledger, "r-1")


def test_a_milder_cancel_takes_no_kill_back(ledger: Ledger) -> None:
    held = running(ledger)
    assert ["running"] == ledger.cancel("r-1", [KEY], running=False)
    assert ["asked"] == ledger.cancel("r-1", [KEY], running=True)

    assert ["asked"] == ledger.cancel("r-1", [KEY], running=False)

    assert "CANCEL" == beat(ledger, held)


def test_a_cancelled_attempt_leaves_no_answer_behind(ledger: Ledger) -> None:
    """What it stored is evidence: the next attempt must measure."""
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=True)
    ledger.finish(held, state="CANCELLED", cause="cancelled", profile_key="p")

    ledger.submit("r-1", [entry("a")])

    assert ("", 2) == ((again := claim(ledger)).profile_key, again.attempt)


# ── the answers ──────────────────────────────────────────────────────────────────────────────────


def test_a_cancel_answers_for_each_key_in_order(ledger: Ledger) -> None:
    ledger.submit("r-1", [entry(name) for name in "abc"])
    ledger.submit("r-2", [entry("c"), entry("d")])
    ledger.finish(claim(ledger), state="DONE", cause="ok")
    claim(ledger)
    keys = ["d.base", "c.base", "b.base", "a.base", "none.base"]

    assert ["unknown", "shared", "running", "DONE", "unknown"] == ledger.cancel(
        "r-1", keys, running=False
    )
    assert ["unknown", "CANCELLED", "asked", "DONE", "unknown"] == ledger.cancel(
        "r-1", keys, running=True
    )


def test_a_cancel_of_many_keys_goes_in_batches(ledger: Ledger) -> None:
    entries = [entry(f"e{i:03}") for i in range(250)]
    ledger.submit("r-1", entries)

    verdicts = ledger.cancel("r-1", [each.key for each in entries] + ["x"], running=False)

    assert ["cancelled"] * 250 + ["unknown"] == verdicts
    assert {"CANCELLED": 250} == ledger.counts("r-1")
    assert {} == ledger.ready()


def test_a_withdrawn_run_lets_go_of_all_that_has_not_ended(ledger: Ledger) -> None:
    ledger.submit("r-1", [entry(name) for name in "abc"])
    ledger.submit("r-2", [entry("b")])
    claim(ledger)

    assert ["running", "shared", "cancelled"] == ledger.withdraw("r-1")
