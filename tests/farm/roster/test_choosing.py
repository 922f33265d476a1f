"""The laws of a choice: sound before doubtful, then new before old, and it says what it took."""

import pytest

from farm.roster.choosing import find
from tests.farm.roster.held import callable_json, expected, profile, spoiled

NONE = {"cost": "none", "identity": "predict.py:predict"}


def report(day: int, *, flags=(), **more):
    made = profile(flags=flags, started_at=f"2026-11-{day:02}T00:00:00Z", **more)
    return made._replace(where=f"p{day}")


def failed(day: int):
    made = profile(status="failed", started_at=f"2026-11-{day:02}T00:00:00Z")
    return made._replace(where=f"p{day}")


@pytest.mark.parametrize(
    ("reports", "taken"),
    [
        ([report(1), report(3), report(2)], "p3"),
        ([report(1), report(2, flags=["drifting"])], "p1"),
        ([report(1, flags=["drifting"]), report(2, flags=["contended"])], "p1"),
        ([report(1, flags=["contended"]), failed(2)], "p1"),
        ([failed(1), failed(2)], "p2"),
    ],
)
def test_valid_comes_before_degraded_before_invalid_before_failed_and_then_the_newest(
    reports, taken
):
    assert taken == find(expected(), reports, claimed=()).report.where


def test_the_note_says_which_of_how_many_was_taken_and_what_is_newer():
    reports = [report(1), report(2), failed(3)]

    chosen = find(expected(), reports, claimed=())

    assert (
        "profile p2 (cpu:0, 2026-11-02T00:00:00Z, valid), taken of 3 that match; "
        "the newest is p3 (cpu:0, 2026-11-03T00:00:00Z, failed)"
    ) == chosen.note
    assert "" == find(expected(), reports[:1], claimed=()).note


def test_files_of_one_name_are_chosen_from_as_well():
    one, two = callable_json("a/mlp.json"), callable_json("b/mlp.json")

    chosen = find(expected(**NONE), [one, two], claimed=())

    assert ("a/mlp.json", True) == (chosen.report.where, "of 2 that match" in chosen.note)


@pytest.mark.seed("S1.40")
@pytest.mark.parametrize(
    ("more", "trouble"),
    [
        ({"precision": "bf16"}, "has precision 'fp32', expected 'bf16'"),
        ({"batch": 8}, "has batch 1, expected 8"),
        (
            {"precision": "fp16", "batch": 8},
            "has precision 'fp32', expected 'fp16'; has batch 1, expected 8",
        ),
        ({"precision": "fp32", "batch": 1}, ""),
    ],
)
def test_a_model_s_own_file_is_of_the_precision_and_batch_that_are_meant(more, trouble):
    """What else is there does not stand in for it."""
    own = report(1)._replace(where="out/mlp.json")
    elsewhere = spoiled(spoiled(report(2), "job.workload.batch", 8), "job.workload.precision", "x")

    chosen = find(expected(**more), [own, elsewhere], claimed=())

    assert (f"out/mlp.json {trouble}" if trouble else "") == chosen.trouble
    assert ("" if trouble else "out/mlp.json") == (chosen.report.where if chosen.report else "")


def test_a_file_that_says_no_batch_is_of_none_that_is_meant():
    chosen = find(expected(batch=8, **NONE), [callable_json("mlp.json")], claimed=())

    assert "mlp.json says no batch, expected 8" == chosen.trouble


def test_of_files_of_one_name_the_batch_says_which():
    one = report(1)._replace(where="b1/mlp.json")
    eight = spoiled(report(2), "job.workload.batch", 8)._replace(where="b8/mlp.json")

    assert "b8/mlp.json" == find(expected(batch=8), [one, eight], claimed=()).report.where
    assert "say precision, batch or file" in find(expected(), [one, eight], claimed=()).trouble


def test_a_profile_that_failed_comes_last_even_with_figures():
    odd = spoiled(report(2), "status", "failed")

    assert "p1" == find(expected(), [report(1, flags=["contended"]), odd], claimed=()).report.where


@pytest.mark.parametrize(
    ("path", "value"), [("job.workload.batch", 8), ("job.workload.precision", "bf16")]
)
def test_profiles_for_different_things_are_no_choice(path, value):
    """The roster says which of them is meant."""
    chosen = find(expected(), [report(1), spoiled(report(2), path, value)], claimed=())

    assert (None, "2 profiles match (p1, p2); say precision, batch or file") == (
        chosen.report,
        chosen.trouble,
    )


def test_a_validity_that_makes_no_sense_is_taken_last():
    odd = spoiled(report(2), "quality.validity", ["x"])

    assert "p1" == find(expected(), [report(1, flags=["contended"]), odd], claimed=()).report.where
