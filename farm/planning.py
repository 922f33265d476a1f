"""What a run is about to do, in words: measured, reused, skipped, and about how long it takes."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final, Literal, NamedTuple

from farm import answers
from farm.catalog import rows
from farm.ledger import Slot
from farm.queues import job_class, unserved_lines
from farm.report import words
from farm.report.table import Column, Datum, Table
from farm.runs import moment
from farm.schema import Effort, Job, Manifest, Profile
from farm.store import Store
from farm.submit import Outlook
from farm.sweep import label_text

PlanState = Literal["measure", "measured", "waiting", "skipped"]

# Seconds of a repeat outside its passes: interpreter, framework, loading, warm-up, throughput.
_AROUND_S: Final = 4.0


class Outline(NamedTuple):
    """A run before it is measured; seconds: until its last job has ended, a guess.

    takers: nodes by the queue that they hear.
    """

    manifest: Manifest
    again: dict[str, str]
    to_measure: list[str]
    seconds: float
    queues: dict[str, str]
    takers: dict[str, list[str]]
    unserved: dict[str, int]


def outline(
    outlook: Outlook, store: Store, *, jobs: Sequence[Job], slots: Sequence[Slot]
) -> Outline:
    """Return what would be measured; a job that was measured before takes as long per repeat.

    jobs: all of the plan. slots: the live ones; those that take a job of it share the work.
    """
    expected = outlook.manifest
    answered = {each.job_id for each in expected.reused}
    wanted = [each.job_id for each in expected.jobs if each.job_id not in answered]
    known: dict[str, list[float]] = {}
    for row in rows.read(store, job_ids=wanted).rows:
        if row.profile.repeats:
            each_s = seconds(row.profile) / len(row.profile.repeats)
            known.setdefault(row.profile.job_id, []).append(each_s * expected.effort.repeats)
    guess = _guess(expected.effort)
    total = sum(median(known[each]) if each in known else guess for each in wanted)
    queues = {job.job_id: job_class(job) for job in jobs}
    takers = {
        queue: sorted({slot.node for slot in slots if queue in slot.classes})
        for queue in sorted(set(queues.values()))
    }
    asked = {queues[each] for each in wanted}
    sharing = [slot for slot in slots if not asked.isdisjoint(slot.classes)]
    return Outline(
        manifest=expected,
        again=outlook.again,
        to_measure=wanted,
        seconds=total / max(1, len(sharing)),
        queues=queues,
        takers=takers,
        unserved=outlook.unserved,
    )


def seconds(profile: Profile) -> float:
    """Return how long the attempt of a profile took."""
    execution = profile.execution
    return (moment(execution.finished_at) - moment(execution.started_at)).total_seconds()


def announcement(outlook: Outlook, *, force: bool) -> list[str]:
    """Return the lines that a run begins with: how much, what is reused, what is measured again."""
    expected = outlook.manifest
    left = len(expected.jobs) - len(expected.reused)
    said = [f"run {expected.run_id}: {words.count(left, 'job')} to measure"]
    if force:
        said[0] += ", whether measured before or not"
    said += reused_lines(expected)
    for reason, count in sorted(Counter(outlook.again.values()).items()):
        said.append(f"{words.count(count, 'job')} measured again: {reason}")
    for reason, count in sorted(Counter(each.reason for each in expected.skipped).items()):
        said.append(f"{words.count(count, 'job')} skipped: {reason}")
    return said


def owed(expected: Manifest, lacking: Sequence[Job], served: Sequence[Job]) -> list[str]:
    """Return what a resumed run begins with: how much is missing, and what nobody here takes."""
    if not lacking:
        return [f"nothing is missing in {expected.run_id}"]
    said = [f"{len(lacking)} of {words.count(len(expected.jobs), 'job')} missing"]
    left = {each.job_id for each in lacking} - {each.job_id for each in served}
    classes = Counter(job_class(each) for each in lacking if each.job_id in left)
    for name, count in sorted(classes.items()):
        said.append(f"{words.count(count, 'job')} left out: no device here takes {name}")
    return said


def reused_lines(expected: Manifest) -> list[str]:
    """Return how many jobs are measured already, how old that is, and under what software."""
    by: dict[str, list[str]] = {}
    for each in expected.reused:
        by.setdefault(each.environment, []).append(each.taken_at)
    submitted = moment(expected.submitted_at)
    said = []
    for environment, taken in sorted(by.items()):
        ages = [
            words.span((submitted - moment(each)).total_seconds())
            for each in (max(taken), min(taken))
        ]
        age = ages[0] if ages[0] == ages[1] else f"{ages[0]} to {ages[1]}"
        said.append(
            f"{words.count(len(taken), 'job')} not measured again: measured {age} ago "
            f"on this system ({environment}); --force measures anyway"
        )
    return said


def blocks(found: Outline, *, limit: int) -> list[str | Table]:
    """Return the plan for a person: a heading, a table of at most so many jobs, what is skipped."""
    expected = found.manifest
    effort = expected.effort
    total = len(expected.jobs) + len(expected.skipped)
    heading = (
        f"{expected.name}   {words.count(total, 'job')}: {len(found.to_measure)} to measure · "
        f"{len(expected.reused)} measured already · {len(expected.skipped)} skipped   "
        f"about {words.span(found.seconds)}"
    )
    about = (
        f"effort {effort.level}: {words.count(effort.repeats, 'repeat')}, each pass until its "
        f"median is known within {effort.half_width_ppm / 10_000:g} % or "
        f"{effort.budget_ms / 1000:g} s"
    )
    return [
        heading,
        about,
        _table(found, limit),
        *unserved_lines(found.unserved),
        *reused_lines(expected),
    ]


def document(found: Outline) -> answers.Plan:
    """Return the plan as one JSON document."""
    expected = found.manifest
    return answers.Plan(
        name=expected.name,
        jobs=_jobs(found),
        to_measure=len(found.to_measure),
        reused=len(expected.reused),
        skipped=len(expected.skipped),
        expected_s=round(found.seconds, 1),
    )


def _guess(effort: Effort) -> float:
    # Half of the budget: most passes know their median well before it is spent.
    return effort.repeats * (_AROUND_S + effort.budget_ms / 2000)


def _jobs(found: Outline) -> list[answers.PlannedJob]:
    wanted = set(found.to_measure)
    listed = []
    for each in found.manifest.jobs:
        queue = found.queues.get(each.job_id, "")
        nodes = found.takers.get(queue, [])
        state: PlanState = "measured" if each.job_id not in wanted else "measure"
        why = found.again.get(each.job_id, "")
        if state == "measure" and not nodes:
            state, why = "waiting", f"no live device for {queue}"
        listed.append(
            answers.PlannedJob(
                job_id=each.job_id,
                label=label_text(each.labels),
                labels=each.labels,
                state=state,
                why=why,
                queue=queue,
                nodes=nodes,
            )
        )
    for skipped in found.manifest.skipped:
        listed.append(
            answers.PlannedJob(
                job_id="",
                label=label_text(skipped.labels),
                labels=skipped.labels,
                state="skipped",
                why=skipped.reason,
                queue="",
                nodes=[],
            )
        )
    return listed


def _table(found: Outline, limit: int) -> Table:
    every = _jobs(found)
    shown = tuple(
        (
            Datum(each.label, each.label),
            Datum(each.state, each.state),
            Datum(each.queue, each.queue),
            Datum(words.listed(each.nodes, most=3), len(each.nodes)),
            Datum(each.why, each.why),
        )
        for each in every[:limit]
    )
    more = len(every) - len(shown)
    notes = (f"and {words.count(more, 'job')} more; --limit shows them",) if more > 0 else ()
    columns = (
        Column("job", cut=True),
        Column("state"),
        Column("queue", spare=2),
        Column("nodes", cut=True, spare=1),
        Column("why", cut=True),
    )
    return Table("", columns, shown, notes)
