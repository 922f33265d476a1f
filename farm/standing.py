"""How runs stand: what the store holds of them, and what the ledger knows of the rest."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from farm import answers
from farm.catalog import rows, winners
from farm.catalog.rows import Row
from farm.catalog.winners import Winner
from farm.errors import NoResult, Refused, did_you_mean
from farm.ledger import Record
from farm.report import cells, words
from farm.report.table import Column, Datum, Table, Tone
from farm.schema import Failure, Labelled, Latency, Manifest, Quality
from farm.store import Store
from farm.sweep import label_text

STORED: Final = ("ok", "invalid", "failed", "pruned", "skipped", "missing")
# A job that the store lacks may be in flight; by the state of the ledger.
LIVE: Final = {
    "READY": "queued",
    "RUNNING": "measuring",
    "UPLOADING": "uploading",
    "BACKOFF": "waiting",
    "DEAD": "dead",
    "CANCELLED": "cancelled",
}
STATES: Final = (*STORED, *LIVE.values())
_TONES: Final[dict[str, Tone]] = {
    "ok": "good",
    "failed": "bad",
    "dead": "bad",
    "invalid": "warn",
    "missing": "warn",
}


class RunRow(NamedTuple):
    """A run and its jobs by state."""

    manifest: Manifest
    counts: Counter[str]

    @property
    def total(self) -> int:
        return len(self.manifest.jobs) + len(self.manifest.skipped)


class JobRow(NamedTuple):
    """A job of a run: where it stands, its figure in ms if it has one, and the doubts or cause."""

    job_id: str
    label: str
    state: str
    p50_ms: float | None
    note: str
    profile_id: str


def runs(
    newest: Sequence[Manifest],
    store: Store,
    *,
    live: Callable[[str], Sequence[Record]] = lambda _run: (),
) -> list[RunRow]:
    """Return the runs with their jobs counted by state; live: what the ledger has of one."""
    held = _held(store, newest)
    return [
        RunRow(each, Counter(row.state for row in _jobs(each, held, live(each.run_id))))
        for each in newest
    ]


def jobs(
    expected: Manifest, store: Store, *, states: Collection[str], live: Sequence[Record] = ()
) -> list[JobRow]:
    """Return the jobs of a run, in its order; states: only these, all if there are none.

    Raises Refused for a state that there is none of, NoResult if no job is in one of them.
    """
    for each in states:
        if each not in STATES:
            known = f"known: {', '.join(STATES)}"
            raise Refused(f"unknown state {each!r}", why=known, hint=did_you_mean(each, [*STATES]))
    listed = _jobs(expected, _held(store, [expected]), live)
    kept = [each for each in listed if not states or each.state in states]
    if states and not kept:
        raise NoResult(f"no job of run {expected.run_id} is {' or '.join(states)}")
    return kept


def runs_table(found: Sequence[RunRow]) -> list[str | Table]:
    """Return the runs for a person."""
    if not found:
        return ["no run in this store yet"]
    shown = ["ok", "invalid", "failed", "missing"]
    shown += [each for each in LIVE.values() if any(row.counts[each] for row in found)]
    columns = (
        Column("run"),
        Column("name", cut=True),
        Column("submitted"),
        *(Column(each, right=True) for each in ("jobs", *shown)),
    )
    listed = tuple(
        (
            Datum(each.manifest.run_id),
            Datum(each.manifest.name),
            Datum(each.manifest.submitted_at[:16].replace("T", " ")),
            _count(each.total),
            *(_count(each.counts[state], _TONES.get(state, "")) for state in shown),
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


def runs_document(
    found: Sequence[RunRow], unserved: Mapping[str, int], spools: Sequence[answers.Spool]
) -> answers.Runs:
    """Return the runs as one JSON document."""
    return answers.Runs(
        runs=[
            answers.Run(
                run_id=each.manifest.run_id,
                name=each.manifest.name,
                submitted_at=each.manifest.submitted_at,
                submitted_by=each.manifest.submitted_by,
                tags=each.manifest.tags,
                total=each.total,
                counts={state: each.counts[state] for state in STATES},
            )
            for each in found
        ],
        unserved=dict(unserved),
        spools=list(spools),
    )


def jobs_document(
    expected: Manifest, found: Sequence[JobRow], spools: Sequence[answers.Spool]
) -> answers.Jobs:
    """Return the jobs of a run as one JSON document."""
    return answers.Jobs(
        run_id=expected.run_id,
        jobs=[answers.JobState(**each._asdict()) for each in found],
        spools=list(spools),
    )


def _held(store: Store, expected: Sequence[Manifest]) -> list[Row]:
    wanted = {job.job_id for manifest in expected for job in manifest.jobs}
    return rows.read(store, job_ids=wanted).rows


def _jobs(expected: Manifest, held: Sequence[Row], live: Sequence[Record]) -> list[JobRow]:
    """Return every job of a run, answered by what answers it in its report."""
    answered = cells.scope(expected, winners.of_run(held, expected)).by_job
    records = {each.key.partition(".")[0]: each for each in live}
    listed = [
        _job(each, answered.get(each.job_id, ()), records.get(each.job_id))
        for each in expected.jobs
    ]
    return listed + [
        JobRow("", label_text(each.labels), "skipped", None, each.reason, "")
        for each in expected.skipped
    ]


def _job(each: Labelled, found: Sequence[Winner], record: Record | None) -> JobRow:
    label = label_text(each.labels)
    if record is not None and record.state not in ("DONE", "FAILED", "DEAD", "CANCELLED"):
        return JobRow(each.job_id, label, LIVE[record.state], None, _whereabouts(record), "")
    if not found:
        state = LIVE.get(record.state, "missing") if record is not None else "missing"
        return JobRow(each.job_id, label, state, None, "", "")
    row = found[0].row
    profile = row.profile
    if profile.status != "ok":
        failure = profile.failure
        note = f"{failure.kind}: {failure.message}" if isinstance(failure, Failure) else ""
        state = {"infra": "dead", "cancelled": "cancelled"}.get(profile.status, profile.status)
        return JobRow(each.job_id, label, state, None, note, row.profile_id)
    marked = "ok" if winners.rank(profile) == winners.GOOD else "invalid"
    flags = profile.quality.flags if isinstance(profile.quality, Quality) else []
    p50 = profile.latency.p50_ms if isinstance(profile.latency, Latency) else None
    note = ", ".join(map(words.flag, flags))
    return JobRow(each.job_id, label, marked, p50, note, row.profile_id)


def _whereabouts(record: Record) -> str:
    """Return where a job in flight is, or what it waits for."""
    if record.state == "RUNNING":
        return f"on {record.owner.partition('#')[0]}"
    if record.state == "UPLOADING":
        return f"measured; in the spool of {record.node}"
    if record.state == "BACKOFF":
        return f"another try after: {words.failure(record.cause)}"
    return f"for {record.class_}"


def _count(number: int, tone: Tone = "") -> Datum:
    return Datum(str(number), number, tone if number else "")
