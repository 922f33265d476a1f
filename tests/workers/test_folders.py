"""What children leave on this disk: when it counts, and when it is of a child that broke."""

import msgspec
import numpy as np
import pytest

from farm import schema
from farm.schema import Captured
from tests.workers import make
from workers import folders
from workers.record import TRACE, TraceReading

FOUND = Captured(
    plain_ns=[10, 20],
    waits_ns=[],
    traced_ns=[30],
    stages_ns={"forward": [5]},
    pipeline="plain",
    unused=["conf"],
    notes=[],
)
READING = TraceReading(wanted=1, iterations=1, traced_ns=[30], trace_bytes=2)


@pytest.fixture
def attempt(tmp_path):
    """The folder of an attempt whose instrumented child left a trace."""
    inside = tmp_path / folders.INSTRUMENTED
    inside.mkdir()
    (inside / TRACE).write_text("{}")
    np.savez(inside / "samples.npz", latency_ns=np.array([], dtype=np.int64))
    folders.keep(inside, make.instrumented(trace=READING), ())
    folders.keep_captured(tmp_path, FOUND)
    return tmp_path


def test_what_was_found_beside_a_trace_is_a_document(attempt):
    data = (attempt / folders.CAPTURED).read_bytes()

    assert FOUND == schema.decode(data, Captured)
    assert "farm.captured/v1" == msgspec.json.decode(data)["schema"]
    assert not list(attempt.glob(".*"))


def test_a_trace_is_that_of_the_instrumented_child(attempt):
    assert attempt / folders.INSTRUMENTED / TRACE == folders.trace(attempt)


def test_a_record_keeps_how_its_trace_went(attempt):
    """The next attempt has to know it, too."""
    record, _, _ = folders.read(attempt / folders.INSTRUMENTED)

    assert READING == record.trace


@pytest.mark.parametrize("lacks", [TRACE, "record.json", "samples.npz"])
def test_a_child_that_died_left_no_trace(lacks, attempt):
    """It wrote one, perhaps all of it, and did not come to its end."""
    (attempt / folders.INSTRUMENTED / lacks).unlink()

    assert folders.trace(attempt) is None


def test_a_trace_of_which_the_child_says_nothing_is_none(attempt):
    """It was written, and then what was timed beside it broke."""
    reasons = {"trace": "phase_failed: RuntimeError: no"}
    folders.keep(attempt / folders.INSTRUMENTED, make.instrumented(reasons=reasons), ())

    assert folders.trace(attempt) is None


def test_an_attempt_without_instruments_left_no_trace(tmp_path):
    assert folders.trace(tmp_path) is None


def test_a_trace_without_what_was_found_beside_it_is_none(attempt):
    (attempt / folders.CAPTURED).unlink()

    assert folders.trace(attempt) is None
