"""What is kept of decoded events: spans and memory, with their lanes, ids and faults."""

from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.reading.collecting import KINDS, Collector, TooFar
from farm.trace.reading.columns import ABSENT, NONE, Allocations, Events, Lane
from farm.trace.reading.events import Args, Event
from farm.trace.reading.tally import Tally
from tests.farm.trace.reading.told import WORDS

FAR = 2**43  # µs
DAY = 24 * 3600 * 10**6  # µs


def span(cat: str = "kernel", **fields: Any) -> Event:
    return Event(ph="X", cat=cat, **({"ts": 5.0, "dur": 1.0} | fields))


def collected(*batches: list[Event]) -> tuple[Events, list[str], list[Lane], Tally]:
    """Return what was kept of events that came in batches, and what was counted."""
    tally = Tally()
    collector = Collector(tally)
    for each in batches:
        collector.add(each)
    return *collector.events(), tally


def lanes(*found: Event) -> list[tuple[str, str]]:
    events, _, table, _ = collected(list(found))
    return [tuple(table[at]) for at in events.lane]


def ids(*found: int | str | None) -> list[int]:
    events, *_ = collected([span(args=Args(correlation=each)) for each in found])
    return [int(each) for each in events.correlation]


# ── spans ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cat", KINDS)
def test_a_category_says_what_a_span_is(cat: str) -> None:
    events, names, _, tally = collected([span(cat, name="n", ts=1.5, dur=0.25)])

    assert ([1500], [1750], [0]) == tuple(each.tolist() for each in (*events[:2], events.name))
    assert ([KINDS[cat]], ["n"], Tally()) == (events.kind.tolist(), names, tally)


@pytest.mark.parametrize("cat", ["", "python_function", "ac2g", "Trace", "overhead", "KERNEL"])
def test_other_categories_are_only_counted(cat: str) -> None:
    tally = Tally()
    collector = Collector(tally)
    collector.add([span(cat), span(cat, dur=-1.0), Event(ph="M", cat=cat, name="[memory]")])

    assert {cat: 3} == collector.categories
    assert (0, 0) == (len(collector.events()[0].start), len(collector.allocations().time))
    assert Tally() == tally


@pytest.mark.parametrize("cat", ["cpu_op", "Operator"])
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("ProfilerStep#3", "annotation"),
        ("Optimizer.step#SGD.step", "annotation"),
        ("enumerate(DataLoader)#_Next.__next__", "annotation"),
        ("aten::mm", "op"),
        ("my ProfilerStep#3", "op"),
    ],
)
def test_marks_among_the_operators_are_annotations(cat: str, name: str, word: str) -> None:
    assert [word] == [WORDS[each] for each in collected([span(cat, name=name)])[0].kind]


def test_a_span_without_a_name_is_called_unknown() -> None:
    found, names, _, _ = collected([span(), span(name=""), span(name="a")])

    assert ["unknown", "unknown", "a"] == [names[each] for each in found.name]


def test_work_runs_on_the_device_and_stream_of_its_arguments() -> None:
    where: dict[str, Any] = {"pid": 1, "tid": 2}

    assert [("0", "7"), ("1", "7"), ("0", "2"), ("1", "2")] == lanes(
        span(**where, args=Args(device=0, stream=7)),
        span(**where, args=Args(stream=7)),
        span(**where, args=Args(device=0)),
        span(**where),
    )
    assert [("1", "2")] == lanes(span("cpu_op", **where, args=Args(device=0, stream=7)))


def test_a_lane_is_the_same_however_a_dialect_writes_it() -> None:
    told = [(0, 7), ("0", "7"), (0, "stream 7")]
    events, _, table, _ = collected([span(pid=pid, tid=tid) for pid, tid in told])

    assert ([Lane("0", "7")], [0, 0, 0]) == (table, events.lane.tolist())


def test_ids_are_the_same_as_text_and_as_a_number() -> None:
    assert [5, 5, 5, 7] == ids(5, "5", "005", "7")
    assert [NONE] * 6 == ids(None, 0, -1, "0", "-1", "")
    assert 2**62 - 1 == ids(2**62 - 1)[0]


@given(
    st.lists(st.sampled_from([1, "1", "a", "b", -2, "-2", -3, 2**62, 2**63, 2**70, "z", None, 0]))
)
def test_ids_are_the_same_whatever_came_with_them(found: list[int | str | None]) -> None:
    """A word, a negative or a huge number gets one of its own, below −1."""
    at_once = ids(*found)
    tally = Tally()
    collector = Collector(tally)
    for each in found:
        collector.add([span(args=Args(correlation=each))])
    one_by_one = collector.events()[0].correlation.tolist()

    assert at_once == one_by_one
    meant = [0 if each in (None, 0) else str(each) for each in found]
    assert len(set(meant)) == len({*zip(meant, at_once, strict=True)}) == len({*at_once})
    assert all(each in (NONE, 1) or each < -1 for each in at_once)


def test_the_newer_word_for_an_id_stands_before_the_older() -> None:
    args = [
        Args(correlation=1, cid=2, external_id=3, old_external_id=4),
        Args(cid=2, old_external_id=4),
        Args(correlation=0, cid=2),
    ]
    events, *_ = collected([span(args=each) for each in args])

    assert ([1, 2, 0], [3, 4, 0]) == (events.correlation.tolist(), events.external.tolist())


def test_occupancy_is_told_or_is_no_number() -> None:
    args = [Args(occupancy=37.5), None, Args(occupancy=0.0), Args(occupancy=1e300)]
    found = collected([span(args=each) for each in args])[0].occupancy

    assert [37.5, True, 0.0] == [found[0], np.isnan(found[1]), found[2]]


def test_nothing_is_kept_of_events_that_are_decoded_again() -> None:
    tally = Tally()
    collector = Collector(tally)

    with pytest.raises(TooFar):
        collector.add([span(), Event(), span(ts=float(FAR))])
    with pytest.raises(TooFar):
        collector.add([span(), Event(), Event(ph="i", name="[memory]", ts=float(FAR))])

    assert 0 == len(collector.events()[0].start)
    assert (Tally(), {}) == (tally, collector.categories)


# ── faults ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (span(ts=nan), "no_ts"),
        (span("cpu_op", ts=nan, dur=-1.0), "no_ts"),
        (span(dur=-0.001), "negative_dur"),
        (span(dur=DAY + 1.0), "absurd_dur"),
        (span(dur=1e300), "absurd_dur"),
        (span(ts=0.0), "zero_ts"),
        (Event(), "no_phase"),
        (Event(ph="B", cat="cpu_op"), "no_ts"),
        (Event(ph="E"), "no_ts"),
    ],
)
def test_what_cannot_be_is_left_out_and_counted_once(event: Event, name: str) -> None:
    events, _, _, tally = collected([span(), event, span()])

    assert ([5000, 5000], {name: 1}, {}) == (events.start.tolist(), tally.dropped, tally.repaired)


@pytest.mark.parametrize(
    "event", [span(dur=float(DAY)), span(dur=0.0), span("cpu_op", ts=0.0), span(dur=nan)]
)
def test_what_is_only_odd_is_kept(event: Event) -> None:
    events, _, _, tally = collected([event])

    assert (1, Tally()) == (len(events.start), tally)


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cat", ["", "cpu_instant_event"])
def test_memory_events_are_kept_with_what_they_tell(cat: str) -> None:
    collector = Collector(Tally())
    told = Args(bytes=-512, allocated=2**62, device_type=1, device_id=0)
    collector.add([Event(ph="i", cat=cat, name="[memory]", ts=1.5, args=told)])
    collector.add([Event(ph="I", cat=cat, name="[memory]", ts=2.5)])
    collector.add([Event(ph="i", cat=cat, name="[memory]"), Event(ph="i", name="else", ts=1.0)])

    assert [
        [1500, 2500],
        [-512, ABSENT],
        [ABSENT, ABSENT],
        [ABSENT, ABSENT],
        [1, ABSENT],
        [0, ABSENT],
    ] == [each.tolist() for each in collector.allocations()]


def test_nothing_at_all_is_empty_columns() -> None:
    collector = Collector(Tally())

    events, names, table = collector.events()

    assert ([], []) == (names, table)
    assert [0] * len(Events._fields) == [len(each) for each in events]
    assert [0] * len(Allocations._fields) == [len(each) for each in collector.allocations()]
