"""What the ledger says to people and schedulers, and that none of it goes stale unseen."""

import math
from threading import Thread

import pytest
import redis

from farm.errors import Unreachable
from farm.ledger import Event, Ledger
from tests.farm.ledger.moves import claim, entry, slot

pytestmark = pytest.mark.redis


def told(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(each.key, each.state, each.cause) for each in events]


# ── runs and entries ─────────────────────────────────────────────────────────────────────────────


def test_a_record_says_how_an_entry_stands(ledger: Ledger, server: redis.Redis) -> None:
    ledger.submit("r-1", [entry("a", "hw.cpu", prio=1)])
    (waiting,) = ledger.entries("r-1")
    assert ("READY", "hw.cpu", 1, None) == (
        waiting.state,
        waiting.class_,
        waiting.prio,
        waiting.started_ms,
    )

    held = claim(ledger)

    (running,) = ledger.entries("r-1")
    now_ms = 1000 * ledger.server().time_s
    assert ("RUNNING", 1, "n1", "n1/cpu:0#a") == (
        running.state,
        running.attempt,
        running.node,
        running.owner,
    )
    assert running.started_ms is not None
    # Its stamps are whole ms, rounded; the server's time has µs.
    assert waiting.changed_ms <= running.started_ms <= running.changed_ms <= math.ceil(now_ms)
    ledger.finish(held, state="RETRY", cause="environment")
    ledger.finish(claim(ledger), state="DONE", cause="ok")
    ledger.submit("r-1", [entry("a", again=True)])
    assert [None] == [each.started_ms for each in ledger.entries("r-1")]


def test_keys_and_records_are_those_of_the_asked(ledger: Ledger) -> None:
    ledger.submit("r-1", [entry("b"), entry("a")])
    ledger.submit("r-2", [entry("c")])

    assert (["a.base", "b.base"], []) == (ledger.keys("r-1"), ledger.keys("r-9"))
    assert ["c.base", "a.base"] == [
        each.key for each in ledger.records(["c.base", "none.base", "a.base"])
    ]
    assert [] == ledger.records([])


def test_counts_are_those_of_states_alone(ledger: Ledger) -> None:
    """What else is noted of a run is no entry."""
    ledger.submit("r-1", [entry("a")])
    assert (0, 0) == (ledger.resubmitted("r-1"), ledger.resubmitted("r-9"))

    assert [1, 2] == [ledger.note_resubmission("r-1") for _ in range(2)]

    assert (2, {"READY": 1}) == (ledger.resubmitted("r-1"), ledger.counts("r-1"))
    assert {} == ledger.counts("r-9")


def test_what_runs_and_what_waits_is_told(ledger: Ledger, server: redis.Redis) -> None:
    ledger.submit("r-1", [entry("a"), entry("b"), entry("c"), entry("d", "hw.cpu")])
    held = claim(ledger)
    claim(ledger, "n2/cpu:0#b", slot("n2", "hw.cpu"))

    assert ["a.base", "d.base"] == [each.key for each in ledger.running()]
    assert {"any": 2} == ledger.ready()
    assert (["n2/cpu:0#b"], []) == (ledger.owners("n2"), ledger.owners("n"))
    ledger.finish(held, state="DONE", cause="ok")
    server.zadd("farm:lease", {"a.base|1": 1})  # as if it had ended while we read
    assert ["d.base"] == [each.key for each in ledger.running()]


def test_a_run_is_open_until_it_is_closed(ledger: Ledger) -> None:
    """In the order of joining; one that its own command follows never is."""
    for run in ("r-2", "r-1", "r-2"):
        ledger.submit(run, [entry(run)])
    ledger.submit("r-3", [entry("a")], here=True)
    assert ["r-2", "r-1"] == ledger.open_runs()

    ledger.close_run("r-2")
    ledger.close_run("r-3")
    assert ["r-1"] == ledger.open_runs()

    ledger.submit("r-2", [entry("b")])
    assert ["r-1", "r-2"] == ledger.open_runs()


def test_a_run_is_kept_while_it_waits_and_for_a_week_after(
    ledger: Ledger, server: redis.Redis
) -> None:
    """No record of it is left for ever, and none is lost while an entry is in flight."""
    names = ("farm:run:r-1", "farm:rj:r-1", "farm:j:a.base", "farm:jr:a.base")
    ledger.submit("r-1", [entry("a"), entry("b")])
    ledger.finish(claim(ledger), state="DONE", cause="ok")
    assert [True, True, False, False] == [server.ttl(each) == -1 for each in names]

    ledger.submit("r-2", [entry("a")])
    ledger.cancel("r-1", ["b.base"], running=False)
    ledger.note_resubmission("r-3")

    week = 7 * 86400
    for name in (*names, "farm:run:r-2", "farm:rj:r-2", "farm:run:r-3"):
        assert week - 60 < server.ttl(name) <= week, name


# ── events ───────────────────────────────────────────────────────────────────────────────────────


def test_events_are_read_on_from_an_id(ledger: Ledger) -> None:
    assert "0-0" == ledger.last_event()
    ledger.submit("r-1", [entry("a"), entry("b")])
    before = ledger.last_event()
    held = claim(ledger)
    ledger.finish(held, state="DONE", cause="ok")

    first, second = ledger.events(before)

    assert [("a.base", "RUNNING", "claim"), ("a.base", "DONE", "ok")] == told([first, second])
    assert (1, "n1/cpu:0#a", "") == (first.attempt, first.owner, first.run)
    assert abs(first.at_ms / 1000 - ledger.server().time_s) < 60
    assert ledger.last_event() == second.id
    assert [second] == ledger.events(first.id)
    assert [] == ledger.events(second.id, block_s=0.01)
    assert [first] == ledger.events(before, count=1)
    assert 4 == len(ledger.events("0-0"))


def test_a_reader_is_woken_by_the_next_event(ledger: Ledger, server: redis.Redis) -> None:
    heard: list[Event] = []
    reader = Thread(target=lambda: heard.extend(ledger.events("0-0", block_s=20)))
    reader.start()
    while reader.is_alive() and not server.info("clients")["blocked_clients"]:
        pass

    ledger.submit("r-1", [entry("a")])
    reader.join(15)

    assert [("a.base", "READY", "submit")] == told(heard)


def test_a_gap_in_the_events_is_told(ledger: Ledger, server: redis.Redis) -> None:
    """Whoever has read what is gone now, and whoever has read nothing, needs a new snapshot."""
    assert not ledger.is_trimmed("0-0")
    ledger.submit("r-1", [entry(name) for name in "abcd"])
    ids = ["0-0"] + [each.id for each in ledger.events("0-0")]
    assert [False] * 5 == [ledger.is_trimmed(each) for each in ids]

    server.xtrim("farm:ev", maxlen=2, approximate=False)

    assert [True, True, True, False, False] == [ledger.is_trimmed(each) for each in ids]


@pytest.mark.parametrize("next_id", ["*", "1-1"])
def test_a_loss_of_redis_is_a_gap_too(ledger: Ledger, server: redis.Redis, next_id: str) -> None:
    """Also where the clock was set back meanwhile, so that new ids are below the old."""
    ledger.submit("r-1", [entry("a")])
    read = ledger.last_event()

    ledger.forget()
    assert (True, False) == (ledger.is_trimmed(read), ledger.is_trimmed("0-0"))
    server.xadd("farm:ev", {"key": "b.base"}, id=next_id)

    assert (True, False) == (ledger.is_trimmed(read), ledger.is_trimmed("0-0"))


# ── the farm ─────────────────────────────────────────────────────────────────────────────────────


def test_nodes_are_told_by_name_with_their_slots(ledger: Ledger) -> None:
    ledger.node("n2", state="draining", slots=[slot("n2")])
    ledger.node("n1", state="up")
    ledger.node("n3", state="up", slots=[slot("n3")])
    ledger.node("n3", state="gone")

    first, second = ledger.nodes()

    assert ("n1", "up", []) == (first.name, first.state, first.slots)
    assert ("n2", "draining", [slot("n2")]) == (second.name, second.state, second.slots)
    assert 0 <= second.silent_s < 2
    assert [slot("n2")] == ledger.slots()


@pytest.mark.parametrize("clock", ["heartbeat", "seen"])
def test_a_node_without_a_sign_of_life_is_not_told(
    ledger: Ledger, server: redis.Redis, clock: str
) -> None:
    """By ledger time or, since that stands still without a tick, by the clock of the server."""
    ledger.node("n1", state="up", slots=[slot("n1")])
    ledger.tick()
    server.hincrbyfloat("farm:node:n1", clock, -1500)
    (node,) = ledger.nodes()
    assert 1.0 <= node.silent_s < 2

    server.hincrbyfloat("farm:node:n1", clock, -1000)

    assert ([], []) == (ledger.nodes(), ledger.slots())


def test_the_lease_time_of_the_farm_decides_who_lives(
    ledger: Ledger, server: redis.Redis, redis_url: str
) -> None:
    """Not that of the command which asks."""
    asking = Ledger(redis_url)
    ledger.node("n1", state="up")
    server.hincrbyfloat("farm:node:n1", "seen", -2000)

    assert [] == asking.nodes()
    asking.close()


def test_a_node_of_an_older_version_is_told(ledger: Ledger, server: redis.Redis) -> None:
    ledger.node("n1", state="up", slots=[slot("n1")])
    server.hdel("farm:node:n1", "seen")

    assert ["n1"] == [each.name for each in ledger.nodes()]


def test_the_server_says_what_it_is(ledger: Ledger, server: redis.Redis) -> None:
    found = ledger.server()

    seconds, _ = server.time()
    assert abs(found.time_s - seconds) < 60
    assert ("noeviction", True) == (found.policy, found.appendonly)
    assert 1 <= found.clients < found.max_clients
    assert found.version.split(".")[0].isdigit()
    assert (found.flavour == "valkey") == ("valkey_version" in server.info())


def test_who_may_only_read_sees_everything(
    ledger: Ledger, server: redis.Redis, redis_url: str
) -> None:
    """No view needs a script or a right to write; a change is refused in one sentence."""
    rights = "on >secret %R~farm:* +@read +@connection -@dangerous +info"
    server.execute_command("ACL", "SETUSER", "watch", *rights.split())
    watcher = Ledger("redis://watch:secret@" + redis_url.partition("@")[2])
    ledger.node("n1", state="up", slots=[slot()])
    ledger.submit("r-1", [entry("a"), entry("b")])
    claim(ledger)
    try:
        assert ["RUNNING", "READY"] == [each.state for each in watcher.entries("r-1")]
        assert {"RUNNING": 1, "READY": 1} == watcher.counts("r-1")
        assert ["a.base"] == [each.key for each in watcher.running()]
        assert ({"any": 1}, ["r-1"], 0) == (
            watcher.ready(),
            watcher.open_runs(),
            watcher.resubmitted("r-1"),
        )
        assert (3, False) == (len(watcher.events("0-0")), watcher.is_trimmed("0-0"))
        assert ([], "", [slot()]) == (watcher.log("a.base"), watcher.leader(), watcher.slots())
        assert ledger.server().version == watcher.server().version
        with pytest.raises(Unreachable, match="refuses our credentials"):
            watcher.submit("r-2", [entry("c")])
    finally:
        server.execute_command("ACL", "DELUSER", "watch")
        watcher.close()
