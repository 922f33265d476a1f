"""The end of a run: the store has the last word, and what was given up says why."""

import logging
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
import pytest
import redis

from farm import schema
from farm import store as store_module
from farm.catalog import rows
from farm.errors import Unreachable
from farm.ledger import Claim, Ledger
from farm.report import making
from farm.report.record import bad
from farm.scheduler import Done, Scheduler, check_end
from farm.schema import Failure, Job, Profile
from farm.store import LocalStore, job_key, manifest_key
from farm.submit import enqueue, missing
from tests.farm import make

pytestmark = pytest.mark.redis

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
OWNER = "laptop/cpu:0#a"


@pytest.fixture
def ledger(redis_url: str) -> Iterator[Ledger]:
    made = Ledger(redis_url)
    made.setup()
    yield made
    made.close()


class Run:
    """A run of two jobs, published and enqueued."""

    def __init__(
        self, store, ledger: Ledger, server, *, repeat_set="base", jobs=None, here=False
    ) -> None:
        self.store, self.ledger, self.server = store, ledger, server
        self.jobs = jobs or [make.job(), make.job(batch=8)]
        self.slot = make.slot()
        self.expected = make.manifest(self.jobs, repeat_set=repeat_set)
        make.put(store, self.expected)
        for each in self.jobs:
            store.put_new(job_key(each.job_id), schema.encode(each))
        enqueue(self.expected, self.jobs, ledger, here=here)

    def claim(self) -> Claim:
        found = self.ledger.claim(self.slot, owner=OWNER)
        assert isinstance(found, Claim)
        return found

    def end(self, *, put: bool = True, **made) -> None:
        """Claim an entry, store what it brought, and end it."""
        claim = self.claim()
        (job,) = (each for each in self.jobs if claim.key.startswith(each.job_id))
        if put:
            make.put(self.store, make.profile(job, fence=int(claim.fence), **made))
        state = "FAILED" if made.get("status") == "failed" else "DONE"
        self.ledger.finish(claim, state=state, cause="ok")

    def die(self, cause="environment") -> Job:
        """Give one entry back until the ledger gives it up."""
        claim = self.claim()
        state = self.ledger.finish(claim, state="RETRY", cause=cause)
        while state != "DEAD":
            if state == "BACKOFF":
                self.server.zadd("farm:delay", {claim.key: 0})
                self.ledger.tick()
            again = self.claim()
            if again.key != claim.key:  # the other entry came first
                self.ledger.finish(again, state="RETRY", cause="released", counted=False)
                continue
            claim = again
            state = self.ledger.finish(claim, state="RETRY", cause=cause)
        return next(each for each in self.jobs if claim.key.startswith(each.job_id))

    def check(self, *, resubmitted=0, slots=None) -> int:
        return check_end(
            self.expected,
            store=self.store,
            ledger=self.ledger,
            slots=[make.slot()] if slots is None else slots,
            resubmitted=resubmitted,
        )

    def states(self) -> list[str]:
        return [each.state for each in self.ledger.entries(make.RUN)]


@pytest.fixture
def server(redis_url: str) -> Iterator["redis.Redis[str]"]:
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    yield client
    client.close()


@pytest.fixture
def run(store, ledger, server) -> Run:
    return Run(store, ledger, server)


def test_a_run_whose_answers_are_all_there_is_closed(run):
    """Nothing is submitted again and nothing is stored."""
    run.end()
    run.end(status="failed", failure=make.fault("crashed"))

    assert 0 == run.check()
    assert ["DONE", "FAILED"] == sorted(run.states())
    assert 2 == len(rows.read(run.store).rows)


def test_what_the_store_lacks_is_submitted_again_at_most_twice(run):
    """The ledger said DONE, the store has nothing: a profile was lost on its way."""
    run.end()
    run.end(put=False)

    for resubmitted in (0, 1):
        assert 1 == run.check(resubmitted=resubmitted)
        assert ["DONE", "READY"] == sorted(run.states())
        run.end(put=False)

    assert 0 == run.check(resubmitted=2)
    assert ["DONE", "DONE"] == run.states()


def test_what_no_slot_takes_any_more_is_not_submitted_again(run):
    """It would wait for ever, and the run with it."""
    run.end(put=False)
    run.end(put=False)

    assert 0 == run.check(slots=[make.slot(classes=["hw.h100"])])
    assert ["DONE", "DONE"] == run.states()


def test_a_dead_entry_becomes_a_stored_attempt_with_its_cause(run):
    """A report can say why the cell is empty; nobody has measured anything."""
    run.end()
    dead = run.die("environment")

    assert 0 == run.check()

    (row,) = (each for each in rows.read(run.store).rows if each.profile.status == "infra")
    profile = row.profile
    assert isinstance(profile.failure, Failure)
    assert (dead.job_id, make.RUN, make.SYSTEM, 4) == (
        profile.job_id,
        profile.run_id,
        profile.system_id,
        profile.attempt,
    )
    assert ("environment", "given up after 4 attempts: environment", True) == (
        profile.failure.kind,
        profile.failure.message,
        profile.failure.retryable,
    )
    assert "laptop" == profile.execution.node
    assert [dead] == missing(run.expected, run.store, [make.slot()])


def test_an_end_without_an_answer_is_stored_with_its_own_time(run):
    """Not that of the check, which may come a night later; so a second check adds nothing."""
    run.end()
    dead = run.die()
    (record,) = run.ledger.records([f"{dead.job_id}.base"])

    run.check()
    before = rows.read(run.store).rows
    run.check()

    assert before == rows.read(run.store).rows
    (execution,) = (each.profile.execution for each in before if each.profile.status == "infra")
    at = datetime.fromtimestamp(record.changed_ms / 1000, UTC)
    assert (at, at) == tuple(
        datetime.fromisoformat(each) for each in (execution.started_at, execution.finished_at)
    )


def test_a_cancelled_entry_is_stored_as_such_and_not_sent_again(run):
    """Nobody has failed, and nobody wants it."""
    run.end()
    run.ledger.cancel(make.RUN, run.ledger.keys(make.RUN), running=False)

    assert 0 == run.check()

    assert ["CANCELLED", "DONE"] == sorted(run.states())
    (profile,) = (
        each.profile for each in rows.read(run.store).rows if each.profile.status == "cancelled"
    )
    assert (make.RUN, False, msgspec.UNSET) == (
        profile.run_id,
        bool(profile.repeats),
        profile.failure,
    )


def test_a_dead_entry_is_stored_under_the_system_of_a_slot_that_takes_it(store, ledger, server):
    """A node has slots of several systems, and the others would never have had it."""
    gpu = make.job(device="h100")
    run = Run(store, ledger, server, jobs=[gpu])
    run.slot = make.slot(make.OTHER_SYSTEM, classes=["hw.h100"], slot="gpu:0")
    run.die()

    run.check(slots=[make.slot(), run.slot])

    (row,) = rows.read(store).rows
    assert make.OTHER_SYSTEM == row.profile.system_id


@pytest.mark.parametrize(
    ("cause", "kind"),
    [("worker_lost", "worker_lost"), ("store: no space", "store"), ("KeyError", "worker_lost")],
)
def test_a_cause_without_a_kind_is_a_lost_worker(run, cause, kind):
    """The words of the cause are kept either way."""
    run.end()
    run.die(cause)
    run.check()

    (failure,) = _infra(run.store)
    assert (kind, True) == (failure.kind, failure.message.endswith(cause))


def test_the_others_are_submitted_again_before_a_dead_one_is_stored(run):
    """A run is closed once; the attempt is stored by the check that closes it, and only then."""
    run.die()
    run.end(put=False)

    assert 1 == run.check()
    assert [] == _infra(run.store)
    run.end()
    assert 0 == run.check(resubmitted=1)

    assert 1 == len(_infra(run.store))


def test_a_dead_entry_that_somebody_else_answered_is_no_gap(run):
    """Another run measured the same job meanwhile."""
    run.end()
    dead = run.die()
    make.put(run.store, make.profile(dead, run_id="r-other"))

    assert 0 == run.check()
    assert [] == _infra(run.store)


def test_a_dead_entry_of_a_node_that_left_has_no_system(run):
    """Nobody can say under what it was tried; it is stored all the same and can be asked for."""
    run.end()
    run.die()

    run.check(slots=[])

    (row,) = (each for each in rows.read(run.store).rows if each.profile.status == "infra")
    assert ("", "") == (row.profile.system_id, row.profile.card_id)


def test_a_forced_run_looks_for_its_own_entries(store, ledger, server):
    run = Run(store, ledger, server, repeat_set=make.RUN)
    run.end(repeat_set=make.RUN)
    run.die()

    assert 0 == run.check()

    assert 1 == len(_infra(store))


def test_the_report_of_a_run_with_a_dead_entry_is_bad(run):
    """A lost node ends a command with 1 (rule 11)."""
    run.end()
    run.die()
    run.check()

    report = making.made(run.store, run.expected, now=NOW)

    assert (1, False) == (len(bad(report)), report.complete)
    assert "given up after 4 attempts" in bad(report)[0].reason


# ── the scheduler ────────────────────────────────────────────────────────────────────────────────


class Bell:
    """Takes tickets, and counts them by class."""

    def __init__(self) -> None:
        self.rung: Counter[str] = Counter()

    def send_task(self, _name: str, *, args: list[str], queue: str) -> None:
        assert [queue] == args
        self.rung[queue] += 1


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def scheduler(run, bell) -> Scheduler:
    """A scheduler on a farm whose node is up."""
    run.ledger.node("laptop", state="up", slots=[make.slot()])
    return Scheduler(run.ledger, bell, run.store)


def test_a_run_in_flight_is_left_alone(run, scheduler):
    run.end()

    assert [] == scheduler.step()
    assert [make.RUN] == run.ledger.open_runs()


def test_a_run_that_has_ended_is_closed_once(run, scheduler):
    run.end()
    run.end(status="failed", failure=make.fault("crashed"))

    assert [Done("closed", make.RUN, 2, "")] == scheduler.step()
    assert ([], []) == (scheduler.step(), run.ledger.open_runs())


def test_what_a_run_lacks_is_sent_again_at_most_twice(run, scheduler, bell):
    """Three profiles of one job are lost; the second job has one."""
    run.end()
    events = []
    for _ in range(3):
        run.end(put=False)
        events += scheduler.step()

    assert [("resubmitted", 1), ("resubmitted", 1), ("closed", 2)] == [
        (each.event, each.jobs) for each in events
    ]
    assert 2 == run.ledger.resubmitted(make.RUN)
    assert [] == scheduler.step()


def test_a_scheduler_rings_for_what_is_ready(run, scheduler, bell):
    """A farm without a node still says what waits, and what is sent again rings as well."""
    scheduler.step()
    assert {"hw.cpu": 2} == bell.rung
    bell.rung.clear()
    run.end(put=False)
    run.end()

    scheduler.step()

    assert {"hw.cpu": 1} == bell.rung


def test_what_was_given_up_or_cancelled_leaves_one_profile_each(run, scheduler):
    """Also if the run is opened and closed again; only `farm resume` sends them anew."""
    dead = run.die()
    run.ledger.cancel(make.RUN, run.ledger.keys(make.RUN), running=False)
    assert ["closed"] == [each.event for each in scheduler.step()]

    more = make.job(batch=2)
    run.jobs.append(more)
    enqueue(make.manifest(run.jobs), [more], run.ledger)
    run.end()
    assert ["closed"] == [each.event for each in scheduler.step()]

    stored = Counter(each.profile.status for each in rows.read(run.store).rows)
    assert {"infra": 1, "cancelled": 1, "ok": 1} == stored
    assert ["CANCELLED", "DEAD", "DONE"] == sorted(run.states())
    assert dead in missing(run.expected, run.store, [make.slot()])


@pytest.mark.parametrize("damage", ["gone", "broken", "job gone"])
def test_a_run_whose_documents_are_damaged_is_said_and_closed(store, ledger, bell, damage):
    """Nobody can say what it lacks; it must not hold up the others, nor be said every second."""
    store.probe()
    job = make.job()
    expected = make.manifest([job])
    if damage != "job gone":
        store.put_new(job_key(job.job_id), schema.encode(job))
    if damage != "gone":
        store.put_new(
            manifest_key(make.RUN), b"{}" if damage == "broken" else schema.encode(expected)
        )
    enqueue(expected, [job], ledger)
    ledger.finish(ledger.claim(make.slot(), owner=OWNER), state="DONE", cause="ok")
    scheduler = Scheduler(ledger, bell, store)

    (done,) = scheduler.step()

    assert ("damaged", make.RUN, 0) == (done.event, done.run_id, done.jobs)
    assert done.why
    left = [make.RUN] if damage == "gone" else []  # the store may be another one just now
    assert ([], left) == (scheduler.step(), ledger.open_runs())


def test_a_store_that_is_not_mounted_closes_no_run(store, ledger, bell, caplog):
    """Its folder is empty for a while: the run waits, and what happened is said once."""
    job = make.job()
    enqueue(make.manifest([job]), [job], ledger)
    ledger.finish(ledger.claim(make.slot(), owner=OWNER), state="DONE", cause="ok")
    scheduler = Scheduler(ledger, bell, store)

    assert ([], []) == (scheduler.step(), scheduler.step())

    assert [make.RUN] == ledger.open_runs()
    assert 1 == caplog.text.count("the store is not there")


def test_a_damaged_run_holds_up_no_other(run, scheduler):
    run.store.probe()
    enqueue(make.manifest(run.jobs, run_id="r-lost"), run.jobs, run.ledger)
    run.end()
    run.end()

    assert {make.RUN: "closed", "r-lost": "damaged"} == {
        each.run_id: each.event for each in scheduler.step()
    }


def test_a_run_that_its_command_follows_is_not_touched(store, ledger, server, bell):
    """`farm run` checks its own end; two who do would send twice."""
    run = Run(store, ledger, server, here=True)
    run.end(put=False)
    run.end()

    assert [] == Scheduler(ledger, bell, store).step()
    assert ["DONE", "DONE"] == run.states()


def test_of_two_schedulers_one_leads_until_it_is_silent(run, scheduler, bell, server):
    second = Scheduler(run.ledger, bell, run.store)
    scheduler.step()
    first = run.ledger.leader("scheduler")
    run.end()
    run.end()

    assert [] == second.step()
    assert first == run.ledger.leader("scheduler")
    expire(server)  # the first one says nothing for a third of a lease
    assert ["closed"] == [each.event for each in second.step()]
    assert first != run.ledger.leader("scheduler")
    assert [] == scheduler.step()


def test_a_lead_lasts_a_third_of_a_lease(run, scheduler, server):
    """Without that a scheduler that died would lead for ever."""
    scheduler.step()

    assert 0 < server.pttl("farm:lead:scheduler") <= 1000 * run.ledger.ttl_s / 3


def expire(server: redis.Redis) -> None:
    server.delete("farm:lead:scheduler", "farm:lead:tick")


class Away(Ledger):
    """A ledger whose broker may be away."""

    is_away = False

    def lead(self, who, *, what="tick"):
        if self.is_away:
            raise Unreachable("the broker cannot be reached", why="connection refused")
        return super().lead(who, what=what)


def test_a_broker_that_is_away_is_waited_out_and_said_once(redis_url, store, server, bell, caplog):
    """Each time that it goes away, not each second."""
    ledger = Away(redis_url)
    run = Run(store, ledger, server)
    scheduler = Scheduler(ledger, bell, store)
    run.end()
    run.end()

    with caplog.at_level(logging.WARNING):
        ledger.is_away = True
        assert [[], []] == [scheduler.step(), scheduler.step()]
        ledger.is_away = False
        assert ["closed"] == [each.event for each in scheduler.step()]
        ledger.is_away = True
        assert [] == scheduler.step()

    said = "waiting: the broker cannot be reached: connection refused"
    assert [said, said] == caplog.messages
    ledger.close()


class Shut(LocalStore):
    """A store that may not answer."""

    is_shut = False

    def list(self, prefix="", *, after=""):
        if self.is_shut:
            raise store_module.Unreachable("the store does not answer", key=prefix, store="x")
        return super().list(prefix, after=after)


def test_a_store_that_is_away_is_waited_out(ledger, server, bell, tmp_path):
    """The run stays open: nobody knows yet what it lacks."""
    store = Shut(tmp_path / "store", fsync=False)
    run = Run(store, ledger, server)
    scheduler = Scheduler(ledger, bell, store)
    run.end()
    run.end()

    store.is_shut = True
    assert ([], [make.RUN]) == (scheduler.step(), ledger.open_runs())
    store.is_shut = False
    assert ["closed"] == [each.event for each in scheduler.step()]


def _infra(store) -> list[Failure]:
    found: list[Profile] = [each.profile for each in rows.read(store).rows]
    return [each.failure for each in found if each.status == "infra"]


# ── the catalogue ────────────────────────────────────────────────────────────────────────────────


def test_what_has_ended_is_told_to_whoever_keeps_the_catalogue(run, bell):
    """How many jobs have, and that a run was closed."""
    told = []

    class Takes:
        def look(self, *, closed: bool, ended: int) -> None:
            told.append((closed, ended))

        def end(self) -> None:
            told.append("end")

    scheduler = Scheduler(run.ledger, bell, run.store, compaction=Takes())

    run.end()
    scheduler.step()
    run.end()
    scheduler.step()
    scheduler.step()
    scheduler.end()

    assert [(False, 1), (True, 2), (False, 0), "end"] == told
