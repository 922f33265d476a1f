"""What needs the store and the ledger at once: the check at the end of a run.

When the ledger says that a run has ended, the store has the last word: what is missing there is
submitted again, at most twice; what was given up becomes a stored attempt with its cause, so that a
report can say why a cell is empty.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from farm import __version__, identity, schema
from farm.ledger import Ledger, Record, Slot
from farm.report import words
from farm.runs import stamp
from farm.schema import Device, Execution, Failure, Job, Manifest, Profile
from farm.store import Store, profile_key
from farm.submit import enqueue, missing, takeable

RESUBMISSIONS: Final = 2


def check_end(
    expected: Manifest,
    *,
    store: Store,
    ledger: Ledger,
    slots: Sequence[Slot],
    resubmitted: int,
    now: datetime,
) -> int:
    """Close a run that the ledger calls ended; return how many jobs were submitted again.

    Entries that are DEAD are stored as attempts of ours that failed; whatever else the store lacks
    goes into the queue again if a slot takes it, unless that has happened twice already.
    """
    lacking = missing(expected, store, slots)
    dead = {each.key: each for each in ledger.entries(expected.run_id) if each.state == "DEAD"}
    given_up = {job.job_id: dead.get(f"{job.job_id}.{expected.repeat_set}") for job in lacking}
    again = takeable([job for job in lacking if given_up[job.job_id] is None], slots)
    if again and resubmitted < RESUBMISSIONS:
        enqueue(expected, again, ledger)
        return len(again)
    for job in lacking:
        record = given_up[job.job_id]
        if record is not None:
            _store_dead(expected, job, record, store=store, slots=slots, now=now)
    return 0


def _store_dead(
    expected: Manifest,
    job: Job,
    record: Record,
    *,
    store: Store,
    slots: Sequence[Slot],
    now: datetime,
) -> None:
    """Store why an entry was given up, under the system of the node that had it last."""
    slot = next((each for each in slots if each.node == record.node), None)
    kind = record.cause.partition(":")[0]
    execution = _nothing_ran(expected, record.node, job.selector.environment, now=now)
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
        status="infra",
        failure=Failure(
            kind=kind if kind in words.FAILURES else "worker_lost",
            phase="unknown",
            message=f"given up after {words.count(record.attempt, 'attempt')}: {record.cause}",
            hint="look at the slot worker's log, then `farm resume`",
            retryable=True,
        ),
        execution=execution,
        null_reasons={"execution.queue_s": "not_probed"},
    )
    data = schema.encode(profile)
    day = execution.finished_at[:10]
    store.put_new(profile_key(day, job.job_id, identity.content_id(data)), data)


def _nothing_ran(expected: Manifest, node: str, environment: str, *, now: datetime) -> Execution:
    at = stamp(now)
    return Execution(
        node=node,
        worker="",
        started_at=at,
        finished_at=at,
        queue_s=None,
        overhead_s=0.0,
        start="cold",
        isolation="plain",
        memory_limit="none",
        environment=environment,
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
