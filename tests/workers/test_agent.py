"""A real agent with real slot workers: whatever ends, what was in hand goes back at once."""

import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from farm import __version__
from farm.errors import NoResult, Unreachable
from farm.ledger import Ledger
from tests.workers import make
from tests.workers.agents import SLOT, Place, job
from workers.agent import Agent
from workers.node import Served


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


# ── what people ask of a running job ─────────────────────────────────────────────────────────────


def _by_message(place: Place, key: str) -> None:
    assert ["asked"] == place.ledger.cancel("r-1", [key], running=True)


def _by_beat(place: Place, key: str) -> None:
    place.server.hset(f"farm:j:{key}", "cancel", "kill")


@pytest.mark.redis
@pytest.mark.parametrize(("ask", "lease_s"), [(_by_message, "60"), (_by_beat, "2")])
def test_a_cancelled_job_is_gone_within_seconds(
    place: Place, ask: Callable[[Place, str], None], lease_s: str
) -> None:
    """One that prints for ever; where the message was lost, the next beat says it again."""
    key = place.submit(job(fail="babble", fail_at="latency"))
    agent = place.start(FARM_LEASE_S=lease_s)
    child = place.measuring()
    began = time.monotonic()

    ask(place, key)
    place.until(lambda: place.states() == ["CANCELLED"], "not cancelled")

    assert time.monotonic() - began < 5
    assert not _is_alive(child)
    assert ("cancelled", 0, []) == (
        place.records()[0].cause,
        place.records()[0].infra,
        place.profiles(),
    )
    place.submit(job(2))
    place.until(lambda: place.states() == ["CANCELLED", "DONE"], "the slot serves no more")
    assert agent.poll() is None


@pytest.mark.redis
def test_the_log_of_a_running_job_can_be_followed(place: Place) -> None:
    """What it printed last, and what it prints from then on."""
    key = place.submit(job(fail="babble", fail_at="latency"))
    place.start()
    place.measuring()

    assert place.ledger.ask_log(key)
    first = place.until(lambda: place.ledger.log(key), "no log")
    more = place.until(lambda: place.ledger.log(key, after=first[-1][0]), "no more of it")

    assert "still here" in first[-1][1]
    assert int(first[-1][1].split()[-1]) < int(more[-1][1].split()[-1])
    place.ledger.cancel("r-1", [key], running=True)


# ── a store that is away ─────────────────────────────────────────────────────────────────────────


@pytest.mark.redis
def test_an_outage_of_the_store_holds_up_no_device_and_loses_nothing(place: Place) -> None:
    """The jobs go on, what they found waits here, and everybody can see that it does."""
    place.start()
    away = place.store.root.with_name("away")
    place.store.root.rename(away)

    place.submit(job(1), job(2), job(3))
    place.until(lambda: place.states() == ["UPLOADING"] * 3, "a device waits for the store")
    node = place.until(
        lambda: next((n for n in place.ledger.nodes() if n.spool.profiles == 3), None),
        "nobody hears of the spool",
    )
    assert "the store is not there" in node.spool.trouble
    assert not place.store.root.exists()

    away.rename(place.store.root)
    place.until(lambda: place.states() == ["DONE"] * 3, "the spool does not drain")
    assert 3 == len(place.profiles())
    place.until(lambda: place.ledger.nodes()[0].spool.profiles == 0, "the spool is not empty")


@pytest.mark.redis
def test_what_waited_when_an_agent_was_killed_is_sent_by_the_next(place: Place) -> None:
    """And not measured again: the next one keeps the lease."""
    first = place.start()
    away = place.store.root.with_name("away")
    place.store.root.rename(away)
    place.submit(job())
    place.until(lambda: place.states() == ["UPLOADING"], "it is not measured")
    first.kill()
    first.wait()
    away.rename(place.store.root)

    place.start()

    place.until(lambda: place.states() == ["DONE"], "it is not sent")
    (record,) = place.ledger.entries("r-1")
    assert (1, 0, 1) == (record.attempt, record.infra, len(place.profiles()))


@pytest.mark.redis
def test_a_drain_sends_what_waits_before_it_ends(place: Place) -> None:
    """If the store takes it; if not, it stays for the next agent, and nothing waits for that."""
    agent = place.start()
    away = place.store.root.with_name("away")
    place.store.root.rename(away)
    place.submit(job())
    place.until(lambda: place.states() == ["UPLOADING"], "it is not measured")

    agent.terminate()

    assert 0 == agent.wait(timeout=30)
    assert 1 == len(list(place.folder.glob("state/spool/*/[0-9]*")))
    away.rename(place.store.root)


@pytest.mark.redis
def test_a_lost_subscription_is_made_anew(place: Place) -> None:
    """An outage costs the agent nothing, and afterwards it hears again."""
    agent = place.start()

    def listeners() -> int:
        return int(place.server.pubsub_numsub("farm:tell:n1")[0][1])

    def subscribers() -> set[str]:
        return {client["id"] for client in place.server.client_list(_type="pubsub")}

    place.until(lambda: listeners() == 1, "it does not listen")
    before = subscribers()  # the slot workers' own may be among them
    place.server.client_kill_filter(_type="pubsub")
    place.until(lambda: not before & subscribers() and listeners() == 1, "it does not listen again")

    assert agent.poll() is None


@pytest.mark.redis
def test_what_no_farm_would_say_is_not_heard(place: Place) -> None:
    """A cancel without a fence, above all, is not one of whatever is in hand."""
    key = place.submit(job(fail="babble", fail_at="latency"))
    agent = place.start(FARM_LEASE_S="60")
    place.until(lambda: place.server.pubsub_numsub("farm:tell:n1")[0][1], "it does not listen")
    child = place.measuring()

    for said in ("no JSON", "[]", "{}", '{"do":"cancel"}', '{"do":"cancel","fence":""}'):
        place.server.publish("farm:tell:n1", said)
    for said in ('{"do":"cancel","fence":17}', '{"do":"dance","fence":"17"}'):
        place.server.publish("farm:tell:n1", said)

    place.until(lambda: _has_read_all(place), "it does not read")
    assert (["RUNNING"], True, None) == (place.states(), _is_alive(child), agent.poll())
    place.ledger.cancel("r-1", [key], running=True)
    place.until(lambda: place.states() == ["CANCELLED"], "it does not hear any more", seconds=5)


def _has_read_all(place: Place) -> bool:
    """Whether what was said last is heard: the log is asked for, and comes."""
    place.ledger.ask_log(place.records()[0].key)
    return bool(place.ledger.log(place.records()[0].key))


# ── several agents ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.redis
def test_agents_of_one_machine_work_side_by_side_and_end_cleanly(place: Place) -> None:
    """Each with a name, a state and locks of its own; SIGTERM or SIGINT, and the list is empty."""
    agents = [place.start(name, folder=name) for name in ("n1", "n2")]

    for batch, name in enumerate(("n1", "n2"), 1):
        place.submit(job(batch), class_=f"node.{name}")
    place.until(lambda: place.states() == ["DONE", "DONE"], "not completed")

    assert ["n1", "n2"] == sorted(each.execution.node for each in place.profiles())
    for agent, number in zip(agents, (signal.SIGTERM, signal.SIGINT), strict=True):
        agent.send_signal(number)
    assert [0, 0] == [agent.wait(30) for agent in agents]
    assert [] == place.ledger.nodes()


@pytest.mark.redis
def test_a_second_agent_of_the_same_name_is_refused(place: Place) -> None:
    """Two would take each other's entries for their own; the first one goes on."""
    first = place.start("n1", folder="here")

    second = place.popen("n1", folder="there")

    assert 3 == second.wait(30)
    log = (place.folder / "agent.log").read_text()
    assert "error: node 'n1' is served already" in log
    assert "hint: give this one a name of its own: --name, or FARM_NODE_NAME" in log
    place.submit(job())
    place.until(lambda: place.states() == ["DONE"], "the first one does not serve")
    assert first.poll() is None


@pytest.mark.redis
def test_an_agent_says_what_it_serves_and_where(place: Place) -> None:
    """In its log and in the ledger; a relative store is one folder for everybody."""
    agent = place.start(FARM_STORE="store")
    root, address = place.store.root, place.url.rpartition("@")[2]

    log = place.until(lambda: _line(place, "serving"), "it does not say what it serves")
    assert log.endswith(f"serving cpu:0 as node n1 for redis://:***@{address}, store {root}")
    (slot,) = place.ledger.slots()
    assert (str(root), __version__) == (slot.store, slot.version)
    place.submit(job())
    place.until(lambda: place.states() == ["DONE"], "not completed")
    assert (1, None) == (len(place.profiles()), agent.poll())


def _line(place: Place, word: str) -> str:
    lines = (place.folder / "agent.log").read_text().splitlines()
    return next((each for each in lines if word in each), "")


def unserved(
    folder: Path,
    url: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = lambda _s: None,
) -> Agent:
    """An agent whose slot is not locked, so that it must not get as far as serving it."""
    served = Served(
        slot=SLOT,
        device=make.device(),
        card=make.card(),
        environment="default",
        flags=(),
        lock_dir=folder,
    )
    return Agent(
        [served],
        broker_url=url,
        store=str(folder),
        state=folder,
        spool=folder / "spool",
        ttl_s=2.0,
        drain_s=1.0,
        lifeline=None,
        clock=clock,
        sleep=sleep,
    )


def test_a_broker_that_is_away_at_the_start_is_said(tmp_path: Path) -> None:
    """Nothing is started for a broker that does not answer."""
    agent = unserved(tmp_path, "redis://127.0.0.1:1/0")

    with pytest.raises(Unreachable):
        agent.serve()

    assert not (tmp_path / "logs").exists()


@pytest.mark.redis
def test_a_name_that_our_last_agent_left_is_ours_at_once(redis_url: str, tmp_path: Path) -> None:
    """It died, since we have its devices; nobody waits until its name runs out."""
    ledger = Ledger(redis_url, ttl_s=600.0)
    assert ledger.lead(f"{make.card().node.node_id}#dead", what="node:n1")

    unserved(tmp_path, redis_url, sleep=lambda _s: pytest.fail("it waits"))._take_name()

    ledger.close()


@pytest.mark.redis
def test_a_name_that_another_agent_keeps_is_waited_for_and_refused(
    redis_url: str, tmp_path: Path
) -> None:
    """It falls back when a dead one lets it run out; what that one held is not touched before."""
    ledger = Ledger(redis_url, ttl_s=600.0)
    assert ledger.lead("another#1", what="node:n1")
    ticks = itertools.count(0.0, 0.3)

    with pytest.raises(NoResult, match="node 'n1' is served already"):
        unserved(tmp_path, redis_url, clock=lambda: next(ticks)).serve()

    assert [] == ledger.nodes()
    ledger.close()


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
