"""What needs the store and the ledger at once: the check at the end of every run.

When the ledger says that a run has ended, the store has the last word: what is missing there is
submitted again, at most twice; what was given up or cancelled becomes a stored attempt with its
cause, so that a report can say why a cell is empty.
"""

import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import UNSET

from farm import __version__, broker, identity, schema
from farm.compaction import Compaction
from farm.errors import Bad, Unreachable
from farm.ledger import ENDS, Ledger, Record, Slot
from farm.queues import takeable, takers
from farm.report import words
from farm.runs import stamp
from farm.schema import Device, Execution, Failure, Job, Manifest, Profile, Status
from farm.store import NotFound, Store, check_there, manifest_key, profile_key
from farm.submit import enqueue, missing

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)

RESUBMISSIONS: Final = 2


class Done(NamedTuple):
    """What was done about a run, for whoever watches the scheduler."""

    event: Literal["resubmitted", "closed", "damaged"]
    run_id: str
    jobs: int
    why: str


class Scheduler:
    """Looks after the runs that somebody submitted; of several that run, one leads.

    It keeps the ledger's clock going as every agent does, so that a farm without a node still
    reaps leases and tells people what waits. compaction: brings the catalogue up to date.
    """

    def __init__(
        self, ledger: Ledger, app: "Celery", store: Store, *, compaction: Compaction | None = None
    ) -> None:
        self._ledger, self._app, self._store = ledger, app, store
        self._compaction = compaction
        self._ended = 0
        self._me = f"scheduler-{os.getpid()}-{secrets.token_hex(4)}"
        self._away = ""
        self._told: set[str] = set()

    def step(self) -> list[Done]:
        """Do what is due now and return it; whoever calls it does so about once a second.

        A broker or a store that is away is waited out, and said once.
        """
        try:
            if self._ledger.lead(self._me):
                broker.send_tickets(self._app, self._ledger.tick().tickets)
            done = []
            if self._ledger.lead(self._me, what="scheduler"):
                self._ended = 0
                for run_id in self._ledger.open_runs():
                    done += self._look(run_id)
                if self._compaction is not None:
                    closed = any(each.event == "closed" for each in done)
                    self._compaction.look(closed=closed, ended=self._ended)
        except Unreachable as error:
            if str(error) != self._away:
                self._away = str(error)
                log.warning("waiting: %s", error)
            return []
        self._away = ""
        return done

    def end(self) -> None:
        """Leave nothing behind that runs."""
        if self._compaction is not None:
            self._compaction.end()

    def _look(self, run_id: str) -> list[Done]:
        counts = self._ledger.counts(run_id)
        self._ended += sum(count for state, count in counts.items() if state in ENDS)
        if any(count and state not in ENDS for state, count in counts.items()):
            return []
        try:
            expected = schema.decode(self._store.get(manifest_key(run_id)), Manifest)
            again = check_end(
                expected,
                store=self._store,
                ledger=self._ledger,
                slots=self._ledger.slots(),
                resubmitted=self._ledger.resubmitted(run_id),
            )
        except NotFound as error:  # the store may be another one just now, so the run stays open
            check_there(self._store)
            return self._say_once(run_id, str(error))
        except Bad as error:  # nobody can say what is missing
            self._ledger.close_run(run_id)
            return [Done("damaged", run_id, 0, str(error))]
        if again:
            self._ledger.note_resubmission(run_id)
            broker.send_tickets(self._app, self._ledger.tick().tickets)
            return [Done("resubmitted", run_id, again, "the store lacks their profiles")]
        self._ledger.close_run(run_id)
        return [Done("closed", run_id, sum(counts.values()), "")]

    def _say_once(self, run_id: str, why: str) -> list[Done]:
        if run_id in self._told:
            return []
        self._told.add(run_id)
        return [Done("damaged", run_id, 0, why)]


def check_end(
    expected: Manifest,
    *,
    store: Store,
    ledger: Ledger,
    slots: Sequence[Slot],
    resubmitted: int,
    here: bool = False,
) -> int:
    """Close a run that the ledger calls ended; return how many jobs were submitted again.

    Entries that are DEAD or CANCELLED are stored as attempts without an answer; whatever else the
    store lacks goes into the queue again if a slot takes it, unless that has happened twice. here:
    the caller follows the run itself.
    """
    lacking = missing(expected, store, slots)
    ended = {each.key: each for each in ledger.entries(expected.run_id)}
    without = _without_answer(expected, lacking, ended)
    again = takeable([job for job in lacking if job.job_id not in without], slots)
    if again and resubmitted < RESUBMISSIONS:
        enqueue(expected, again, ledger, here=here)
        return len(again)
    for job in lacking:
        record = without.get(job.job_id)
        if record is not None:
            _store_end(expected, job, record, store=store, slots=slots)
    return 0


def _without_answer(
    expected: Manifest, lacking: Sequence[Job], ended: Mapping[str, Record]
) -> dict[str, Record]:
    """Return by job the records that ended without an answer, which nobody is to try again."""
    found = {}
    for job in lacking:
        record = ended.get(f"{job.job_id}.{expected.repeat_set}")
        if record is not None and record.state in ("DEAD", "CANCELLED"):
            found[job.job_id] = record
    return found


def _store_end(
    expected: Manifest,
    job: Job,
    record: Record,
    *,
    store: Store,
    slots: Sequence[Slot],
) -> None:
    """Store why an entry ended without an answer, under the system of the slot that had it last.

    It bears the time of that end, so a run that is checked again stores the same bytes.
    """
    there = [each for each in slots if each.node == record.node]
    slot = next((each for each in there if takers(job, [each])), None)
    status: Status = "cancelled" if record.state == "CANCELLED" else "infra"
    execution = _nothing_ran(expected, job, record)
    profile = Profile(
        job_id=job.job_id,
        cell_id=job.cell_id,
        workload_id=job.workload_id,
        protocol_id=job.protocol_id,
        system_id=slot.system_id if slot else "",
        system_class=slot.system_class if slot else "",
        card_id="",
        run_id=expected.run_id,
        repeat_set=expected.repeat_set,
        attempt=record.attempt,
        fence=0,
        job=job,
        status=status,
        failure=_given_up(record) if status == "infra" else UNSET,
        execution=execution,
        null_reasons={"execution.queue_s": "not_probed"},
    )
    data = schema.encode(profile)
    day = execution.finished_at[:10]
    store.put_new(profile_key(day, job.job_id, identity.content_id(data)), data)


def _given_up(record: Record) -> Failure:
    kind = record.cause.partition(":")[0]
    return Failure(
        kind=kind if kind in words.FAILURES else "worker_lost",
        phase="unknown",
        message=f"given up after {words.count(record.attempt, 'attempt')}: {record.cause}",
        hint="look at the slot worker's log, then `farm resume`",
        retryable=True,
    )


def _nothing_ran(expected: Manifest, job: Job, record: Record) -> Execution:
    at = stamp(datetime.fromtimestamp(record.at_ms / 1000, UTC))
    return Execution(
        node=record.node,
        worker="",
        started_at=at,
        finished_at=at,
        queue_s=None,
        overhead_s=0.0,
        start="cold",
        isolation="plain",
        memory_limit="none",
        environment=job.selector.environment,
        device=Device(name="", slot="", kind="cpu", cpus=[]),
        threads=0,
        effective_threads={},
        simulated=False,
        farm_version=__version__,
        tags=expected.tags,
        effort=expected.effort,
        resolved={},
        precision_observed={},
    )
