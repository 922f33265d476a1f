"""From a plan to a run: what is measured already, the manifest, and the entries in the ledger.

The manifest is written before anything is enqueued, so a run that is interrupted at any step still
says what it expects, and `resume` is nothing but: manifest minus what the store holds.
"""

import getpass
import os
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from msgspec import UNSET

from farm import bundle, queues, schema
from farm.catalog import rows, winners
from farm.catalog.rows import Row
from farm.errors import Bad, Refused
from farm.ledger import Entry, Ledger, Slot
from farm.report import words
from farm.runs import stamp
from farm.schema import (
    Failure,
    Job,
    Labelled,
    Manifest,
    Order,
    Profile,
    Quality,
    Reused,
    Skipped,
)
from farm.store import NotFound, Store, card_key, job_key, manifest_key
from farm.sweep import Plan, Planned, label_text

Priority = Literal["high", "normal", "low"]

_PRIORITIES: Final = {"high": 1, "normal": 2, "low": 3}


class Outlook(NamedTuple):
    """What a run of a plan would expect, why a job that has a profile is measured again, and how
    many jobs wait in a queue that no device hears."""

    manifest: Manifest
    again: dict[str, str]
    unserved: dict[str, int]


def new_run_id() -> str:
    """Return a fresh run id: short enough to say, long enough not to meet another."""
    return f"r-{secrets.token_hex(3)}"


def outlook(
    plan: Plan,
    *,
    store: Store,
    slots: Sequence[Slot],
    force: bool,
    tags: Mapping[str, str],
    now: datetime,
    waits: bool = False,
    priority: Priority = "normal",
    user: Callable[[], str] = getpass.getuser,
) -> Outlook:
    """Return what a run of this plan expects; nothing is written yet.

    A job counts as measured where a good profile of it was taken under the system of a live slot
    that would take it (rule 1 of the decisions). A job that no slot takes is skipped and says so;
    waits: it waits for a slot instead. user: names who submits.
    """
    run_id = new_run_id()
    takers = {planned.job.job_id: queues.takers(planned.job, slots) for planned in plan.jobs}
    left = [each for each in plan.jobs if not takers[each.job.job_id]]
    jobs = [each for each in plan.jobs if waits or takers[each.job.job_id]]
    skipped = [
        Skipped(labels=each.labels, reason=f"no device here takes {queues.job_class(each.job)}")
        for each in ([] if waits else left)
    ]
    reused, again = ([], {}) if force else _reused(store, jobs, takers, plan.effort.repeats)
    expected = Manifest(
        run_id=run_id,
        name=plan.name,
        submitted_at=stamp(now),
        submitted_by=_submitter(user),
        source=plan.source,
        source_sha256=plan.source_sha256,
        effort=plan.effort,
        repeat_set=run_id if force else "base",
        jobs=[Labelled(job_id=each.job.job_id, labels=each.labels) for each in jobs],
        tags={**plan.tags, **tags},
        skipped=[*plan.skipped, *skipped],
        reused=reused,
        priority=UNSET if priority == "normal" else priority,
    )
    waiting = queues.unserved([each.job for each in left], slots) if waits else {}
    return Outlook(expected, again, waiting)


def publish(plan: Plan, expected: Manifest, store: Store) -> None:
    """Write code and inputs, the job documents, then the manifest: from here on the run exists.

    Raises Refused if a file changed since the plan was made.
    """
    bundle.publish(store, bundles=plan.bundles, npz=plan.npz)
    wanted = {each.job_id for each in expected.jobs}
    for planned in plan.jobs:
        if planned.job.job_id in wanted:
            store.put_new(job_key(planned.job.job_id), schema.encode(planned.job))
    store.put_new(manifest_key(expected.run_id), schema.encode(expected))


def missing(expected: Manifest, store: Store, slots: Sequence[Slot]) -> list[Job]:
    """Return what the manifest expects and the store lacks.

    What this run has already sent counts, also a failure or a contended figure whose retries are
    spent; and so does one of another run that shared the job since. Anything else counts where it
    is good. Both only as measured under a live system.
    """
    answered = {each.job_id for each in expected.reused}
    wanted = [each.job_id for each in expected.jobs if each.job_id not in answered]
    found = rows.read(store, job_ids=wanted)
    systems = {slot.system_id for slot in slots}
    answered |= {
        row.profile.job_id for row in found.rows if _is_sent(row.profile, expected, systems)
    }
    repeat_set = expected.repeat_set if expected.repeat_set != "base" else None
    good = winners.measured(
        found.rows,
        system_ids=systems,
        repeats=expected.effort.repeats,
        repeat_set=repeat_set,
    )
    lacking = [each for each in wanted if each not in answered and each not in good]
    return [_job(expected, each, store) for each in lacking]


def _is_sent(profile: Profile, expected: Manifest, systems: Collection[str]) -> bool:
    if winners.rank(profile) == winners.WITHOUT_ANSWER:
        return False
    if profile.run_id == expected.run_id:
        return True
    # Two runs that share a job share its failure too; each trying it anew would take as long again.
    is_shared = (
        profile.execution.finished_at >= expected.submitted_at
        and profile.repeat_set == expected.repeat_set
        and profile.system_id in systems
    )
    return is_shared and winners.rank(profile) in (winners.INVALID, winners.WITHOUT_FIGURE)


def _job(expected: Manifest, job_id: str, store: Store) -> Job:
    try:
        return schema.decode(store.get(job_key(job_id)), Job)
    except (NotFound, Bad) as error:
        raise Bad(
            f"the document of job {job_id} of run {expected.run_id} cannot be read",
            why=str(error),
            hint="submit the sweep again; what is measured already is reused",
        ) from error


def enqueue(
    expected: Manifest,
    jobs: Sequence[Job],
    ledger: Ledger,
    *,
    here: bool = False,
) -> dict[str, int]:
    """Put jobs of a run into the queue; return how many were `new`, `shared` or `known`.

    The caller has asked the store: whatever it lacks is measured, whatever the ledger remembers.
    here: the caller follows the run itself, so no scheduler is to look after it.
    """
    labels = {each.job_id: each.labels for each in expected.jobs}
    entries = [
        Entry(
            key=f"{job.job_id}.{expected.repeat_set}",
            class_=queues.job_class(job),
            spec=schema.encode(
                Order(
                    job=job,
                    effort=expected.effort,
                    repeat_set=expected.repeat_set,
                    label=label_text(labels[job.job_id]),
                    tags=expected.tags,
                )
            ).decode(),
            prio=_PRIORITIES[expected.priority or "normal"],
            again=True,
        )
        for job in jobs
    ]
    verdicts = ledger.submit(expected.run_id, entries, here=here)
    return {each: verdicts.count(each) for each in ("new", "shared", "known")}


def _reused(
    store: Store, jobs: Sequence[Planned], takers: Mapping[str, set[str]], repeats: int
) -> tuple[list[Reused], dict[str, str]]:
    found = rows.read(store, job_ids={each.job.job_id for each in jobs})
    reused, again = [], {}
    for planned in jobs:
        job_id = planned.job.job_id
        mine = [row for row in found.rows if row.profile.job_id == job_id]
        good = winners.measured(mine, system_ids=takers[job_id], repeats=repeats)
        if job_id in good:
            row = good[job_id]
            reused.append(
                Reused(
                    job_id=job_id,
                    profile_id=row.profile_id,
                    system_id=row.profile.system_id,
                    taken_at=row.profile.execution.started_at,
                    environment=_environment(store, row.profile.card_id),
                )
            )
        elif mine:
            again[job_id] = _why_again(mine, takers[job_id], repeats, store)
    return reused, again


def _why_again(mine: Sequence[Row], systems: set[str], repeats: int, store: Store) -> str:
    """Return why none of a job's profiles answers: what keeps the best one of these systems."""
    here = [row for row in mine if row.profile.system_id in systems]
    best = min(here or mine, key=winners.order).profile
    if isinstance(best.failure, Failure) and (here or best.status == "infra"):
        return f"it failed last time: {best.failure.kind}"
    if not here:
        return f"its profile was taken under another system ({_environment(store, best.card_id)})"
    if winners.rank(best) != winners.GOOD and isinstance(best.quality, Quality):
        return f"its profile is invalid: {', '.join(best.quality.flags)}"
    return f"its profile has {words.count(winners.usable(best), 'usable repeat')} of {repeats}"


def _environment(store: Store, card_id: str) -> str:
    """Return in words under what software a profile was taken."""
    try:
        card = schema.decode(store.get(card_key(card_id)), schema.SystemCard)
    except (NotFound, Bad, Refused):  # refused: an id that no card can have, such as an empty one
        return "unknown software"
    parts = [f"torch {card.stable.frameworks.torch}" if card.stable.frameworks.torch else ""]
    parts.append(f"python {card.stable.frameworks.python}")
    parts.append(f"driver {card.stable.drivers.nvidia}" if card.stable.drivers.nvidia else "")
    return ", ".join(filter(None, parts))


def _submitter(user: Callable[[], str]) -> str:
    try:
        return user()
    except (KeyError, OSError):  # a container may run under a number that nobody gave a name
        return str(os.getuid())
