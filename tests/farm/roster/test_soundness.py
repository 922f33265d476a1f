"""The laws of a sound profile: its own shape, finite numbers, percentiles in their order."""

import math

import pytest

from farm.roster import aggregate
from tests.farm.roster.held import callable_json, expected, profile, roster, spoiled

NONE = {"cost": "none", "identity": "predict.py:predict"}


def judged(models, reports):
    return aggregate(roster(*models), reports).validation


@pytest.mark.seed("S1.40")
@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("latency.n", "abc", "Expected `int`, got `str` - at `$.latency.n`"),
        ("latency.n", True, "Expected `int`, got `bool` - at `$.latency.n`"),
        ("repeats", {}, "Expected `array`, got `object` - at `$.repeats`"),
        ("quality.validity", "great", "Invalid enum value 'great' - at `$.quality.validity`"),
        ("execution", None, "Expected `object`, got `null` - at `$.execution`"),
    ],
)
def test_a_profile_that_is_not_what_its_schema_says_is_an_error(path, value, error):
    """Whatever is wrong with it, in a column of the table or outside."""
    found = aggregate(roster(expected()), [spoiled(profile(), path, value)])

    assert ([], "FAIL") == (found.rows, found.validation.status)
    said = [each for each in found.validation.errors if each.endswith(error)]
    assert said == [f"mlp: not a valid farm.profile/v1: {error}"]


@pytest.mark.seed("S1.43")
def test_a_number_outside_the_table_that_is_not_finite_is_named():
    """Of either kind of profile: it is JSON for Python, and the number is what is wrong with it."""
    inside = spoiled(callable_json(), "latency_samples_ms", [1.0, float("nan"), 3.0])
    deep = spoiled(profile(), "latency.mad_ms", float("-inf"))

    assert [
        "z: latency_samples_ms.1 is nan: a document holds finite numbers only",
    ] == judged([expected("z", **NONE)], [inside]).errors
    assert [
        "mlp: latency.mad_ms is -inf: a document holds finite numbers only",
    ] == judged([expected()], [deep]).errors


@pytest.mark.parametrize(
    ("p50", "p95", "p99", "error"),
    [
        (999.0, 11.0, 12.0, "latency.p50_ms is 999.0, more than p95_ms of 11.0"),
        (10.0, 13.0, 12.0, "latency.p95_ms is 13.0, more than p99_ms of 12.0"),
        (10.0, 10.0, 10.0, None),
        (math.nextafter(10.0, 11.0), 10.0, 10.0, None),  # the last digit of an interpolation
    ],
)
def test_a_percentile_that_exceeds_a_higher_one_is_an_error(p50, p95, p99, error):
    times = {"latency.p50_ms": p50, "latency.p95_ms": p95, "latency.p99_ms": p99}
    report = profile()
    for path, value in times.items():
        report = spoiled(report, path, value)

    assert ([f"mlp: {error}"] if error else []) == judged([expected()], [report]).errors


def test_a_profile_that_is_nested_too_deeply_is_an_error_and_no_traceback():
    """Python's reader goes deeper than its writer."""
    deep: list[object] = []
    for _ in range(200_000):
        deep = [deep]
    report = profile()
    spoilt = report._replace(plain={**report.plain, "more": deep})

    assert ["mlp: is nested too deeply"] == judged([expected()], [spoilt]).errors
