"""How a run stands: what the store holds, what the ledger knows of the rest, as its report says."""

from collections import Counter
from datetime import UTC, datetime

import msgspec
import pytest

from farm import answers, standing
from farm.errors import NoResult, Refused
from farm.ledger import STATES, Record
from farm.report import making
from farm.runs import manifests
from farm.schema import Reused, Skipped
from tests.farm import make

JOBS = [make.job(batch=each) for each in (1, 2, 4, 8, 16, 32)]
SKIPPED = Skipped(labels={"model": "fp8", "device": "cpu"}, reason="no fp8 on a CPU")


@pytest.fixture
def run(store):
    """A run with a job in every state."""
    expected = make.manifest(JOBS, skipped=[SKIPPED])
    make.put(
        store,
        expected,
        make.profile(JOBS[0], p50_ms=2.5, flags=["drifting"]),
        make.profile(JOBS[1], flags=["contended"]),
        make.profile(JOBS[2], status="failed", failure=make.fault("oom")),
        make.profile(JOBS[3], status="pruned"),
        make.profile(JOBS[4], status="infra", failure=make.fault("worker_lost", message="gone")),
    )
    return expected


def test_every_job_has_one_state_in_the_order_of_the_run(store, run):
    """Good, invalid, failed, pruned, given up, nothing there, never asked."""
    rows = standing.jobs(run, store, states=())

    states = ["ok", "invalid", "failed", "pruned", "dead", "missing", "skipped"]
    assert states == [each.state for each in rows]
    assert (2.5, "the times drifted by more than 2 %") == (rows[0].p50_ms, rows[0].note)
    assert "oom: needed 91 of 80 GiB" == rows[2].note
    assert ("worker_lost: gone", "", "no fp8 on a CPU") == tuple(rows[i].note for i in (4, 5, 6))
    assert [True] * 5 + [False] * 2 == [bool(each.profile_id) for each in rows]


def test_status_and_report_agree(store, run):
    """Both ask the same store; to a report what was given up or cancelled is still missing."""
    make.put(store, make.profile(JOBS[5], status="cancelled"))
    report = making.made(store, run, now=datetime.now(UTC))

    (row,) = standing.runs(manifests(store)[:5], store)

    assert (1, 1, 0) == tuple(row.counts[each] for each in ("dead", "cancelled", "missing"))
    told = Counter(
        {"dead": "missing", "cancelled": "missing"}.get(each, each)
        for each in row.counts.elements()
    )
    assert {state: n for state, n in report.counts.items() if n} == dict(told)
    assert len(report.cells) == row.total


def test_a_figure_of_another_system_is_not_this_runs(store):
    """A run that measures again after an upgrade is not done because an older run was."""
    expected = make.manifest(JOBS[:2], submitted_at="2026-11-30T10:16:00Z")
    make.put(
        store,
        make.profile(JOBS[0], run_id="r-old", system_id=make.OTHER_SYSTEM),
        make.profile(JOBS[1]),
    )

    assert ["missing", "ok"] == [each.state for each in standing.jobs(expected, store, states=())]


def test_what_was_reused_counts_for_the_run(store):
    old = make.profile(JOBS[0], run_id="r-old", system_id=make.OTHER_SYSTEM, p50_ms=7.0)
    (profile_id,) = make.put(store, old)
    reused = Reused(
        job_id=old.job_id,
        profile_id=profile_id,
        system_id=old.system_id,
        taken_at=make.STARTED,
        environment="",
    )

    (row,) = standing.jobs(make.manifest(JOBS[:1], reused=[reused]), store, states=())

    assert ("ok", 7.0, profile_id) == (row.state, row.p50_ms, row.profile_id)


def test_a_stored_end_without_an_answer_says_which(store):
    """What the scheduler wrote down outlives the ledger."""
    make.put(
        store,
        make.profile(JOBS[0], status="cancelled"),
        make.profile(JOBS[1], status="infra", failure=make.fault("worker_lost", message="gone")),
    )

    rows = standing.jobs(make.manifest(JOBS[:2]), store, states=())

    assert [("cancelled", True), ("dead", True)] == [
        (each.state, bool(each.profile_id)) for each in rows
    ]
    assert "worker_lost: gone" == rows[1].note


# ── what the ledger knows ────────────────────────────────────────────────────────────────────────


def record(job, state, **more) -> Record:
    return Record(key=f"{job.job_id}.base", state=state, **more)


@pytest.mark.parametrize(
    ("made", "state", "note"),
    [
        ({"state": "READY", "class_": "hw.cpu"}, "queued", "for hw.cpu"),
        ({"state": "RUNNING", "owner": "laptop/cpu:0#a-1"}, "measuring", "on laptop/cpu:0"),
        ({"state": "UPLOADING", "node": "n1"}, "uploading", "measured; in the spool of n1"),
        ({"state": "BACKOFF", "cause": "timeout"}, "waiting", "another try after: timed out"),
        ({"state": "DEAD", "cause": "worker_lost"}, "dead", ""),
        ({"state": "CANCELLED"}, "cancelled", ""),
        ({"state": "DONE"}, "missing", ""),
        ({"state": "FAILED"}, "missing", ""),
    ],
)
def test_a_job_without_a_profile_is_where_the_ledger_has_it(store, made, state, note):
    """Its state, and where it is or what it waits for; an end that left nothing is a hole."""
    live = [record(JOBS[0], **made)]

    (row,) = standing.jobs(make.manifest(JOBS[:1]), store, states=(), live=live)

    assert (state, note, None, "") == (row.state, row.note, row.p50_ms, row.profile_id)


@pytest.mark.parametrize("state", ["READY", "RUNNING", "BACKOFF"])
def test_a_job_that_failed_and_was_sent_again_is_in_flight(store, state):
    """The old failure is no news: `farm retry` has been typed."""
    make.put(store, make.profile(JOBS[0], status="failed", failure=make.fault("timeout")))
    live = [record(JOBS[0], state, owner="laptop/cpu:0#a")]

    (row,) = standing.jobs(make.manifest(JOBS[:1]), store, states=(), live=live)

    assert (standing.LIVE[state], "") == (row.state, row.profile_id)


@pytest.mark.parametrize("state", ["DONE", "FAILED", "DEAD", "CANCELLED"])
def test_once_it_has_ended_the_store_has_the_last_word(store, state):
    """A retry that was cancelled or given up takes no figure away."""
    make.put(store, make.profile(JOBS[0], p50_ms=2.5))

    (row,) = standing.jobs(make.manifest(JOBS[:1]), store, states=(), live=[record(JOBS[0], state)])

    assert ("ok", 2.5) == (row.state, row.p50_ms)


def test_every_state_of_the_ledger_can_be_said(store):
    for state in STATES:
        live = [record(JOBS[0], state)]
        (row,) = standing.jobs(make.manifest(JOBS[:1]), store, states=(), live=live)
        assert row.state in standing.STATES


def test_runs_count_what_is_in_flight_and_each_asks_for_its_own(store):
    """The ledger is asked run by run, and only about those that are listed."""
    make.put(
        store,
        make.manifest(JOBS[:2], run_id="r-a", submitted_at="2026-12-02T00:00:00Z"),
        make.manifest(JOBS[2:3], run_id="r-b", submitted_at="2026-12-01T00:00:00Z"),
        make.manifest(JOBS[:1], run_id="r-c", submitted_at="2026-11-30T00:00:00Z"),
    )
    live = {
        "r-a": [record(JOBS[0], "RUNNING"), record(JOBS[1], "READY")],
        "r-b": [record(JOBS[2], "DEAD")],
    }

    first, second = standing.runs(manifests(store)[:2], store, live=lambda run_id: live[run_id])

    assert {"measuring": 1, "queued": 1} == dict(first.counts)
    assert {"dead": 1} == dict(second.counts)


def test_the_table_of_runs_has_a_column_for_each_live_state_that_occurs(store):
    """And none for the others: a farm at rest shows what it always did."""
    make.put(store, make.manifest(JOBS[:2]))
    live = [record(JOBS[0], "RUNNING"), record(JOBS[1], "CANCELLED")]

    (busy,) = standing.runs_table(
        standing.runs(manifests(store)[:5], store, live=lambda _run: live)
    )
    (idle,) = standing.runs_table(standing.runs(manifests(store)[:5], store))

    assert ["missing", "measuring", "cancelled"] == [each.title for each in busy.columns][-3:]
    assert ["0", "1", "1"] == [each.text for each in busy.rows[0]][-3:]
    assert "missing" == idle.columns[-1].title


# ── filters ──────────────────────────────────────────────────────────────────────────────────────


def test_states_filter_the_jobs(store, run):
    """Those of the store and those of the ledger alike."""
    live = [record(JOBS[5], "READY")]
    found = standing.jobs(run, store, states=("failed", "invalid", "queued"), live=live)

    assert ["invalid", "failed", "queued"] == [each.state for each in found]


def test_an_unknown_state_is_refused_with_the_nearest(store, run):
    """An empty table would look like good news."""
    with pytest.raises(Refused) as caught:
        standing.jobs(run, store, states=("fialed",))

    assert ("unknown state 'fialed'", "did you mean `failed`?") == (
        caught.value.what,
        caught.value.hint,
    )


def test_no_job_in_a_state_is_no_result(store):
    with pytest.raises(NoResult, match="is failed or invalid"):
        standing.jobs(make.manifest(JOBS), store, states=("failed", "invalid"))


# ── tables and documents ─────────────────────────────────────────────────────────────────────────


def test_runs_are_listed_newest_first_and_so_many(store, run):
    """limit counts runs, and those beyond it are not even read."""
    make.put(store, make.manifest(run_id="r-new", submitted_at="2026-12-01T00:00:00Z"))

    assert ["r-new", make.RUN] == [
        each.manifest.run_id for each in standing.runs(manifests(store)[:5], store)
    ]
    assert ["r-new"] == [
        each.manifest.run_id for each in standing.runs(manifests(store)[:1], store)
    ]


def test_the_table_of_runs_counts_good_bad_and_missing(store, run):
    (table,) = standing.runs_table(standing.runs(manifests(store)[:5], store))

    assert [make.RUN, "quickstart", "2026-11-30 10:14", "7", "1", "1", "1", "1", "1"] == [
        each.text for each in table.rows[0]
    ]
    assert ["missing", "dead"] == [each.title for each in table.columns][-2:]
    assert ["no run in this store yet"] == standing.runs_table([])


def test_the_documents_carry_their_schema_and_their_run(store, run):
    runs = standing.runs_document(standing.runs(manifests(store)[:5], store), {"hw.h300": 3}, [])
    jobs = standing.jobs_document(run, standing.jobs(run, store, states=("failed",)), [])

    counts = {"ok": 1, "invalid": 1, "failed": 1, "pruned": 1, "skipped": 1, "missing": 1}
    nothing = {"queued": 0, "measuring": 0, "uploading": 0, "waiting": 0, "cancelled": 0}
    assert (7, counts | nothing | {"dead": 1}) == (runs.runs[0].total, runs.runs[0].counts)
    assert {"hw.h300": 3} == runs.unserved
    assert (make.RUN, [(JOBS[2].job_id, "mlp/fp32/b4/cpu")]) == (
        jobs.run_id,
        [(each.job_id, each.label) for each in jobs.jobs],
    )
    for document, kind in ((runs, answers.Runs), (jobs, answers.Jobs)):
        told = msgspec.json.encode(document)
        assert document == msgspec.json.decode(told, type=kind, strict=True)


@pytest.mark.parametrize(
    ("limit", "notes"), [(2, ("and 5 jobs more; --limit shows them",)), (7, ())]
)
def test_the_table_of_jobs_says_what_it_leaves_out(store, run, limit, notes):
    (table,) = standing.jobs_table(standing.jobs(run, store, states=()), limit=limit)

    assert (min(limit, 7), notes) == (len(table.rows), table.notes)
    assert ("mlp/fp32/b1/cpu", "ok", "2.500") == tuple(each.text for each in table.rows[0][:3])
