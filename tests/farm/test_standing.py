"""How a run stands is its manifest minus what the store holds, and agrees with its report."""

from datetime import UTC, datetime

import pytest

from farm import standing
from farm.errors import NoResult, Refused
from farm.report import making
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
    """Good, invalid, failed, pruned, ours to measure again, nothing there, never asked."""
    rows = standing.jobs(run, store, states=())

    states = ["ok", "invalid", "failed", "pruned", "missing", "missing", "skipped"]
    assert states == [each.state for each in rows]
    assert (2.5, "the times drifted by more than 2 %") == (rows[0].p50_ms, rows[0].note)
    assert "oom: needed 91 of 80 GiB" == rows[2].note
    assert ("worker_lost: gone", "", "no fp8 on a CPU") == tuple(rows[i].note for i in (4, 5, 6))
    assert [True] * 5 + [False] * 2 == [bool(each.profile_id) for each in rows]


def test_status_and_report_agree(store, run):
    """Both ask the same question of the same store."""
    report = making.made(store, run, now=datetime.now(UTC))

    (row,) = standing.runs(store, limit=5)

    assert {state: n for state, n in report.counts.items() if n} == dict(row.counts)
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


def test_a_cancelled_attempt_is_still_to_be_measured(store):
    make.put(store, make.profile(JOBS[0], status="cancelled"))

    (row,) = standing.jobs(make.manifest(JOBS[:1]), store, states=())

    assert "missing" == row.state


# ── filters ──────────────────────────────────────────────────────────────────────────────────────


def test_states_filter_the_jobs(store, run):
    found = standing.jobs(run, store, states=("failed", "invalid"))

    assert ["invalid", "failed"] == [each.state for each in found]


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

    assert ["r-new", make.RUN] == [each.manifest.run_id for each in standing.runs(store, limit=5)]
    assert ["r-new"] == [each.manifest.run_id for each in standing.runs(store, limit=1)]


def test_the_table_of_runs_counts_good_bad_and_missing(store, run):
    (table,) = standing.runs_table(standing.runs(store, limit=5))

    assert [make.RUN, "quickstart", "2026-11-30 10:14", "7", "1", "1", "1", "2"] == [
        each.text for each in table.rows[0]
    ]
    assert ["no run in this store yet"] == standing.runs_table([])


def test_the_documents_carry_their_schema_and_their_run(store, run):
    runs = standing.runs_document(standing.runs(store, limit=5))
    jobs = standing.jobs_document(run, standing.jobs(run, store, states=("failed",)))

    assert "farm.runs/v1" == runs["schema"]
    counts = {"ok": 1, "invalid": 1, "failed": 1, "pruned": 1, "skipped": 1, "missing": 2}
    assert (7, counts) == (runs["runs"][0]["total"], runs["runs"][0]["counts"])
    assert ("farm.jobs/v1", make.RUN) == (jobs["schema"], jobs["run_id"])
    assert ["mlp/fp32/b4/cpu"] == [each["label"] for each in jobs["jobs"]]


@pytest.mark.parametrize(
    ("limit", "notes"), [(2, ("and 5 jobs more; --limit shows them",)), (7, ())]
)
def test_the_table_of_jobs_says_what_it_leaves_out(store, run, limit, notes):
    (table,) = standing.jobs_table(standing.jobs(run, store, states=()), limit=limit)

    assert (min(limit, 7), notes) == (len(table.rows), table.notes)
    assert ("mlp/fp32/b1/cpu", "ok", "2.500") == tuple(each.text for each in table.rows[0][:3])
