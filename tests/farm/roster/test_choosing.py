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
