"""What is to be doubted, and how far the numbers can be trusted."""

import io
from collections.abc import Iterable

import pytest

from farm.trace.analysis.figures import figures
from farm.trace.analysis.gathering import gather
from farm.trace.analysis.quality import FLAGS, confidence, quality
from farm.trace.reading import reader
from tests.farm.trace import g8
from tests.farm.trace.analysis.traces import (
    Event,
    graph,
    kernel,
    launch,
    launched,
    repeated,
    seen,
    span,
    step,
    text,
)


def flags(events: Iterable[Event]) -> set[str]:
    return {*quality(*seen(events)).flags}


def steady(n: int = 5, *, length: float = 45.0, more: Iterable[Event] = ()) -> list[Event]:
    """Return n steps of 100 µs, of which nothing is to be doubted for n ≥ 4."""
    steps = repeated(n, 100, lambda number, at: launched(at + 40, length, number + 1))
    return [*steps, *more]


def test_a_sound_trace_has_no_flag() -> None:
    assert set() == flags(steady())
    assert set() == flags(g8.events())


def test_no_steps_is_told() -> None:
    assert "no_steps" in flags(launched(10, 5, 1))


@pytest.mark.parametrize(("n", "told"), [(3, True), (4, False)])
def test_fewer_than_three_steps_in_the_window_are_told(n: int, told: bool) -> None:
    assert told is ("few_steps" in flags(steady(n)))


def test_no_launches_is_told() -> None:
    events = [each for each in steady() if each["cat"] != "cuda_runtime"]

    assert "no_launches" in flags(events)


@pytest.mark.parametrize(("length", "told"), [(5, False), (5.001, True)])
def test_more_than_five_percent_of_kernel_time_without_a_launch_is_told(
    length: float, told: bool
) -> None:
    """95 µs in four steps, and an orphan beside them."""
    orphan = kernel(390, length, stream=9)

    assert told is ("unattributed" in flags(steady(length=23.75, more=[orphan])))


@pytest.mark.parametrize(
    ("ends", "told"), [((100, 200, 300, 400), False), ((100, 200, 300, 440), True)]
)
def test_steps_that_differ_by_more_than_ten_percent_are_told(
    ends: tuple[int, ...], told: bool
) -> None:
    events = [
        one
        for at, end in enumerate(ends)
        for one in (step(at, end - 90, 80), *launched(end - 50, 50, at + 1))
    ]

    assert told is ("unsteady" in flags(events))


@pytest.mark.parametrize(("beside", "told"), [(2.5, False), (2.501, True)])
def test_an_overlap_of_more_than_one_percent_of_the_busy_time_is_told(
    beside: float, told: bool
) -> None:
    """Of 225 µs in the whole file and the 25 of the kernel that are not beside them."""
    late = [launch(401, 90), kernel(485 - beside, 25 + beside, 90)]

    assert told is ("stream_overlap" in flags(steady(more=late)))


def test_overlaps_of_all_devices_are_held_against_the_busy_time_of_all() -> None:
    """1.5 of 200 µs on each of two: together no larger a share."""
    pair = [
        each
        for device in range(2)
        for of in (10 * device + 1, 10 * device + 2)
        for each in (
            launch(of, of),
            kernel(100 + 100 * (of % 10), 100 + 1.5 * (of % 2), of, device=device),
        )
    ]

    assert "stream_overlap" not in flags(pair)


@pytest.mark.parametrize(("gap", "told"), [(29, False), (29.001, True)])
def test_gaps_within_graphs_of_more_than_ten_percent_are_told(gap: float, told: bool) -> None:
    """Exactly ten are not, of whole nanoseconds: 29 of 290 µs, which in ms is more than a tenth."""

    def of_step(number: int, at: float) -> list[Event]:
        of = number + 1
        return [graph(at + 1, of), kernel(at + 20, 40, of), kernel(at + 60 + gap, 200 - gap, of)]

    assert told is ("graph_gaps" in flags(repeated(8, 290, of_step)))


def test_a_number_that_decided_near_its_threshold_is_told() -> None:
    """81 of 100 µs busy."""
    assert "near_threshold" in flags(steady(length=81))
    assert "near_threshold" not in flags(steady(length=90))


def test_an_end_that_was_cut_is_told_and_counted() -> None:
    found = quality(*seen([*steady(), launch(300, 90), kernel(140, 5000, 90)]))

    assert {"clipped_dur", "repaired"} <= {*found.flags}
    assert {"clipped_dur": 1} == found.repaired


def test_a_damaged_file_is_told() -> None:
    whole = text(steady())

    found = gather(reader.of(io.BytesIO(whole[:-60])))

    told = quality(found, figures(found))
    assert {"truncated"} <= {*told.flags}
    assert 1 == told.dropped["truncated"]


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ("high", []),
        ("medium", ["few_steps"]),
        ("medium", ["few_steps", "unsteady"]),
        ("low", ["few_steps", "unsteady", "stream_overlap"]),
        ("low", ["no_steps"]),
        ("low", ["no_launches"]),
        ("low", ["truncated"]),
    ],
)
def test_confidence_goes_with_the_flags(expected: str, told: list[str]) -> None:
    assert expected == confidence(told)


def test_every_flag_has_its_words() -> None:
    assert all(FLAGS.values())
    assert {"no_steps", "no_launches", "truncated"} < {*FLAGS}


def test_a_span_is_no_doubt() -> None:
    assert set() == flags(steady(more=[span("anything", 0, 5)]))
