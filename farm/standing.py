"""How runs stand, as the store knows them: manifest minus results, whatever the queue remembers."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from farm.catalog import rows, winners
from farm.catalog.winners import Winner
from farm.report import words
from farm.report.table import Column, Datum, Table, Tone
from farm.schema import Failure, Latency, Manifest, Quality
from farm.store import Store
from farm.submit import manifests
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
    return [
        RunRow(each, Counter(row.state for row in jobs(each, store, states=())))
        for each in manifests(store)[:limit]
    ]


def jobs(expected: Manifest, store: Store, *, states: Collection[str]) -> list[JobRow]:
    """Return the jobs of a run, in its order; states: only these, all if there are none."""
    found = rows.read(store, job_ids={each.job_id for each in expected.jobs})
    reused = {each.profile_id for each in expected.reused}
    mine = [
        row
        for row in found.rows
        if row.profile.run_id == expected.run_id
        or row.profile_id in reused
        or row.profile.repeat_set == expected.repeat_set
    ]
    best: dict[str, Winner] = {}
    for winner in winners.winners(mine):
        held = best.get(winner.row.profile.job_id)
        if held is None or winners.order(winner.row) < winners.order(held.row):
            best[winner.row.profile.job_id] = winner
    listed = [_job(label_text(each.labels), best.get(each.job_id)) for each in expected.jobs]
    listed += [
        JobRow(label_text(each.labels), "skipped", None, each.reason, "")
        for each in expected.skipped
    ]
    return [each for each in listed if not states or each.state in states]


def runs_table(found: Sequence[RunRow]) -> list[str | Table]:
    """Return the runs for a person."""
    if not found:
        return ["no run in this store yet"]
    columns = (
        Column("run"),
        Column("name", cut=True),
        Column("submitted"),
        *(Column(each, right=True) for each in ("jobs", "done", "failed", "missing")),
    )
    listed = tuple(
        (
            Datum(each.manifest.run_id),
            Datum(each.manifest.name),
            Datum(each.manifest.submitted_at[:16].replace("T", " ")),
            _count(each.total),
            _count(each.counts["ok"] + each.counts["invalid"]),
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


def jobs_document(found: Sequence[JobRow]) -> dict[str, object]:
    """Return the jobs of a run as one JSON document."""
    return {"schema": "farm.jobs/v1", "jobs": [each._asdict() for each in found]}


def _job(label: str, winner: Winner | None) -> JobRow:
    if winner is None:
        return JobRow(label, "missing", None, "", "")
    profile = winner.row.profile
    if isinstance(profile.failure, Failure):
        state = "missing" if profile.status in ("infra", "cancelled") else profile.status
        note = f"{profile.failure.kind}: {profile.failure.message}"
        return JobRow(label, state, None, note, winner.row.profile_id)
    marked = "invalid" if winners.rank(profile) else "ok"
    flags = profile.quality.flags if isinstance(profile.quality, Quality) else []
    p50 = profile.latency.p50_ms if isinstance(profile.latency, Latency) else None
    return JobRow(label, marked, p50, ", ".join(map(words.flag, flags)), winner.row.profile_id)


def _count(number: int, tone: Tone = "") -> Datum:
    return Datum(str(number), number, tone if number else "")
