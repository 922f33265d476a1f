"""How runs stand, as the store knows them: manifest minus results, whatever the queue remembers."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from farm.catalog import rows, winners
from farm.catalog.winners import Winner
from farm.errors import NoResult, Refused, did_you_mean
from farm.report import cells, words
from farm.report.table import Column, Datum, Table, Tone
from farm.runs import manifests
from farm.schema import Failure, Latency, Manifest, Quality
from farm.store import Store
from farm.sweep import label_text

STATES: Final = ("ok", "invalid", "failed", "pruned", "skipped", "missing")
_TONES: Final[dict[str, Tone]] = {"ok": "good", "failed": "bad", "invalid": "warn"}


class RunRow(NamedTuple):
    """A run and its jobs by state."""

    manifest: Manifest
    counts: Counter[str]

    @property
    def total(self) -> int:
        return len(self.manifest.jobs) + len(self.manifest.skipped)


class JobRow(NamedTuple):
    """A job of a run: where it stands, its figure in ms if it has one, and the doubts or cause."""

    label: str
    state: str
    p50_ms: float | None
    note: str
    profile_id: str


def runs(store: Store, *, limit: int) -> list[RunRow]:
    """Return the newest runs with their jobs counted by state."""
    newest = manifests(store)[:limit]
    best = _winners(store, newest)
    return [RunRow(each, Counter(row.state for row in _jobs(each, best))) for each in newest]


def jobs(expected: Manifest, store: Store, *, states: Collection[str]) -> list[JobRow]:
    """Return the jobs of a run, in its order; states: only these, all if there are none.

    Raises Refused for a state that there is none of, NoResult if no job is in one of them.
    """
    for each in states:
        if each not in STATES:
            known = f"known: {', '.join(STATES)}"
            raise Refused(f"unknown state {each!r}", why=known, hint=did_you_mean(each, [*STATES]))
    listed = _jobs(expected, _winners(store, [expected]))
    kept = [each for each in listed if not states or each.state in states]
    if states and not kept:
        raise NoResult(f"no job of run {expected.run_id} is {' or '.join(states)}")
    return kept


def runs_table(found: Sequence[RunRow]) -> list[str | Table]:
    """Return the runs for a person."""
    if not found:
        return ["no run in this store yet"]
    columns = (
        Column("run"),
        Column("name", cut=True),
        Column("submitted"),
        *(Column(each, right=True) for each in ("jobs", "ok", "invalid", "failed", "missing")),
    )
    listed = tuple(
        (
            Datum(each.manifest.run_id),
            Datum(each.manifest.name),
            Datum(each.manifest.submitted_at[:16].replace("T", " ")),
            _count(each.total),
            _count(each.counts["ok"]),
            _count(each.counts["invalid"], "warn"),
            _count(each.counts["failed"], "bad"),
            _count(each.counts["missing"], "warn"),
        )
        for each in found
    )
    return [Table("", columns, listed)]


def jobs_table(found: Sequence[JobRow], *, limit: int) -> list[str | Table]:
    """Return the jobs of a run for a person, at most so many."""
    columns = (
        Column("job", cut=True),
        Column("state"),
        Column("p50", "ms", right=True),
        Column("note", cut=True),
    )
    listed = tuple(
        (
            Datum(each.label),
            Datum(each.state, tone=_TONES.get(each.state, "")),
            Datum(words.number(each.p50_ms)),
            Datum(each.note),
        )
        for each in found[:limit]
    )
    more = len(found) - len(listed)
    notes = (f"and {words.count(more, 'job')} more; --limit shows them",) if more > 0 else ()
    return [Table("", columns, listed, notes)]


def runs_document(found: Sequence[RunRow]) -> dict[str, object]:
    """Return the runs as one JSON document."""
    return {
        "schema": "farm.runs/v1",
        "runs": [
            {
                "run_id": each.manifest.run_id,
                "name": each.manifest.name,
                "submitted_at": each.manifest.submitted_at,
                "submitted_by": each.manifest.submitted_by,
                "tags": each.manifest.tags,
                "total": each.total,
                "counts": {state: each.counts[state] for state in STATES},
            }
            for each in found
        ],
    }


def jobs_document(expected: Manifest, found: Sequence[JobRow]) -> dict[str, object]:
    """Return the jobs of a run as one JSON document."""
    return {
        "schema": "farm.jobs/v1",
        "run_id": expected.run_id,
        "jobs": [each._asdict() for each in found],
    }


def _winners(store: Store, expected: Sequence[Manifest]) -> list[Winner]:
    wanted = {job.job_id for manifest in expected for job in manifest.jobs}
    return winners.winners(rows.read(store, job_ids=wanted).rows)


def _jobs(expected: Manifest, best: Sequence[Winner]) -> list[JobRow]:
    """Return every job of a run, answered by what answers it in its report."""
    answers = cells.scope(expected, best).by_job
    listed = [_job(label_text(each.labels), answers.get(each.job_id, ())) for each in expected.jobs]
    skipped = ((label_text(each.labels), each.reason) for each in expected.skipped)
    return listed + [JobRow(label, "skipped", None, why, "") for label, why in skipped]


def _job(label: str, answers: Sequence[Winner]) -> JobRow:
    if not answers:
        return JobRow(label, "missing", None, "", "")
    row = answers[0].row
    profile = row.profile
    if profile.status != "ok":
        state = "missing" if profile.status in ("infra", "cancelled") else profile.status
        failure = profile.failure
        note = (
            f"{failure.kind}: {failure.message}" if isinstance(failure, Failure) else profile.status
        )
        return JobRow(label, state, None, note, row.profile_id)
    marked = "invalid" if winners.rank(profile) else "ok"
    flags = profile.quality.flags if isinstance(profile.quality, Quality) else []
    p50 = profile.latency.p50_ms if isinstance(profile.latency, Latency) else None
    return JobRow(label, marked, p50, ", ".join(map(words.flag, flags)), row.profile_id)


def _count(number: int, tone: Tone = "") -> Datum:
    return Datum(str(number), number, tone if number else "")
