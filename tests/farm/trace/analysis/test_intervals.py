"""Intervals against brute force on a line of whole numbers."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis import intervals

Pairs = list[tuple[int, int]]
LINE = range(-1, 32)
PAIRS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda each: (each[0], sum(each))),
    max_size=8,
)


def of(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and ends."""
    table = np.array(pairs, "i8").reshape(-1, 2)
    return table[:, 0], table[:, 1]


def points(pairs: Pairs) -> set[int]:
    """Return every instant that they cover."""
    return {at for begin, end in pairs for at in range(begin, end)}


def spans(pairs: Pairs) -> np.ndarray:
    return intervals.union(*of(pairs))


@given(PAIRS)
def test_a_union_covers_each_instant_that_an_interval_covers_and_no_other(pairs: Pairs) -> None:
    found = spans(pairs).tolist()

    assert points(pairs) == points(found)


@given(PAIRS)
def test_the_parts_of_a_union_are_sorted_and_do_not_touch(pairs: Pairs) -> None:
    found = spans(pairs).tolist()

    assert all(begin < end for begin, end in found)
    assert all(before[1] < after[0] for before, after in pairwise(found))


@given(PAIRS)
def test_a_total_is_the_number_of_instants(pairs: Pairs) -> None:
    assert len(points(pairs)) == intervals.total(spans(pairs))


@given(PAIRS, st.integers(0, 30), st.integers(0, 30))
def test_a_clip_keeps_what_is_inside(pairs: Pairs, one: int, other: int) -> None:
    begin, end = sorted((one, other))

    found = intervals.clip(spans(pairs), begin, end).tolist()

    assert points(pairs) & set(range(begin, end)) == points(found)
    assert all(first < last for first, last in found)


@given(PAIRS, PAIRS)
def test_a_difference_keeps_what_the_other_does_not_cover(pairs: Pairs, other: Pairs) -> None:
    found = intervals.without(spans(pairs), spans(other)).tolist()

    assert points(pairs) - points(other) == points(found)


@given(PAIRS)
def test_an_instant_is_covered_from_a_start_up_to_before_an_end(pairs: Pairs) -> None:
    found = intervals.covers(spans(pairs), np.array(LINE))

    assert [at in points(pairs) for at in LINE] == found.tolist()


@given(PAIRS, PAIRS)
def test_what_is_covered_of_an_interval_is_the_number_of_its_instants(
    pairs: Pairs, asked: Pairs
) -> None:
    found = intervals.covered(spans(pairs), *of(asked))

    expected = [len(points(pairs) & set(range(*each))) for each in asked]
    assert expected == found.tolist()


@given(PAIRS)
def test_the_newest_is_the_one_that_started_last_of_those_that_cover_an_instant(
    pairs: Pairs,
) -> None:
    """Of those that start together the last of the list."""
    pairs = sorted(pairs, key=lambda each: each[0])

    found = intervals.newest(*of(pairs), np.array(LINE))

    covering = [[at for at, (begin, end) in enumerate(pairs) if begin <= now < end] for now in LINE]
    assert [max(each, default=-1) for each in covering] == found.tolist()


@given(PAIRS, st.permutations(LINE))
def test_the_newest_does_not_depend_on_the_order_of_the_instants(
    pairs: Pairs, asked: list[int]
) -> None:
    pairs = sorted(pairs)
    at = np.array(asked)

    found = intervals.newest(*of(pairs), at)

    assert intervals.newest(*of(pairs), np.sort(at)).tolist() == found[np.argsort(at)].tolist()
