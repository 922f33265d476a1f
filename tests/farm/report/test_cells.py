"""Every expected job has one cell, and a run shows its own numbers."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import UNSET

from farm import schema
from farm.catalog.winners import winners
from farm.report import cells
from tests.farm import make

NOW = datetime(2026, 11, 30, 11, 0, tzinfo=UTC)


def made(manifest: schema.Manifest, *profiles: schema.Profile):
    """The cells of a run over these profiles."""
    scope = cells.scope(manifest, winners(make.row(each) for each in profiles))
    return cells.cells(manifest, scope.by_job, now=NOW)[0]


def answered(manifest: schema.Manifest, *profiles: schema.Profile) -> list[str]:
    """Which runs answered, by job."""
    return [each.origin.run_id if each.origin else "" for each in made(manifest, *profiles)]


def test_every_job_and_every_skipped_pair_has_a_cell_in_order():
    """Expected is jobs plus skipped, in the order of the manifest, found or not."""
    jobs = [make.job(batch=each) for each in (32, 1, 8)]
    skipped = [schema.Skipped(labels={"model": "mlp", "precision": "fp8"}, reason="no fp8")]
    manifest = make.manifest(jobs, skipped=skipped)

    found = made(manifest, make.profile(jobs[1]))

    assert ["missing", "ok", "missing", "skipped"] == [each.state for each in found]
    assert ["32", "1", "8"] == [each.labels["batch"] for each in found[:3]]
    assert "no fp8" == found[3].reason


@pytest.mark.parametrize(
    ("given", "state", "reason"),
    [
        ({}, "ok", ""),
        ({"flags": ["drifting"]}, "ok", ""),
        ({"flags": ["contended"]}, "invalid", "other work ran on its cores"),
        ({"status": "failed"}, "failed", "needed 91 of 80 GiB"),
        ({"status": "failed", "failure": make.fault("crashed", message="")}, "failed", "crashed"),
        ({"status": "pruned"}, "pruned", "needed 91 of 80 GiB"),
        (
            {"status": "infra", "failure": make.fault("worker_lost", message="no word")},
            "missing",
            "its worker was lost: no word",
        ),
        ({"status": "cancelled", "failure": make.fault(message="by ada")}, "missing", "by ada"),
    ],
)
def test_each_end_of_an_attempt_has_its_state(given, state, reason):
    """Our own trouble leaves a cell missing, because it is still to be measured."""
    job = make.job()

    (cell,) = made(make.manifest([job]), make.profile(job, **given))

    assert (state, reason) == (cell.state, cell.reason)


def test_a_good_end_that_nothing_judged_is_invalid():
    """An unknown check never counts as passed."""
    job = make.job()
    import msgspec

    bare = msgspec.structs.replace(make.profile(job), quality=UNSET)

    (cell,) = made(make.manifest([job]), bare)

    assert "invalid" == cell.state


def test_a_cell_without_a_measurement_has_no_figures():
    """What cannot exist is absent, not null and not 0."""
    job = make.job()

    (cell,) = made(make.manifest([job]), make.profile(job, status="failed"))

    assert UNSET is cell.figures
    assert isinstance(cell.failure, schema.Failure)


def test_a_run_shows_its_own_profile_and_not_a_better_one_of_a_later_driver():
    """The report of last month does not change when tonight measures the same jobs."""
    job = make.job()
    own = make.profile(job, fence=1)
    later = make.profile(
        job,
        fence=9,
        run_id="r-later",
        system_id=make.OTHER_SYSTEM,
        finished_at="2026-12-24T00:00:00Z",
    )

    assert [make.RUN] == answered(make.manifest([job]), own, later)


def test_a_job_that_two_runs_shared_is_answered_by_either():
    """In flight already when this run asked for it: the profile names the other run."""
    job = make.job()
    shared = make.profile(job, run_id="r-other", finished_at="2026-11-30T10:30:00Z")

    assert ["r-other"] == answered(make.manifest([job]), shared)


def test_an_old_profile_that_was_not_reused_answers_nothing():
    """It may have been taken under another driver, and nobody said that it counts."""
    job = make.job()
    old = make.profile(job, run_id="r-old", finished_at="2026-11-01T00:00:00Z")

    assert [""] == answered(make.manifest([job]), old)


def test_of_another_run_only_what_was_taken_under_our_system_counts():
    """A hole of this run is not filled with a number of another machine."""
    first, second = make.job(batch=1), make.job(batch=8)
    own = make.profile(first)
    late = {"run_id": "r-later", "finished_at": "2026-12-24T00:00:00Z"}
    same = make.profile(second, **late)
    other = make.profile(second, system_id=make.OTHER_SYSTEM, **late)

    assert [make.RUN, "r-later"] == answered(make.manifest([first, second]), own, same)
    assert [make.RUN, ""] == answered(make.manifest([first, second]), own, other)


def test_a_reused_profile_answers_with_its_age():
    """What was measured before is shown, and said to be old."""
    job = make.job()
    old = make.profile(job, run_id="r-old", finished_at="2026-11-28T11:00:00Z")
    reused = schema.Reused(
        job_id=job.job_id,
        profile_id=make.row(old).profile_id,
        system_id=make.SYSTEM,
        taken_at="2026-11-28T11:00:00Z",
        environment="default",
    )

    (cell,) = made(make.manifest([job], reused=[reused]), old)

    assert cell.origin.reused
    assert timedelta(days=2).total_seconds() == cell.origin.age_s


def test_of_several_systems_the_best_end_wins_then_the_newest():
    """A cell shows one number, so that nothing counts twice."""
    job = make.job()
    invalid = make.profile(job, fence=9, flags=["throttled"])
    older = make.profile(job, fence=1, system_id=make.OTHER_SYSTEM, p50_ms=7.0)
    newer = make.profile(job, fence=2, system_id="f" * 32, p50_ms=8.0)

    (cell,) = made(make.manifest([job]), invalid, older, newer)

    assert 8.0 == cell.figures.p50_ms


def test_profiles_of_other_jobs_are_ignored():
    """The reader may hand over the whole inbox."""
    job = make.job()

    (cell,) = made(make.manifest([job]), make.profile(make.job(batch=64)))

    assert "missing" == cell.state


def test_simulated_profiles_stand_aside_for_real_ones():
    """One real number makes the simulated ones strangers; alone they are shown as such."""
    real, fake = make.job(batch=1), make.job(batch=8)
    manifest = make.manifest([real, fake])
    simulated = make.row(make.profile(fake, simulated=True))

    mixed = cells.scope(manifest, winners([make.row(make.profile(real)), simulated]))
    alone = cells.scope(manifest, winners([simulated]))

    assert ({real.job_id}, False, 1) == (set(mixed.by_job), mixed.simulated, mixed.dropped)
    assert ({fake.job_id}, True, 0) == (set(alone.by_job), alone.simulated, alone.dropped)


def test_names_say_what_varies_and_are_unique():
    """A constant axis is left out; two jobs alike get a number."""
    labelled = [
        schema.Skipped(labels={"model": "a", "precision": "fp32", "batch": each}, reason="")
        for each in ("1", "8", "8")
    ]

    found = cells.names(labelled)

    assert ["a b1", "a b8", "a b8 #2"] == [each.title for each in found]
    assert ["b1", "b8", "b8 #2"] == [each.place for each in found]


def test_a_missing_cell_names_the_command_that_measures_it():
    """Each row carries what to do next."""
    (cell,) = made(make.manifest([make.job()]))

    assert f"farm resume {make.RUN}" == cell.command


def test_a_time_that_cannot_be_read_costs_the_age_and_nothing_else():
    """One broken stamp does not break a report."""
    job = make.job()

    (cell,) = made(make.manifest([job]), make.profile(job, finished_at="soon"))

    assert UNSET is cell.origin.age_s
