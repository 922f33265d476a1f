"""The laws of a comparison: a ratio always, a verdict never, and why."""

import msgspec
import pytest

from farm.interchange import compare_callables
from tests.farm.interchange import calls


@pytest.mark.seed("S4.89")
def test_a_single_run_cannot_support_the_call():
    """A thousand calls of one process are one run."""
    found = compare_callables(calls.document([10.0] * 50), calls.document([12.0] * 50))

    assert ("inconclusive", ["a single run cannot support the call"]) == (
        found.verdict,
        found.reasons,
    )
    assert (1.2, None, None, None) == (
        found.ratio,
        found.ratio_lo,
        found.two_se_ms,
        found.exceeds,
    )
    assert {"ratio_lo", "ratio_hi", "two_se_ms", "exceeds", "false_alarm"} == {*found.null_reasons}


@pytest.mark.seed("S4.87", "S4.88")
def test_several_runs_give_the_rule_with_its_numbers_and_a_leaning():
    """Twice the combined standard error with sample deviations; no verdict, since no pairs."""
    base = calls.document([10.0], [10.2], [9.8])
    head = calls.document([12.0], [12.2], [11.8])

    found = compare_callables(base, head)

    assert ("inconclusive", "worse", 3, 3) == (
        found.verdict,
        found.leaning,
        found.base_runs,
        found.head_runs,
    )
    assert pytest.approx(2 * (2 * 0.04 / 3) ** 0.5) == found.two_se_ms
    assert (True, 2.0) == (found.exceeds, round(found.difference_ms, 9))
    assert "|+2| ms > 2 SE = 0.3266 ms; equal sides exceed it in 11.6 %" in found.rule
    assert found.ratio_lo < 1.2 < found.ratio_hi


@pytest.mark.seed("S1.42", "S1.20")
@pytest.mark.parametrize(
    ("base", "head", "why"),
    [
        ({}, {"inputs_sha256": "cd" * 32}, "different inputs, by their SHA-256"),
        (
            {"device": "cuda", "visible": "0,1"},
            {"device": "cuda"},
            "different visible CUDA devices: 0,1 and all",
        ),
        ({}, {"warmup": 0}, "different warm-up: 10 and 0"),
        ({}, {"unit": "frame"}, "different units: request and frame"),
    ],
)
def test_other_inputs_visibility_or_protocol_are_incomparable(base, head, why):
    """The ratio is given all the same."""
    found = compare_callables(calls.document(**base), calls.document(**head))

    assert ("incomparable", "none", 1.0) == (found.verdict, found.leaning, found.ratio)
    assert why in found.reasons


def test_one_more_run_is_more_effort_and_no_other_protocol():
    found = compare_callables(calls.document([1.0, 1.0]), calls.document([1.0, 1.0], [1.0, 1.0]))

    assert "inconclusive" == found.verdict
    more = compare_callables(calls.document([1.0, 1.0]), calls.document([1.0]))
    assert ["different numbers of timed calls: 2 and 1"] == more.reasons


def test_an_invalid_side_is_incomparable():
    found = compare_callables(calls.document(), calls.document(flags=["contended"]))

    assert ["head is invalid: contended"] == found.reasons


def test_files_without_a_digest_are_compared_by_their_shapes():
    """The other tool may leave it out."""
    bare = msgspec.structs.replace(calls.document(), inputs_sha256=None)
    other = msgspec.structs.replace(bare, inputs={})

    assert "inconclusive" == compare_callables(bare, calls.document()).verdict
    assert ["different inputs"] == compare_callables(bare, other).reasons
