"""What a run is about to do, in words: measured, reused, skipped, and about how long it takes."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from farm.catalog import rows
from farm.report import words
from farm.report.table import Column, Datum, Table
from farm.runs import moment
from farm.schema import Effort, Job, Manifest, Profile
from farm.store import Store
from farm.submit import Outlook, job_class
from farm.sweep import label_text

# Seconds of a repeat outside its passes: interpreter, framework, loading, warm-up, throughput.
_AROUND_S: Final = 4.0


class Outline(NamedTuple):
    """A run before it is measured; seconds: of the jobs to measure, a guess."""

    manifest: Manifest
    again: dict[str, str]
    to_measure: list[str]
    seconds: float


def outline(outlook: Outlook, store: Store) -> Outline:
    """Return what would be measured; a job that was measured before takes as long per repeat."""
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
    return Outline(expected, outlook.again, wanted, total)


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
    return [heading, about, _table(found, limit), *reused_lines(expected)]


def document(found: Outline) -> dict[str, object]:
    """Return the plan as one JSON document."""
    expected = found.manifest
    return {
        "schema": "farm.plan/v1",
        "name": expected.name,
        "jobs": [
            {"job_id": job_id, "label": label, "labels": labels, "state": state, "why": why}
            for job_id, label, labels, state, why in _rows(found)
        ],
        "to_measure": len(found.to_measure),
        "reused": len(expected.reused),
        "skipped": len(expected.skipped),
        "expected_s": round(found.seconds, 1),
    }


def _guess(effort: Effort) -> float:
    # Half of the budget: most passes know their median well before it is spent.
    return effort.repeats * (_AROUND_S + effort.budget_ms / 2000)


def _rows(found: Outline) -> Sequence[tuple[str, str, dict[str, str], str, str]]:
    wanted = set(found.to_measure)
    listed = []
    for each in found.manifest.jobs:
        state = "measure" if each.job_id in wanted else "measured"
        why = found.again.get(each.job_id, "")
        listed.append((each.job_id, label_text(each.labels), each.labels, state, why))
    for skipped in found.manifest.skipped:
        label = label_text(skipped.labels)
        listed.append(("", label, skipped.labels, "skipped", skipped.reason))
    return listed


def _table(found: Outline, limit: int) -> Table:
    every = _rows(found)
    shown = tuple(
        (Datum(label, label), Datum(state, state), Datum(why, why))
        for _, label, _, state, why in every[:limit]
    )
    more = len(every) - len(shown)
    notes = (f"and {words.count(more, 'job')} more; --limit shows them",) if more > 0 else ()
    return Table(
        "", (Column("job", cut=True), Column("state"), Column("why", cut=True)), shown, notes
    )
