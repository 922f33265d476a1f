"""Blocks stand for all that they hold, in a number that is bounded whatever the file holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.timeline import merging
from farm.trace.timeline.merging import UNKNOWN, Marks
from farm.trace.timeline.record import NOTHING, Part

ANY = st.lists(
    st.tuples(
        st.integers(-5_000, 5_000), st.integers(0, 900), st.integers(0, 3), st.integers(0, 4)
    ),
    min_size=1,
    max_size=40,
)


def marks(*rows: tuple[int, int, int, int], phase: int = 0) -> Marks:
    """Return marks of (start, length, row, kind)."""
    start, length, row, kind = np.array(rows, "i8").reshape(-1, 4).T
    number = np.arange(start.size)
    return Marks(
        start=start,
        end=start + length,
        row=row,
        name=number,
        kind=kind,
        phase=np.full(start.size, phase),
        launch=start - 7,
        by=np.zeros(start.size, "i8"),
    )


def test_without_a_resolution_all_stay_and_are_in_order() -> None:
    found = merging.merged(marks((20, 5, 0, 1), (0, 5, 0, 0)), 0)

    assert ([0, 20], [1, 0]) == (found.marks.start.tolist(), found.marks.name.tolist())
    assert ([1, 1], [5, 5], {}) == (found.events.tolist(), found.took.tolist(), found.parts)


def test_neighbours_that_are_short_become_a_block_that_tells_its_parts() -> None:
    """Its kind is that of most of its time; a longer event beside it stays what it is."""
    found = merging.merged(marks((0, 10, 0, 2), (20, 30, 0, 1), (60, 5, 0, 2), (70, 500, 0, 2)), 64)

    assert ([0, 70], [65, 570]) == (found.marks.start.tolist(), found.marks.end.tolist())
    assert ([3, 1], [45, 500]) == (found.events.tolist(), found.took.tolist())
    assert {0: [Part(1, 30, 1), Part(2, 15, 2)]} == found.parts
    assert ([1, 2], [NOTHING, 3]) == (found.marks.kind.tolist(), found.marks.name.tolist())
    assert [UNKNOWN, 63] == found.marks.launch.tolist()


def test_one_alone_is_no_block() -> None:
    assert {} == merging.merged(marks((0, 1, 0, 0), (64, 1, 0, 0)), 64).parts


def test_rows_do_not_mix() -> None:
    found = merging.merged(marks((0, 1, 0, 0), (2, 1, 1, 0), (4, 1, 0, 0), (6, 1, 1, 0)), 64)

    assert ([0, 1], [2, 2]) == (found.marks.row.tolist(), found.events.tolist())


def test_a_block_has_a_phase_where_all_in_it_have_the_same() -> None:
    same = merging.merged(marks((0, 1, 0, 0), (2, 1, 0, 0), phase=3), 64)
    mixed = marks((0, 1, 0, 0), (2, 1, 0, 0))._replace(phase=np.array([3, 4]))

    assert [3] == same.marks.phase.tolist()
    assert [NOTHING] == merging.merged(mixed, 64).marks.phase.tolist()


@given(ANY, st.integers(0, 12))
def test_no_event_and_no_time_is_lost(rows: list[tuple[int, int, int, int]], power: int) -> None:
    """In all, by kind, and of each row; a block spans what it holds."""
    given_ = marks(*rows)
    found = merging.merged(given_, 1 << power)
    blocks = [found.parts.get(at) for at in range(found.marks.size)]

    assert given_.size == found.events.sum()
    assert given_.length.sum() == found.took.sum()
    for row in range(4):
        mine, theirs = found.marks.row == row, given_.row == row
        assert given_.length[theirs].sum() == found.took[mine].sum()
    for kind in range(5):
        alone = [
            int(found.took[at])
            for at, each in enumerate(blocks)
            if each is None and found.marks.kind[at] == kind
        ]
        inside = [part.took for each in blocks if each for part in each if part.kind == kind]
        assert given_.length[given_.kind == kind].sum() == sum(alone) + sum(inside)
    for at, each in enumerate(blocks):
        if each is not None:
            assert found.events[at] == sum(part.count for part in each) >= 2
    assert given_.start.min() == found.marks.start.min()
    assert given_.end.max() == found.marks.end.max()
    assert sorted(found.marks.start.tolist()) == found.marks.start.tolist()


@given(ANY, st.integers(1, 60))
def test_the_resolution_is_the_finest_that_has_room(
    rows: list[tuple[int, int, int, int]], budget: int
) -> None:
    """Above the number of rows, which each need one."""
    given_ = marks(*rows)
    budget = max(budget, 4)
    fine = merging.resolution([given_], budget)

    assert merging.merged(given_, fine).marks.size <= budget
    if fine > 64:
        assert merging.merged(given_, fine // 2).marks.size > budget


@pytest.mark.parametrize("budget", [1, 3])
def test_where_no_resolution_has_room_each_row_keeps_one(budget: int) -> None:
    far = marks((-(10**6), 1, 0, 0), (5, 1, 0, 0), (9, 10**12, 1, 0), (10**7, 1, 1, 0))
    fine = merging.resolution([far, far], budget)

    assert merging.merged(far, fine).marks.size <= 4
