"""What is mended and what is left out is counted by name."""

import pytest

from farm.trace.reading.tally import DROPPED, REPAIRED, Tally


def test_a_name_is_either_of_what_was_mended_or_of_what_was_dropped() -> None:
    assert len(REPAIRED) + len(DROPPED) == len({*REPAIRED, *DROPPED})


@pytest.mark.parametrize("name", REPAIRED)
def test_what_was_mended_adds_up(name: str) -> None:
    tally = Tally()

    tally.repair(name)
    tally.repair(name, 2)

    assert {name: 3} == tally.repaired
    assert {} == tally.dropped


@pytest.mark.parametrize("name", DROPPED)
def test_what_was_dropped_adds_up(name: str) -> None:
    tally = Tally()

    tally.drop(name)
    tally.drop(name, 2)

    assert {name: 3} == tally.dropped
    assert {} == tally.repaired


def test_what_did_not_happen_leaves_no_trace() -> None:
    """Else a file without a fault would seem to have been repaired, 0 times."""
    tally = Tally()

    tally.repair("bom", 0)
    tally.repair("bom", False)
    tally.drop("no_ts", 0)

    assert Tally() == tally


def test_a_counter_that_nobody_knows_is_a_fault_of_the_program() -> None:
    with pytest.raises(AssertionError, match="typo"):
        Tally().repair("typo")
    with pytest.raises(AssertionError, match="bom"):
        Tally().drop("bom")
