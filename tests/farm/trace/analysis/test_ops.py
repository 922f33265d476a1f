"""Own times of operators against brute force, per nanosecond."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis import ops
from farm.trace.reading.columns import OP
from tests.farm.trace.analysis.traces import Event, launch, made, op, trace

OPS = st.lists(
    st.builds(
        lambda name, start, length, thread, external: op(
            name, start / 1000, length / 1000, thread=thread, external=external
        ),
        st.sampled_from("abcd"),
        st.integers(0, 12),
        st.integers(0, 9),
        st.integers(1, 2),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=8,
)


def by_force(events: list[Event]) -> dict[str, int]:
    """Return the ns in which an operator of each name was the newest one open on its thread."""
    found = dict.fromkeys((each["name"] for each in events), 0)
    for thread in (1, 2):
        mine = [each for each in events if each["tid"] == thread]
        for now in range(30):
            open_ = [each for each in mine if _begin(each) <= now < _begin(each) + _length(each)]
            if open_:
                found[max(open_, key=_newness)["name"]] += 1
    return found


def _begin(each: Event) -> int:
    return round(1000 * each["ts"])


def _length(each: Event) -> int:
    return round(1000 * each["dur"])


def _newness(each: Event) -> tuple[int, int, int, str]:
    return _begin(each), -_length(each), each["args"]["External id"], each["name"]


def own(events: list[Event]) -> dict[str, int]:
    """Return the own times by name in ns."""
    read = trace(events)
    chosen = read.events.where(read.events.kind == OP)
    times = ops.self_times(chosen).tolist()
    found = dict.fromkeys(read.names, 0)
    for name, took in zip(chosen.name.tolist(), times, strict=True):
        found[read.names[name]] += took
    return found


@given(OPS)
def test_an_instant_belongs_to_the_newest_operator_open_on_its_thread(events: list[Event]) -> None:
    """Also where ranges cross; ties: the longer is older, then External id, then name."""
    assert by_force(events) == own(events)


@given(OPS)
def test_own_times_add_up_to_the_union_of_each_thread(events: list[Event]) -> None:
    covered = {
        (each["tid"], now)
        for each in events
        for now in range(_begin(each), _begin(each) + _length(each))
    }

    assert len(covered) == sum(own(events).values())


def test_a_range_that_crosses_its_elder_goes_on_after_it() -> None:
    assert {"old": 4000, "new": 10000} == own([op("old", 0, 10), op("new", 4, 10)])


def test_the_cover_is_the_time_in_which_any_thread_has_an_operator_open() -> None:
    read = trace([op("a", 0, 10), op("b", 5, 10, thread=2), op("c", 30, 10)])

    assert 11_000 == ops.cover(read.events, 8_000, 34_000)


@pytest.mark.seed("S4.82", "S4.84")
def test_operators_are_listed_by_own_time_with_the_inclusive_time_beside_it() -> None:
    """The convolution counts once in what adds up, and three times in the total."""
    found = made([op("conv", 0, 100), op("_conv", 10, 85), op("cudnn_conv", 20, 70)]).analysis

    assert [("cudnn_conv", 0.07), ("_conv", 0.015), ("conv", 0.015)] == [
        (each.op, round(each.ms_per_step, 9)) for each in found.ops
    ]
    assert [0.07, 0.085, 0.1] == pytest.approx([each.total_ms_per_step for each in found.ops])
    assert 0.1 == pytest.approx(found.metrics["ops_self_ms"])
    assert 0.255 == pytest.approx(found.metrics["ops_total_ms"])


@pytest.mark.seed("S4.84")
def test_a_launch_counts_for_the_newest_operator_open_when_it_was_made() -> None:
    found = made([op("outer", 0, 100), op("inner", 20, 50), launch(30, 1), launch(80, 2)]).analysis

    assert {"outer": 1.0, "inner": 1.0} == {each.op: each.launches_per_step for each in found.ops}


@pytest.mark.parametrize("turned", [False, True])
def test_a_launch_goes_where_the_time_goes_whatever_the_order_of_the_file(turned: bool) -> None:
    """Of two operators that start and end together the one with the larger External id is newer."""
    pair = [op("outer", 0, 100, external=1), op("inner", 0, 100, external=2)]

    found = made([*(reversed(pair) if turned else pair), launch(30, 1)]).analysis

    assert {"outer": (0.0, 0.0), "inner": (0.1, 1.0)} == {
        each.op: (each.ms_per_step, each.launches_per_step) for each in found.ops
    }
