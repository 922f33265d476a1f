"""How a phase of a child is recorded."""

import msgspec
import pytest

from farm.schema import Phase
from tests.workers.clockwork import MS, Machine
from workers.backends import NotOffered
from workers.running import recorded


def test_a_phase_says_how_it_ended() -> None:
    """A phase that raises is recorded as failed and the error goes on."""
    machine = Machine(lambda _i: MS)
    done: list[Phase] = []

    with recorded(done, "load", machine.clock):
        machine.step()
    with pytest.raises(ValueError, match="no"), recorded(done, "first", machine.clock):
        raise ValueError("no")

    assert [("load", "done", 0.001), ("first", "failed", 0.0)] == [
        (each.name, each.status, each.duration_s) for each in done
    ]


def test_half_a_character_in_an_error_does_not_break_the_record() -> None:
    """A document holds whole characters: the rest is spelt out."""
    done: list[Phase] = []

    with pytest.raises(ValueError, match="bad"), recorded(done, "first", lambda: 0):
        raise ValueError("\udcff bad")

    assert "ValueError: \\udcff bad" == done[0].reason
    assert msgspec.json.encode(done)


def test_an_instrument_that_is_not_offered_is_skipped_with_its_reason() -> None:
    """It did not fail: there is nothing of it for this step, and the phase says why."""
    done: list[Phase] = []

    with pytest.raises(NotOffered), recorded(done, "layers", lambda: 0, instrumented=True):
        raise NotOffered("not_applicable", "a function")

    assert [("skipped", "not_applicable: a function", True)] == [
        (each.status, each.reason, each.instrumented) for each in done
    ]
