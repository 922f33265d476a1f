"""One device's worker against a real ledger and a real store: no entry lost, none counted twice."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import redis

from farm import schema
from farm.catalog import rows
from farm.errors import Unreachable
from farm.ledger import Claim, Entry, Held, Ledger, Record, Slot
from farm.schema import Failure, Order, Profile
from farm.store import LocalStore
from farm.store import place as place_of
from tests.workers import make
from tests.workers.scripted import Child, order
from workers.control import Control, Holding, Listen, Setup, Stop, pair
from workers.spool import Spool
from workers.tasks import SlotWorker
from workers.uploader import Uploader

pytestmark = pytest.mark.redis

OWNER = "n1/cpu:0#a"
SLOT = Slot(
    node="n1",
    slot="cpu:0",
    classes=["any"],
    device="cpu",
    system_id="5" * 32,
    system_class="test-cpu_1c",
)


class Place:
    """A ledger, a store, and what one slot worker needs; the agent's end of its line."""

    def __init__(self, folder: Path, url: str, store: LocalStore) -> None:
        self.folder, self.url, self.store = folder, url, store
        self.ledger = Ledger(url)
        self.ledger.setup()
        self.ledger.node("n1", state="up", slots=[SLOT])
        self.server = redis.Redis.from_url(url, decode_responses=True)
        self.agent, theirs = pair()
        self.theirs = Control(theirs)
        self.sent: list[dict[str, int]] = []
        self.ledgers = [self.ledger]
        self.uploader = Uploader(
            Spool(folder / "spool", place=place_of(str(store.root))),
            store=store,
            ledger=self.ledger,
        )
        store.probe()
        (folder / "locks").mkdir()

    def worker(
        self, child: Child | None = None, *, url: str = "", slot: str = "cpu:0"
    ) -> SlotWorker:
        setup = Setup(
            slot=msgspec.structs.replace(SLOT, slot=slot),
            owner=OWNER,
            device=msgspec.structs.replace(make.device(), slot=slot),
            card=make.card(),
            environment="default",
            broker=url or self.url,
            store=str(self.store.root),
            state=str(self.folder / "state"),
            spool=str(self.folder / "spool"),
            lock_dir=str(self.folder / "locks"),
            flags=[],
        )
        made = SlotWorker(setup, self.theirs, version="0.1.0", start=child or Child())
        self.ledgers.append(made._ledger)
        return made

    def submit(self, asked: Order | None = None, *, run: str = "r-1", spec: str = "") -> str:
        asked = asked or order()
        key = f"{asked.job.job_id}.{asked.repeat_set}"
        spec = spec or schema.encode(asked).decode()
        self.ledger.submit(run, [Entry(key=key, class_="any", spec=spec, again=True)])
        return key

    def serve(self, child: Child | None = None, **more: Any) -> None:
        """Answer one ticket, and send what it left in the spool."""
        self.ticket(self.worker(child, **more))

    def ticket(self, worker: SlotWorker) -> None:
        worker.ticket(self.sent.append)
        self.uploader.step()

    def spooled(self) -> list[str]:
        """The files of what waits in the spool."""
        return sorted(each.name for each in self.folder.glob("spool/*/[0-9]*/*"))

    def record(self) -> Record:
        (found,) = self.ledger.entries("r-1")
        return found

    def fence(self, key: str) -> str:
        return str(self.server.hget(f"farm:j:{key}", "fence"))

    def profiles(self) -> list[Profile]:
        return [each.profile for each in rows.read(self.store).rows]

    def said(self) -> list[Holding]:
        """What the agent has heard so far."""
        found = self.agent.receive() or []
        return [each for each in found if isinstance(each, Holding)]

    def kept(self) -> list[str]:
        """The repeats that lie in the state folder."""
        return sorted(each.parent.name for each in self.folder.rglob("record.json"))

    def take_over(self, key: str) -> Claim:
        """Let the lease run out and claim the entry for somebody else."""
        (lease,) = self.server.zrange("farm:lease", 0, -1)
        self.server.zadd("farm:lease", {lease: 0})
        assert [key] == self.ledger.tick().reaped
        found = self.ledger.claim(msgspec.structs.replace(SLOT, node="n2"), owner="n2/cpu:0#b")
        assert isinstance(found, Claim)
        return found


@pytest.fixture
def place(tmp_path: Path, redis_url: str, store: LocalStore) -> Iterator[Place]:
    made = Place(tmp_path, redis_url, store)
    yield made
    made.uploader.end(seconds=0)
    for each in made.ledgers:
        each.close()
    made.server.close()
    made.agent.close()
    made.theirs.close()


# ── a ticket ─────────────────────────────────────────────────────────────────────────────────────


def test_a_ticket_becomes_a_stored_profile_and_an_ended_entry(place: Place) -> None:
    """Claim, measure, artefacts, card, profile, finish."""
    key = place.submit(order(repeats=2))

    place.serve()

    record, (profile,) = place.record(), place.profiles()
    assert ("DONE", "ok", 1) == (record.state, record.cause, record.attempt)
    assert key.startswith(profile.job_id)
    assert ("ok", "r-1", OWNER, 2) == (
        profile.status,
        profile.run_id,
        profile.execution.worker,
        len(profile.repeats),
    )
    assert {"samples", "log"} == set(profile.artifacts)
    for each in profile.artifacts.values():
        place.store.get(each.key, sha256=each.sha256)
    assert place.store.get(f"cards/v1/{profile.card_id}.json")
    assert schema.decode(place.store.get(record.profile_key), Profile) == profile
    assert profile.fence > 0


def test_the_agent_hears_what_is_in_hand_and_how_far_it_is(place: Place) -> None:
    """From the claim to the end; an empty key says that nothing is."""
    key = place.submit()

    place.serve()

    first, *progress, last = place.said()
    assert (key, "") == (first.key, first.progress)
    assert [("load", 1), ("latency", 1)] == [
        (said["phase"], said["repeat"]) for said in (json.loads(each.progress) for each in progress)
    ]
    assert {first.fence} == {each.fence for each in progress}
    assert Holding() == last


def test_a_ticket_for_nothing_says_what_others_should_hear(place: Place) -> None:
    """The ticket was one too many here; the classes that need some get theirs."""
    place.serve()

    assert [{}] == place.sent
    assert [] == place.profiles()


def test_a_claim_sends_tickets_for_what_is_left(place: Place) -> None:
    for batch in (1, 2, 3):
        place.submit(order(batch=batch))

    place.serve()

    assert [{"any": 2}] == place.sent


def test_tickets_that_cannot_be_sent_cost_no_claim(place: Place) -> None:
    """They are hints; the tick makes up for them."""

    def away(_wanted: dict[str, int]) -> None:
        raise Unreachable("the broker takes no tickets")

    place.submit()

    place.worker().ticket(away)
    place.uploader.step()

    assert "DONE" == place.record().state


@pytest.mark.parametrize(("kind", "state"), [("oom", "FAILED"), ("model_error", "FAILED")])
def test_a_job_that_fails_is_an_answer(place: Place, kind: str, state: str) -> None:
    """Stored like any result; nobody tries it again."""
    place.submit()

    place.serve(Child(kind))

    (profile,) = place.profiles()
    assert (state, kind, 1) == (place.record().state, place.record().cause, len(place.profiles()))
    assert isinstance(profile.failure, Failure)
    assert ("failed", kind) == (profile.status, profile.failure.kind)


# ── our own trouble ──────────────────────────────────────────────────────────────────────────────


def test_trouble_of_ours_is_evidence_and_the_entry_goes_back(place: Place) -> None:
    """Counted; the next attempt takes over the repeats that ended."""
    place.submit(order(repeats=2))

    place.serve(Child("", "environment"))

    record, (profile,) = place.record(), place.profiles()
    assert ("READY", "environment", 1) == (record.state, record.cause, record.infra)
    assert ("infra", "") == (profile.status, record.profile_key)
    assert ["repeat-0"] == place.kept()

    second = Child()
    place.serve(second)

    assert [1] == [each.index for each in second.asked]
    assert ("DONE", 2) == (place.record().state, place.record().attempt)
    assert [] == place.kept()


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ("{}", "expected a document of schema 'farm.order/v1', got None"),
        ("[", "the document is not JSON"),
    ],
)
def test_an_order_that_cannot_be_read_goes_back_with_its_cause(
    place: Place, spec: str, cause: str
) -> None:
    """Whatever breaks here is ours and not the job's."""
    place.submit(spec=spec)

    place.serve()

    record = place.record()
    assert ("READY", cause, 1) == (record.state, record.cause, record.infra)
    assert [] == place.profiles()


def test_an_error_that_nobody_expected_goes_back_by_its_name(place: Place) -> None:
    def burst(_index: int) -> None:
        raise ZeroDivisionError("a bug")

    place.submit()

    place.serve(Child(during=burst))

    assert ("READY", "ZeroDivisionError", 1) == (
        place.record().state,
        place.record().cause,
        place.record().infra,
    )
    assert Holding() == place.said()[-1]


def test_a_store_that_is_away_costs_no_attempt(place: Place) -> None:
    """The profile waits on this disk, the device is free, and the entry ends once it is stored."""
    key = place.submit()
    away = place.store.root.with_name("away")
    place.store.root.rename(away)

    place.serve()

    record = place.record()
    assert ("UPLOADING", "ok", "n1/spool", 0) == (
        record.state,
        record.cause,
        record.owner,
        record.infra,
    )
    assert ["card.json", "log.txt.gz", "parcel.json", "profile.json", "samples.npz"] == (
        place.spooled()
    )
    assert not place.store.root.exists()

    away.rename(place.store.root)
    place.uploader.step()

    (profile,) = place.profiles()
    assert ("DONE", []) == (place.record().state, place.spooled())
    assert key.startswith(profile.job_id)
    assert schema.decode(place.store.get(place.record().profile_key), Profile) == profile


def test_what_a_job_needs_from_a_store_that_is_away_is_waited_for(place: Place) -> None:
    """Nothing has begun, so that is no try; the device takes other jobs meanwhile."""
    stored = die_after_put(place, order())
    away = place.store.root.with_name("away")
    place.store.root.rename(away)
    attempts = place.record().attempt

    place.serve()

    record = place.record()
    assert ("BACKOFF", attempts, 1) == (record.state, record.attempt, record.infra)
    assert record.cause.startswith("store: ")

    away.rename(place.store.root)
    place.server.zadd("farm:delay", {record.key: 0})
    place.ledger.tick()
    child = Child()
    place.serve(child)

    assert ([], "DONE", stored) == (
        child.asked,
        place.record().state,
        place.record().profile_key,
    )


@pytest.mark.parametrize("asks", ["same", "more", "another"])
def test_what_waits_in_our_spool_is_not_measured_again(place: Place, asks: str) -> None:
    """The lease ran out, or a new broker asks for it. One of less effort does not do, nor one of
    another run, whose report could not tell it from a profile of long ago."""
    place.submit()
    away = place.store.root.with_name("away")
    place.store.root.rename(away)
    place.serve()
    place.ledger.forget()
    again = 0 if asks == "same" else 2 if asks == "more" else 1
    run = "r-2" if asks == "another" else "r-1"
    place.submit(order(repeats=2) if asks == "more" else order(), run=run)
    child = Child()

    place.serve(child)

    (record,) = place.ledger.entries(run)
    assert (again, "UPLOADING") == (len(child.asked), record.state)
    away.rename(place.store.root)
    place.uploader.step()
    (record,) = place.ledger.entries(run)
    assert ("DONE", []) == (record.state, place.spooled())
    assert (2 if again else 1) == len(place.profiles())


def test_a_disk_that_takes_no_profile_gives_the_entry_back(place: Place) -> None:
    """Before a minute of the device is spent on what could not be kept."""
    place.submit()
    (place.folder / "spool").write_text("a file where the folder should be")

    place.serve()

    record = place.record()
    assert ("READY", "the spool takes no profile", 1) == (record.state, record.cause, record.infra)
    assert [] == place.kept()
    (place.folder / "spool").unlink()
    place.serve()
    assert "DONE" == place.record().state


def test_a_disk_that_fills_up_meanwhile_costs_no_repeat(place: Place) -> None:
    """They lie in the work folder, so the next attempt measures nothing anew."""
    place.submit()
    spool = place.folder / "spool"
    place.serve(Child(during=lambda _index: spool.write_text("a file where the folder should be")))

    record = place.record()
    assert ("READY", "the spool takes no profile", 1) == (record.state, record.cause, record.infra)
    assert ["repeat-0"] == place.kept()

    spool.unlink()
    second = Child()
    place.serve(second)

    assert ([], "DONE") == (second.asked, place.record().state)


def test_a_ledger_that_is_away_leaves_the_lease_to_run_out(place: Place) -> None:
    """Nobody can be told; the profile does not leave without a word to the ledger first."""
    place.submit()
    worker = place.worker(Child(during=lambda _index: _hang_up(worker)))

    place.ticket(worker)
    place.uploader.step()

    assert [] == place.profiles()
    assert "RUNNING" == place.record().state
    assert Holding() == place.said()[-1]


def _hang_up(worker: SlotWorker) -> None:
    """Point the worker's ledger at a port where nobody listens."""
    worker._ledger = Ledger("redis://127.0.0.1:1/0")


def test_a_ledger_that_is_away_at_the_claim_is_said(place: Place) -> None:
    with pytest.raises(Unreachable):
        place.serve(url="redis://127.0.0.1:1/0")


# ── leases ───────────────────────────────────────────────────────────────────────────────────────


def test_a_taken_lease_stores_nothing(place: Place) -> None:
    """Somebody else has the entry: what was measured here would count twice."""
    key = place.submit()
    other: list[Claim] = []

    place.serve(Child(during=lambda _index: other.append(place.take_over(key))))

    assert [] == place.profiles()
    assert ("RUNNING", "n2/cpu:0#b") == (place.record().state, place.record().owner)
    assert "DONE" == place.ledger.finish(other[0], state="DONE", cause="ok")


def test_a_forgotten_entry_is_measured_and_stored_all_the_same(place: Place) -> None:
    """Redis came back empty: `farm resume` will find the profile."""
    place.submit()

    place.serve(Child(during=lambda _index: place.ledger.forget()))

    assert ["ok"] == [each.status for each in place.profiles()]


def die_after_put(place: Place, asked: Order, *, slot: str = "cpu:0") -> str:
    """Leave things as a worker does that dies between the put and the finish."""
    key = place.submit(asked)
    place.serve(slot=slot)
    stored = place.record().profile_key
    place.submit(asked)
    claim = place.ledger.claim(SLOT, owner="n1/cpu:0#dead")
    assert isinstance(claim, Claim)
    place.ledger.beat([Held(key=key, fence=claim.fence, profile_key=stored)])
    place.ledger.release("n1/cpu:0#dead", cause="worker_lost", counted=True)
    return stored


def test_a_profile_that_a_dead_attempt_put_is_found_and_not_measured_again(place: Place) -> None:
    """One profile, one end; the entry names the key that was promised before the put."""
    stored = die_after_put(place, order())
    child = Child()

    place.serve(child)

    assert [] == child.asked
    assert ("DONE", "ok", stored) == (
        place.record().state,
        place.record().cause,
        place.record().profile_key,
    )
    assert 1 == len(place.profiles())


def test_repeats_of_a_profile_that_was_found_are_forgotten(place: Place) -> None:
    """They are counted there; a later attempt must not count them again."""
    asked = order(repeats=2)
    place.submit(asked)
    place.serve(Child("", "environment"))
    place.ledger.withdraw("r-1")
    die_after_put(place, asked, slot="cpu:1")
    assert ["repeat-0"] == place.kept()

    place.serve()

    assert [] == place.kept()
    assert [] == list((place.folder / "state/work").iterdir())


@pytest.mark.parametrize("damage", ["gone", "bytes"])
def test_a_promised_profile_that_is_not_there_is_measured(place: Place, damage: str) -> None:
    """The attempt died before the put, or the object was damaged since."""
    stored = place.store.root / die_after_put(place, order())
    data = stored.read_bytes()
    stored.unlink()
    if damage == "bytes":
        stored.write_bytes(data[:-5])
    child = Child()

    place.serve(child)

    assert (1, "DONE") == (len(child.asked), place.record().state)


# ── what one attempt leaves to the next ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "slot", "measured"),
    [
        ({}, "cpu:0", 1),
        ({"budget_ms": 2000}, "cpu:0", 2),
        ({}, "cpu:1", 2),
    ],
)
def test_repeats_are_taken_over_by_the_same_slot_for_the_same_effort(
    place: Place, changes: dict[str, int], slot: str, measured: int
) -> None:
    """What was measured on other cores, or shorter than asked, is not what this attempt says."""
    asked = order(repeats=2)
    place.submit(asked)
    place.serve(Child("", "environment"))
    place.ledger.withdraw("r-1")
    effort = msgspec.structs.replace(asked.effort, **changes)
    place.submit(msgspec.structs.replace(asked, effort=effort))
    child = Child()

    place.serve(child, slot=slot)

    assert measured == len(child.asked)
    assert "DONE" == place.record().state


# ── stops ────────────────────────────────────────────────────────────────────────────────────────


def stopped(place: Place, message: Callable[[str], Stop]) -> Child:
    """Serve with a child in whose middle the agent says something, told the fence in hand."""
    child = Child()
    worker = place.worker(child)

    def say(_index: int) -> None:
        worker.obey(message(place.fence(place.record().key)))

    child.during = say
    place.ticket(worker)
    return child


def test_a_slot_that_is_given_back_gives_its_entry_back_uncounted(place: Place) -> None:
    """A drain that could not wait is nobody's fault."""
    place.submit(order(repeats=3))

    child = stopped(place, lambda _fence: Stop(why="release"))

    record = place.record()
    assert ("READY", "released", 0, "") == (record.state, record.cause, record.infra, record.owner)
    assert (1, []) == (len(child.asked), place.profiles())


def test_a_stop_for_a_lost_lease_says_nothing_to_the_ledger(place: Place) -> None:
    """The entry is somebody else's now."""
    key = place.submit()

    def lose(fence: str) -> Stop:
        place.take_over(key)
        return Stop(why="lost", fence=fence)

    stopped(place, lose)

    assert ("RUNNING", "n2/cpu:0#b", []) == (
        place.record().state,
        place.record().owner,
        place.profiles(),
    )


@pytest.mark.parametrize("why", ["lost", "cancel"])
def test_a_stop_for_an_entry_no_longer_in_hand_is_old_news(
    place: Place, why: Literal["lost", "cancel"]
) -> None:
    """Another fence, no entry at all, or a message of another kind."""
    place.submit()

    stopped(place, lambda _fence: Stop(why=why, fence="17"))
    place.worker().obey(Stop(why="release"))
    place.worker().obey(Listen(fence="17"))

    assert "DONE" == place.record().state


def test_a_stop_does_not_stop_the_next_entry(place: Place) -> None:
    """The request is used up, also one that came twice."""
    place.submit()
    child = Child()
    worker = place.worker(child)

    def press(_index: int) -> None:
        for _ in range(2 if len(child.asked) == 1 else 0):
            worker.obey(Stop(why="release"))

    child.during = press
    place.ticket(worker)
    place.ticket(worker)

    assert ("DONE", 2) == (place.record().state, place.record().attempt)


def test_a_stop_that_comes_after_the_last_child_is_too_late(place: Place) -> None:
    """What it found is stored and the entry has ended."""
    place.submit()
    worker = place.worker()
    write = worker._spool.write

    def late(*words: Any) -> str:
        worker.obey(Stop(why="release"))
        return write(*words)

    worker._spool.write = late  # type: ignore[method-assign]
    place.ticket(worker)

    assert ("DONE", 1) == (place.record().state, len(place.profiles()))


# ── a job that nobody wants any more ─────────────────────────────────────────────────────────────


def during(place: Place, act: Callable[[SlotWorker, int], None], child: Child) -> None:
    """Serve with a child in whose middle something happens to its worker."""
    worker = place.worker(child)
    child.during = lambda index: act(worker, index)
    place.ticket(worker)


def test_a_cancelled_job_ends_without_a_profile_and_leaves_nothing(place: Place) -> None:
    """Its child is stopped; neither a repeat nor a file of it stays."""
    key = place.submit(order(repeats=3))

    def cancel(fence: str) -> Stop:
        assert ["asked"] == place.ledger.cancel("r-1", [key], running=True)
        return Stop(why="cancel", fence=fence)

    child = stopped(place, cancel)

    record = place.record()
    assert ("CANCELLED", "cancelled", 0, "") == (
        record.state,
        record.cause,
        record.infra,
        record.owner,
    )
    assert (1, []) == (len(child.asked), place.profiles())
    assert [] == list((place.folder / "state/work").iterdir())
    assert Holding() == place.said()[-1]


def test_a_job_that_is_wanted_again_by_then_goes_back_uncounted(place: Place) -> None:
    """Another run asked while the child was ending: the repeats that ended count for it."""
    key = place.submit(order(repeats=2))

    def change_of_mind(worker: SlotWorker, index: int) -> None:
        if index == 1:
            place.ledger.cancel("r-1", [key], running=True)
            worker.obey(Stop(why="cancel", fence=place.fence(key)))
            place.submit(order(repeats=2), run="r-2")

    during(place, change_of_mind, Child())

    (record,) = place.ledger.entries("r-2")
    assert ("READY", 0, ["repeat-0"]) == (record.state, record.infra, place.kept())
    second = Child()
    place.serve(second)
    assert [1] == [each.index for each in second.asked]
    assert ["DONE"] == [each.state for each in place.ledger.entries("r-2")]


@pytest.mark.parametrize("kind", ["environment", ""])
def test_what_would_be_tried_again_is_forgotten_once_it_is_cancelled(
    place: Place, kind: str
) -> None:
    """An attempt that failed for us, or a slot that is given back: the ledger says how it ends."""
    key = place.submit(order(repeats=2))

    def cancel(worker: SlotWorker, index: int) -> None:
        if index == 1:
            place.ledger.cancel("r-1", [key], running=True)
            if not kind:
                worker.obey(Stop(why="release"))

    during(place, cancel, Child("", kind))

    assert ("CANCELLED", []) == (place.record().state, place.kept())


def test_a_cancel_that_comes_after_the_last_child_is_too_late(place: Place) -> None:
    """The result is there and counts."""
    key = place.submit()
    worker = place.worker()
    write = worker._spool.write

    def late(*words: Any) -> str:
        place.ledger.cancel("r-1", [key], running=True)
        worker.obey(Stop(why="cancel", fence=place.fence(key)))
        return write(*words)

    worker._spool.write = late  # type: ignore[method-assign]
    place.ticket(worker)

    assert ("DONE", 1) == (place.record().state, len(place.profiles()))


def test_a_cancel_while_the_ledger_is_away_leaves_the_lease_to_run_out(place: Place) -> None:
    """Then the entry is cancelled by its flag; whatever comes later starts from nothing."""
    key = place.submit()

    def cancel(worker: SlotWorker, _index: int) -> None:
        place.ledger.cancel("r-1", [key], running=True)
        worker.obey(Stop(why="cancel", fence=place.fence(key)))
        _hang_up(worker)

    during(place, cancel, Child())

    assert ("RUNNING", Holding()) == (place.record().state, place.said()[-1])
    assert [] == list((place.folder / "state/work").iterdir())


# ── its log ──────────────────────────────────────────────────────────────────────────────────────


def test_who_listens_gets_what_the_child_prints(place: Place) -> None:
    """Also a last line without an end, and all of it before the entry ends."""
    key, told = place.submit(), []
    worker = place.worker(Child(says=b"one\ntwo", during=lambda _index: listen()))
    finish = worker._ledger.finish

    def listen() -> None:
        worker.obey(Listen(fence=place.fence(key)))

    def end(*words: Any, **more: Any) -> str:
        told.extend(line for _id, line in place.ledger.log(key))
        return finish(*words, **more)

    worker._ledger.finish = end  # type: ignore[method-assign]
    place.ticket(worker)

    assert ("DONE", ["one", "two"]) == (place.record().state, told)


def test_who_asks_for_another_attempt_hears_nothing(place: Place) -> None:
    """Nobody listens to this one, so nothing of it is handed on."""
    key = place.submit()

    during(place, lambda worker, _index: worker.obey(Listen(fence="17")), Child(says=b"one\n"))

    assert ("DONE", []) == (place.record().state, place.ledger.log(key))


def test_a_ledger_that_takes_no_log_costs_the_job_nothing(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    key = place.submit()

    def away(key: str, lines: Sequence[str]) -> None:
        raise Unreachable("the broker cannot be reached")

    def listen(worker: SlotWorker, _index: int) -> None:
        worker._ledger.put_log = away  # type: ignore[method-assign]
        worker.obey(Listen(fence=place.fence(key)))

    during(place, listen, Child(says=b"one\n"))

    assert ("DONE", []) == (place.record().state, place.ledger.log(key))
    assert 1 == caplog.text.count("the log is silent")
