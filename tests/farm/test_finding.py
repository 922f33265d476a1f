"""A job is found by the names that people give it, and never by a guess."""

import pytest

from farm import finding
from farm.errors import NoResult, Refused
from farm.schema import Labelled
from tests.farm import make

SMALL, LARGE = make.job(), make.job(batch=8)
OLD, NEW = "r-old", "r-new"


@pytest.fixture
def shelf(store):
    """Two runs that share a job; the newer one has measured everything anew."""
    make.put(
        store,
        make.manifest([SMALL, LARGE], run_id=OLD),
        make.manifest(
            [SMALL], run_id=NEW, repeat_set=NEW, submitted_at="2026-12-01T00:00:00Z", name="night"
        ),
    )
    return store


def test_run_and_label_name_a_job_and_its_entry(shelf):
    found = finding.find_job(shelf, f"{OLD}/mlp/fp32/b8/cpu")

    assert (OLD, LARGE.job_id, "mlp/fp32/b8/cpu", f"{LARGE.job_id}.base") == (
        found.manifest.run_id,
        found.job_id,
        found.label,
        found.key,
    )


@pytest.mark.parametrize("run", [NEW, "@last", "night", "r-n"])
def test_the_run_may_have_any_of_its_names(shelf, run):
    """And a run that measures all anew has entries of its own."""
    found = finding.find_job(shelf, f"{run}/mlp/fp32/b1/cpu")

    assert (NEW, f"{SMALL.job_id}.{NEW}") == (found.manifest.run_id, found.key)


def test_a_label_may_be_spelled_as_in_file_names(shelf):
    assert LARGE.job_id == finding.find_job(shelf, f"{OLD}/mlp-fp32-b8-cpu").job_id


@pytest.mark.parametrize("length", [6, 12, 32])
def test_an_id_or_its_beginning_means_the_job_in_its_newest_run(shelf, length):
    assert NEW == finding.find_job(shelf, SMALL.job_id[:length]).manifest.run_id
    assert OLD == finding.find_job(shelf, LARGE.job_id[:length]).manifest.run_id


def test_an_unknown_label_is_no_result_and_names_the_nearest(shelf):
    with pytest.raises(NoResult) as caught:
        finding.find_job(shelf, f"{OLD}/mlp/fp32/b9/cpu")

    assert f"run {OLD} has no job 'mlp/fp32/b9/cpu'" == caught.value.what
    assert "did you mean" in caught.value.hint


def test_a_label_like_none_is_told_where_labels_stand(shelf):
    with pytest.raises(NoResult) as caught:
        finding.find_job(shelf, f"{OLD}/x")

    assert f"`farm status {OLD}` lists its jobs" == caught.value.hint


@pytest.mark.parametrize("wanted", ["vit_tiny", "abc12", "ABCDEF", "abcdefg", "", "f" * 65])
def test_words_that_cannot_name_a_job_are_refused(shelf, wanted):
    """Fewer than six digits are as likely a slip as a reference."""
    with pytest.raises(Refused) as caught:
        finding.find_job(shelf, wanted)

    assert f"{wanted!r} is no job" == caught.value.what


def test_an_id_that_no_run_expects_is_no_result(shelf):
    with pytest.raises(NoResult, match="no job starts with 'ffffff'"):
        finding.find_job(shelf, "ffffff")


def test_an_unknown_run_is_no_result(shelf):
    with pytest.raises(NoResult, match="no run 'r-none'"):
        finding.find_job(shelf, "r-none/mlp/fp32/b1/cpu")


def test_a_beginning_of_two_ids_is_refused(store):
    """`farm cancel` must not take one of them for the other."""
    ids = [f"abcdef{number}{'0' * 25}" for number in (1, 2)]
    make.put(store, make.manifest(jobs=[Labelled(job_id=each, labels={}) for each in ids]))

    with pytest.raises(Refused, match="'abcdef' is ambiguous"):
        finding.find_job(store, "abcdef")
    assert ids[1] == finding.find_job(store, "abcdef2").job_id


@pytest.mark.parametrize("label", ["a/b-c/b1/cpu", "a-b/c/b1/cpu"])
def test_a_whole_label_counts_before_a_spelling(label):
    """Two labels may be one word in file names; each in full is itself."""
    assert label == finding.of_label(alike(), label).label


def test_a_spelling_of_two_labels_is_refused():
    with pytest.raises(Refused) as caught:
        finding.of_label(alike(), "a-b-c-b1-cpu")

    assert f"'a-b-c-b1-cpu' is ambiguous in run {make.RUN}" == caught.value.what
    assert "2 jobs match" in caught.value.why


def test_a_label_of_two_jobs_is_refused():
    """Two sweeps of one run may ask alike in everything that a label names."""
    run = make.manifest([SMALL, LARGE])
    run.jobs[1].labels.update(run.jobs[0].labels)

    with pytest.raises(Refused, match="ambiguous"):
        finding.of_label(run, "mlp/fp32/b1/cpu")


def alike():
    """A run of two jobs whose labels differ in where they are divided."""
    run = make.manifest([SMALL, LARGE])
    run.jobs[0].labels.update(model="a", precision="b-c", batch="1")
    run.jobs[1].labels.update(model="a-b", precision="c", batch="1")
    return run
