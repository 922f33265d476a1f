"""The end of a run: the store has the last word, and what was given up says why."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import redis

from farm import schema
from farm.catalog import rows
from farm.ledger import Claim, Ledger
from farm.report import making
from farm.report.record import bad
from farm.scheduler import check_end
from farm.schema import Failure, Job, Profile
from farm.store import job_key
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

    def __init__(self, store, ledger: Ledger, server, *, repeat_set="base") -> None:
        self.store, self.ledger, self.server = store, ledger, server
        self.jobs = [make.job(), make.job(batch=8)]
        self.expected = make.manifest(self.jobs, repeat_set=repeat_set)
        for each in self.jobs:
            store.put_new(job_key(each.job_id), schema.encode(each))
        enqueue(self.expected, self.jobs, ledger)

    def claim(self) -> Claim:
        found = self.ledger.claim(make.slot(), owner=OWNER)
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
            now=NOW,
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
    assert ("laptop", "2026-11-30T12:00:00.000Z") == (
        profile.execution.node,
        profile.execution.started_at,
    )
    assert [dead] == missing(run.expected, run.store, [make.slot()])


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


def _infra(store) -> list[Failure]:
    found: list[Profile] = [each.profile for each in rows.read(store).rows]
    return [each.failure for each in found if each.status == "infra"]
