"""The laws of a roster: every model expected, every problem named, nothing unsound in the table."""

import csv
import io

import pytest

from farm.roster import FIELDS, aggregate, comma_separated
from tests.farm import make
from tests.farm.roster.held import callable_json, expected, profile, roster, spoiled

NONE = {"cost": "none", "identity": "predict.py:predict"}


def judged(models, reports, **more):
    return aggregate(roster(*models), reports, **more).validation


@pytest.mark.seed("S1.40")
def test_a_complete_roster_passes_and_its_rows_are_sorted_by_task_and_model():
    models = [
        expected("mlp"),
        expected("cnn"),
        expected("z", task="pose", **NONE),
    ]

    found = aggregate(roster(*models), [profile("mlp"), profile("cnn"), callable_json()])

    assert [("depth", "cnn"), ("depth", "mlp"), ("pose", "z")] == [
        (row["task"], row["model"]) for row in found.rows
    ]
    verdict = found.validation
    assert ("PASS", 3, 3, [], []) == (
        verdict.status,
        verdict.expected_models,
        verdict.profiles_found,
        verdict.errors,
        verdict.notes,
    )
    assert list(FIELDS) == verdict.headline_fields
    mlp = found.rows[1]
    assert (8256, 16384.0, 10.0, 768, "valid") == (
        mlp["parameters"],
        mlp["flops_per_item"],
        mlp["p50_ms"],
        mlp["n"],
        mlp["validity"],
    )


def test_both_kinds_of_profile_have_the_same_columns():
    """Memory in MiB from either; a function has neither parameters nor FLOPs."""
    found = aggregate(
        roster(expected("mlp"), expected("z", task="pose", **NONE)), [profile(), callable_json()]
    )

    ours, theirs = found.rows
    assert ours.keys() == theirs.keys() == set(FIELDS)
    assert (310.0, 310.0) == (ours["memory_mib"], theirs["memory_mib"])
    assert (None, None, "request", 3) == (
        theirs["parameters"],
        theirs["flops_per_item"],
        theirs["unit"],
        theirs["n"],
    )


@pytest.mark.seed("S1.40", "S1.53")
@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("latency.p50_ms", float("nan"), "latency.p50_ms is nan, not positive and finite"),
        ("latency.p50_ms", float("inf"), "latency.p50_ms is inf, not positive and finite"),
        ("latency.p50_ms", 0, "latency.p50_ms is 0, not positive and finite"),
        ("latency.p50_ms", -1.5, "latency.p50_ms is -1.5, not positive and finite"),
        ("latency.p50_ms", True, "latency.p50_ms is 'True', no number"),
        ("latency.p50_ms", "10", "latency.p50_ms is '10', no number"),
        ("latency.p50_ms", None, "latency.p50_ms is missing"),
        ("latency.p99_ms", True, "latency.p99_ms is 'True', no number"),
        ("cost.params_total", True, "cost.params_total is 'True', no whole number"),
        ("cost.params_total", 0, "cost.params_total is 0, not positive and finite"),
        ("cost.params_total", -1, "cost.params_total is -1, not positive and finite"),
        ("cost.params_total", 1.5, "cost.params_total is '1.5', no whole number"),
        ("cost.params_total", None, "cost.params_total is missing"),
        ("cost.flops_per_item", float("nan"), "cost.flops_per_item is nan"),
        ("cost.flops_per_item", True, "cost.flops_per_item is 'True', no number"),
        ("cost", None, "cost.params_total is missing"),
        ("latency", None, "has no latency"),
        ("quality.flags", ["nonfinite_output"], "its output was not finite"),
    ],
)
def test_what_is_no_positive_finite_number_is_an_error_and_in_no_row(path, value, error):
    """A `true` is no number, and neither is a text."""
    found = aggregate(roster(expected()), [spoiled(profile(), path, value)])

    assert ([], "FAIL") == (found.rows, found.validation.status)
    assert found.validation.errors[0].startswith(f"mlp: {error}")


@pytest.mark.seed("S1.40")
def test_a_time_that_was_edited_beside_its_samples_is_an_error():
    moved = spoiled(callable_json(), "latency.p95_ms", 0.25)

    found = judged([expected("z", task="pose", **NONE)], [moved])

    p95 = callable_json().plain["latency"]["p95_ms"]
    assert [
        f"z: its p95_ms is 0.25, and its samples give {p95:.6g}: "
        "the file was changed after it was measured; profile the callable again"
    ] == found.errors


@pytest.mark.parametrize(
    ("status", "error"), [("failed", "failed"), ("infra", "infra"), (None, "has no status")]
)
def test_a_profile_that_did_not_end_well_is_an_error_whatever_figures_it_has(status, error):
    found = aggregate(roster(expected()), [spoiled(profile(), "status", status)])

    assert ([], [f"mlp: {error}"]) == (found.rows, found.validation.errors)


def test_a_coverage_of_zero_is_partial_and_true_is_no_number():
    """JSON's whole numbers: 0 for 0.0 of a coverage, and one too large for any float."""
    zero = spoiled(profile(), "cost.flops_coverage", 0)
    assert ["mlp: FLOPs incomplete (measured, 0 % of the calls)"] == judged(
        [expected()], [zero]
    ).errors
    huge = spoiled(profile(), "cost.flops_per_item", 10**400)
    assert ["mlp: cost.flops_per_item is 1" + "0" * 39 + ", not positive and finite"] == judged(
        [expected()], [huge]
    ).errors
    said = spoiled(profile(), "memory.cpu_rss_peak_lifetime_bytes", -1)
    (row,) = aggregate(roster(expected()), [said]).rows
    assert row["memory_mib"] is None
    true = spoiled(profile(), "latency.n", True)
    assert "FAIL" == judged([expected()], [true]).status


def test_a_missing_profile_and_one_of_another_model_are_errors():
    other = callable_json("mlp.json")

    assert ["mlp: no profile of 'mlp', and no file mlp.json"] == judged([expected()], []).errors
    assert ["mlp: mlp.json is of 'predict.py:predict', expected 'mlp'"] == (
        judged([expected()], [other, profile()]).errors
    )
    assert 0 == judged([expected()], [other]).profiles_found


def test_the_file_of_one_model_never_stands_in_for_that_of_another():
    """Two runs of one function are two rows, and one of them is missing."""
    rows = [expected("a", **NONE), expected("b", **NONE)]

    verdict = judged(rows, [callable_json("out/a.json")])

    assert ["b: no profile of 'predict.py:predict', and no file b.json"] == verdict.errors
    named = expected("c", file="d.json", **NONE)
    assert "FAIL" == judged([named], [callable_json("elsewhere.json")]).status


def test_a_model_that_is_optional_may_be_missing_but_not_wrong():
    verdict = judged([expected(optional=True)], [])

    assert ("PASS", ["mlp: no profile of 'mlp', and no file mlp.json"]) == (
        verdict.status,
        verdict.notes,
    )
    spoilt = spoiled(profile(), "latency.p50_ms", 0)
    assert "FAIL" == judged([expected(optional=True)], [spoilt]).status
    other = callable_json("mlp.json")
    assert "FAIL" == judged([expected(optional=True)], [other]).status
    small = profile()._replace(where="mlp.json")
    assert "FAIL" == judged([expected(optional=True, batch=8)], [small]).status


def test_a_failed_profile_is_an_error_with_its_cause():
    failed = profile(status="failed")

    assert ["mlp: failed: oom"] == judged([expected()], [failed]).errors


@pytest.mark.seed("S1.53")
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"flops_per_item": None, "flops_status": "unsupported"}, "FLOPs unknown (unsupported)"),
        (
            {"flops_status": "partial", "flops_coverage": 0.93},
            "FLOPs incomplete (partial, 93 % of the calls)",
        ),
        ({"flops_coverage": 0.5}, "FLOPs incomplete (measured, 50 % of the calls)"),
        ({"flops_coverage": 0.997}, "FLOPs incomplete (measured, 99.7 % of the calls)"),
        ({"flops_coverage": 0.99999}, "FLOPs incomplete (measured, 99.9 % of the calls)"),
        ({"flops_coverage": 1e-6}, "FLOPs incomplete (measured, 0.1 % of the calls)"),
        ({"flops_per_item": None, "flops_status": "failed: meta"}, "FLOPs unknown (failed: meta)"),
    ],
)
def test_incomplete_flops_are_an_error_unless_they_are_allowed(changes, why):
    """Then the row stays, with a note."""
    report = profile(cost_of=make.cost(**changes))

    strict = aggregate(roster(expected()), [report])
    lenient = aggregate(roster(expected()), [report], allow_incomplete_flops=True)

    assert ([], [f"mlp: {why}"]) == (strict.rows, strict.validation.errors)
    assert ("PASS", [f"mlp: {why}"]) == (lenient.validation.status, lenient.validation.notes)
    assert why == lenient.rows[0]["note"]


@pytest.mark.seed("S1.42")
def test_the_models_of_a_task_must_have_had_the_same_inputs():
    """Of other tasks they need not."""
    models = [expected("a", file="a.json", **NONE), expected("b", file="b.json", **NONE)]
    a, b = callable_json("a.json"), callable_json("b.json", inputs_sha256="cd" * 32)

    verdict = judged(models, [a, b])

    assert ["task depth: a and b had different inputs, so they do not compare"] == verdict.errors
    assert "PASS" == judged(models, [a, a._replace(where="x/b.json")]).status
    apart = [models[0], expected("b", task="pose", file="b.json", **NONE)]
    assert "PASS" == judged(apart, [a, b]).status


def test_an_invalid_profile_is_an_error_unless_it_is_allowed():
    """Then the row stays, with a note: it was measured, and the table says how good it is."""
    report = profile(flags=["contended"])

    strict = aggregate(roster(expected()), [report])
    lenient = aggregate(roster(expected()), [report], allow_invalid=True)

    assert ([], "FAIL") == (strict.rows, strict.validation.status)
    assert (["mlp: invalid: contended"], []) == (
        strict.validation.errors,
        strict.validation.notes,
    )
    assert ("PASS", ["mlp: invalid: contended"]) == (
        lenient.validation.status,
        lenient.validation.notes,
    )
    assert ("invalid", "invalid: contended") == (
        lenient.rows[0]["validity"],
        lenient.rows[0]["note"],
    )


def test_an_invalid_callable_json_is_an_error_too():
    report = callable_json(flags=["contended"])

    assert ["z: invalid: contended"] == judged([expected("z", **NONE)], [report]).errors


def test_which_of_several_profiles_was_taken_is_a_note_of_its_row():
    old = profile(started_at="2026-11-01T00:00:00Z")._replace(where="old")
    new = profile(started_at="2026-11-02T00:00:00Z")._replace(where="new")

    found = aggregate(roster(expected()), [old, new])

    assert ("PASS", "new") == (found.validation.status, found.rows[0]["source"])
    assert found.rows[0]["note"].startswith("profile new (")
    assert [f"mlp: {found.rows[0]['note']}"] == found.validation.notes


def test_a_degraded_profile_stays_with_a_note():
    found = aggregate(roster(expected()), [profile(flags=["drifting"])])

    assert ("PASS", "degraded", "degraded: drifting") == (
        found.validation.status,
        found.rows[0]["validity"],
        found.rows[0]["note"],
    )


def test_of_several_profiles_the_one_that_is_meant_is_taken_by_precision_or_batch():
    one, two = profile(), spoiled(profile(), "job.workload.batch", 8)

    assert judged([expected()], [one, two]).errors[0].startswith("mlp: 2 profiles match")
    assert "PASS" == judged([expected(batch=8)], [one, two]).status
    assert judged([expected(precision="bf16")], [one, two]).errors


def test_a_file_that_is_none_is_an_error_whatever_else_is_there():
    spoilt = profile()._replace(where="broken.json", trouble="cannot be read: x")

    verdict = judged([expected()], [profile(), spoilt])

    assert ["broken.json: cannot be read: x"] == verdict.errors


def test_the_table_is_a_csv_that_no_spreadsheet_runs():
    models = [expected("=1+1", identity="mlp"), expected("a,b", identity="cnn")]

    text = comma_separated(aggregate(roster(*models), [profile("mlp"), profile("cnn")]).rows)

    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(FIELDS) == list(rows[0])
    assert ["'=1+1", "a,b"] == [row["model"] for row in rows]
    assert ("10.0", "8256", "") == (rows[0]["p50_ms"], rows[0]["parameters"], rows[0]["note"])
