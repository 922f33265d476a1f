"""Begins and ends of spans, joined as a stack of each thread."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from farm.trace.reading.columns import Lane
from farm.trace.reading.events import Args, Event
from farm.trace.reading.pairing import Half, joined
from farm.trace.reading.tally import Tally

HERE, THERE = Lane("1", "1"), Lane("1", "2")
Span = tuple[str, int, int]
HALVES = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from("BE"),
        st.sampled_from("ab"),
        st.none() | st.integers(1, 3),
    ),
    max_size=12,
)


def begin(time: int, name: str, correlation: int | None = None) -> Half:
    return time, Event(ph="B", cat="cpu_op", name=name, args=Args(correlation=correlation))


def end(time: int) -> Half:
    return time, Event(ph="E")


def spans(halves: dict[Lane, list[Half]]) -> tuple[list[Span], int]:
    """Return name, correlation and end of what was joined, and how many had no other."""
    tally = Tally()
    begins, ends = joined(halves, tally)
    told = [
        (each.name, int(each.args.correlation or 0) if each.args else 0, time)
        for each, time in zip(begins, ends, strict=True)
    ]
    return sorted(told), tally.repaired["unmatched"]


def nested(random: Random, depth: int, clock: list[int]) -> tuple[list[Half], list[Span]]:
    """Return halves of spans that lie in one another, each edge at a time of its own, and those."""
    halves: list[Half] = []
    told: list[Span] = []
    for _ in range(random.randint(0, 3) if depth else 0):
        clock[0] += 1
        number = clock[0]
        halves.append(begin(number, "op", number))
        inner, more = nested(random, depth - 1, clock)
        clock[0] += 1
        halves += [*inner, end(clock[0])]
        told += [*more, ("op", number, clock[0])]
    return halves, told


@given(st.integers(0, 2**32))
def test_spans_that_lie_in_one_another_are_found_again(number: int) -> None:
    random = Random(number)
    here, told_here = nested(random, 3, [0])
    there, told_there = nested(random, 3, [random.randint(0, 5)])
    random.shuffle(here)
    random.shuffle(there)

    assert (sorted(told_here + told_there), 0) == spans({HERE: here, THERE: there})


@given(HALVES, st.integers(0, 2**32))
def test_the_order_of_the_file_decides_nothing(
    given_: list[tuple[int, str, str, int | None]], number: int
) -> None:
    halves = [
        begin(time, name, correlation) if phase == "B" else end(time)
        for time, phase, name, correlation in given_
    ]
    other = Random(number).sample(halves, len(halves))

    assert spans({HERE: halves}) == spans({HERE: other})


@given(HALVES)
def test_every_half_is_in_a_pair_or_is_counted(
    given_: list[tuple[int, str, str, int | None]],
) -> None:
    halves = [begin(time, "a") if phase == "B" else end(time) for time, phase, _, _ in given_]

    found, unmatched = spans({HERE: halves})

    assert len(halves) == 2 * len(found) + unmatched


def test_an_end_closes_the_newest_begin_of_its_thread_alone() -> None:
    halves = {HERE: [begin(1, "outer"), begin(2, "inner"), end(3)], THERE: [end(4), begin(5, "x")]}

    assert ([("inner", 0, 3)], 3) == spans(halves)


def test_of_one_time_what_is_open_ends_before_the_next_begins() -> None:
    """Work on a stream often ends in the nanosecond in which the next begins."""
    halves = [begin(1, "a"), begin(2, "b"), end(2), end(3)]

    assert ([("a", 0, 2), ("b", 0, 3)], 0) == spans({HERE: halves})


def test_a_span_without_length_is_whole() -> None:
    assert ([("a", 0, 1)], 0) == spans({HERE: [end(1), begin(1, "a")]})


def test_an_end_before_its_begin_is_no_end() -> None:
    assert ([], 2) == spans({HERE: [end(1), begin(2, "a")]})
