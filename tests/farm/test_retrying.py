"""Which jobs of a run are worth another try: those whose failure may pass, and no others."""

import pytest

from farm import retrying, schema
from farm.report import words
from farm.store import job_key
from tests.farm import make

JOB, OTHER = make.job(), make.job(batch=8)
PASSING = [
    "crashed",
    "device_lost",
    "environment",
    "host_oom",
    "identity_mismatch",
    "poisoned",
    "store",
    "timeout",
    "worker_lost",
]
LASTING = ["model_error", "nonfinite", "oom", "precision_mismatch", "unsupported"]


def chosen(store, *documents, every=False, asked=(JOB,), **more) -> list[schema.Job]:
    """Return what is worth another try in a run of these jobs with these profiles."""
    for each in asked:
        store.put_new(job_key(each.job_id), schema.encode(each))
    make.put(store, *documents)
    return retrying.worth_it(make.manifest(asked, **more), store, every=every)


def failed(kind, **more) -> schema.Profile:
    return make.profile(JOB, status="failed", failure=make.fault(kind), **more)


def test_every_known_cause_is_either_passing_or_lasting():
    """A new cause must be put into one of the two lists."""
    assert sorted(words.FAILURES) == sorted([*PASSING, *LASTING])


@pytest.mark.parametrize("kind", PASSING)
def test_what_a_busy_or_broken_machine_causes_may_pass(store, kind):
    assert [JOB] == chosen(store, failed(kind))


@pytest.mark.parametrize("kind", LASTING)
def test_what_the_job_itself_does_is_tried_again_only_if_asked(store, kind):
    """A model that raises, or does not fit, does so again; `--all` takes it."""
    assert [] == chosen(store, failed(kind))
    assert [JOB] == chosen(store, every=True)


@pytest.mark.parametrize("every", [False, True])
def test_what_was_given_up_is_worth_another_try_whatever_the_cause(store, every):
    """Nobody has seen the job itself fail."""
    lost = make.profile(JOB, status="infra", failure=make.fault("store"), system_id="")

    assert [JOB] == chosen(store, lost, every=every)


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(
    "made",
    [
        {},
        {"flags": ["drifting"]},
        {"repeats": 1},
        {"status": "pruned"},
        {"status": "cancelled"},
    ],
)
def test_what_did_not_fail_is_no_retry(store, made, every):
    """Good, doubtful, pruned; and what was cancelled is missing, which `farm resume` measures."""
    assert [] == chosen(store, make.profile(JOB, **made), every=every)


@pytest.mark.parametrize("every", [False, True])
def test_what_was_disturbed_is_worth_another_try(store, every):
    """The neighbour may be gone by now, and nothing else measures the cell again."""
    assert [JOB] == chosen(store, make.profile(JOB, flags=["contended"]), every=every)


@pytest.mark.parametrize("every", [False, True])
def test_what_is_missing_is_no_retry(store, every):
    assert [] == chosen(store, every=every)


def test_all_takes_every_failed_one_in_the_order_of_the_run(store):
    asked = [OTHER, JOB, make.job(batch=2), make.job(batch=4)]
    documents = [
        failed("oom"),
        make.profile(OTHER, status="failed", failure=make.fault("timeout")),
        make.profile(asked[2]),
    ]

    assert [OTHER] == chosen(store, *documents, asked=asked)
    assert [OTHER, JOB] == chosen(store, asked=asked, every=True)


def test_a_failure_that_was_made_good_is_none(store):
    """The best attempt answers the job, whichever came last."""
    good = make.profile(JOB, fence=1)

    assert [] == chosen(store, good, failed("timeout", fence=2, attempt=2), every=True)


def test_a_failure_of_another_run_is_not_this_runs(store):
    """Unless it answers this one: from before, and under another system, it does not."""
    old = failed("timeout", run_id="r-old", system_id=make.OTHER_SYSTEM)

    assert [] == chosen(store, old, submitted_at="2026-12-01T00:00:00Z", every=True)
