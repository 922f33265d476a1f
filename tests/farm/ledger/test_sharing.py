"""What becomes of an entry that several runs want, now or one after the other."""

import pytest

from farm.ledger import Event, Held, Ledger
from tests.farm.ledger.moves import (
    KEY,
    beat,
    claim,
    entry,
    running,
    states,
)

pytestmark = pytest.mark.redis


# ── one of them lets go ──────────────────────────────────────────────────────────────────────────


def test_an_entry_that_another_run_wants_goes_on_without_the_one_that_let_go(
    ledger: Ledger,
) -> None:
    """For the one it counts and reads as CANCELLED, whatever the other makes of it."""
    ledger.submit("r-1", [entry("a")])
    ledger.submit("r-2", [entry("a")])

    assert ["shared"] == ledger.cancel("r-1", [KEY], running=True)

    for expected in ("READY", "RUNNING", "DONE"):
        if expected == "RUNNING":
            held = claim(ledger)
            assert ("r-2", "OK") == (held.run, beat(ledger, held))
        if expected == "DONE":
            ledger.finish(held, state="DONE", cause="ok", profile_key="p")
        assert {"a": "CANCELLED"} == states(ledger, "r-1")
        assert {"a": expected} == states(ledger, "r-2")
    (record,) = ledger.entries("r-1")
    assert ("cancelled", "", "") == (record.cause, record.owner, record.profile_key)


def test_a_run_that_lets_go_has_an_event_of_its_own(ledger: Ledger) -> None:
    ledger.submit("r-1", [entry("a")])
    ledger.submit("r-2", [entry("a")])
    before = ledger.last_event()

    ledger.cancel("r-1", [KEY], running=False)
    ledger.cancel("r-2", [KEY], running=False)

    def told(event: Event) -> tuple[str, str, str]:
        return event.key, event.run, event.state

    assert [(KEY, "r-1", "CANCELLED"), (KEY, "", "CANCELLED")] == [
        told(each) for each in ledger.events(before)
    ]


def test_only_the_last_run_that_lets_go_ends_what_runs(ledger: Ledger) -> None:
    held = running(ledger, "r-1", "r-2")

    assert ["shared"] == ledger.cancel("r-1", [KEY], running=True)
    assert "OK" == beat(ledger, held)
    assert ["asked"] == ledger.cancel("r-2", [KEY], running=True)
    assert "CANCEL" == beat(ledger, held)


def test_a_killed_entry_that_somebody_asked_for_since_is_queued_again_uncounted(
    ledger: Ledger,
) -> None:
    """For the run that had it killed it is CANCELLED; the next profile bears the other's name."""
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=True)

    assert ["shared"] == ledger.submit("r-2", [entry("a")])
    assert "OK" == beat(ledger, held)
    assert "READY" == ledger.finish(held, state="CANCELLED", cause="cancelled")

    assert ({"a": "CANCELLED"}, {"a": "READY"}) == (states(ledger, "r-1"), states(ledger, "r-2"))
    assert [0] == [each.infra for each in ledger.entries("r-2")]
    assert "r-2" == claim(ledger).run


def test_the_run_that_cancelled_may_ask_again(ledger: Ledger) -> None:
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=True)

    assert ["shared"] == ledger.submit("r-1", [entry("a")])

    assert "READY" == ledger.finish(held, state="CANCELLED", cause="cancelled")
    assert {"a": "READY"} == states(ledger, "r-1")


@pytest.mark.parametrize("end", ["DONE", "RETRY"])
def test_a_run_that_let_an_attempt_go_on_has_its_result_and_no_other(
    ledger: Ledger, end: str
) -> None:
    """Also when another run has joined since, for which the entry is tried again."""
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=False)
    ledger.submit("r-2", [entry("a")])

    ledger.finish(held, state=end, cause="x")  # type: ignore[arg-type]

    expected = {"DONE": ("DONE", "DONE"), "RETRY": ("CANCELLED", "READY")}[end]
    assert expected == (states(ledger, "r-1")["a"], states(ledger, "r-2")["a"])


def test_who_only_waits_for_an_attempt_does_not_keep_an_entry_alive(ledger: Ledger) -> None:
    """Two runs cancel one after the other, the second having joined in between."""
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=False)
    ledger.submit("r-2", [entry("a")])

    assert ["running"] == ledger.cancel("r-2", [KEY], running=False)

    assert "CANCELLED" == ledger.finish(held, state="RETRY", cause="released", counted=False)


def test_a_run_lets_go_of_an_entry_once(ledger: Ledger) -> None:
    """Also one that first let the attempt go on, and then not even that."""
    held = running(ledger)
    ledger.cancel("r-1", [KEY], running=False)
    ledger.submit("r-2", [entry("a")])

    assert ["shared"] == ledger.cancel("r-1", [KEY], running=False)

    ledger.finish(held, state="RETRY", cause="released", counted=False)
    assert ({"a": "CANCELLED"}, {"a": "READY"}) == (states(ledger, "r-1"), states(ledger, "r-2"))


def test_what_a_run_let_go_of_shows_no_profile(ledger: Ledger) -> None:
    """Though the attempt in hand has named the one that it will store."""
    held = running(ledger, "r-1", "r-2")
    ledger.beat([Held(key=KEY, fence=held.fence, profile_key="p")])

    ledger.cancel("r-1", [KEY], running=False)

    assert ["", "p"] == [ledger.entries(run)[0].profile_key for run in ("r-1", "r-2")]


def test_entries_read_by_key_whether_let_go_of_or_not(ledger: Ledger) -> None:
    for run in ("r-1", "r-2"):
        ledger.submit(run, [entry(name) for name in "cab"])
    ledger.cancel("r-1", ["b.base", "c.base"], running=False)

    assert ["a.base", "b.base", "c.base"] == [each.key for each in ledger.entries("r-1")]


@pytest.mark.parametrize("end", ["DONE", "FAILED"])
def test_a_run_keeps_the_end_it_had_when_another_asks_anew(ledger: Ledger, end: str) -> None:
    """And what is asked anew can be cancelled by who asked: nobody else waits for it."""
    ledger.finish(running(ledger), state=end, cause="x", profile_key="p")  # type: ignore[arg-type]

    assert ["new"] == ledger.submit("r-2", [entry("a", again=True)])

    assert ({"a": end}, {"a": "READY"}) == (states(ledger, "r-1"), states(ledger, "r-2"))
    assert ["p", ""] == [ledger.entries(run)[0].profile_key for run in ("r-1", "r-2")]
    assert ["cancelled"] == ledger.cancel("r-2", [KEY], running=False)


def test_a_run_that_let_go_can_join_again(ledger: Ledger) -> None:
    for run in ("r-1", "r-2"):
        ledger.submit(run, [entry("a")])
    ledger.cancel("r-1", [KEY], running=False)

    assert ["shared"] == ledger.submit("r-1", [entry("a")])

    assert {"a": "READY"} == states(ledger, "r-1") == states(ledger, "r-2")


# ── priority ─────────────────────────────────────────────────────────────────────────────────────


def test_a_waiting_entry_has_the_best_priority_of_those_who_want_it(ledger: Ledger) -> None:
    ledger.submit("r-1", [entry("a"), entry("b"), entry("c")])

    ledger.submit("r-2", [entry("c", prio=1), entry("a", prio=3)])

    assert [2, 2, 1] == [each.prio for each in ledger.entries("r-1")]
    assert ["c.base", "a.base", "b.base"] == [claim(ledger, f"n1/cpu:{i}#x").key for i in range(3)]


def test_a_priority_outlives_a_retry(ledger: Ledger) -> None:
    """It was raised while the entry ran, and matters when it waits again."""
    held = running(ledger)
    ledger.submit("r-1", [entry("b", prio=1)])
    ledger.submit("r-2", [entry("a", prio=0)])
    assert {"any": 1} == ledger.ready()

    ledger.finish(held, state="RETRY", cause="released", counted=False)

    assert [KEY, "b.base"] == [claim(ledger).key, claim(ledger).key]
