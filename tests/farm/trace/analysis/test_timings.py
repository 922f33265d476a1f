"""The events that an analysis keeps give the numbers that its trace gives."""

import io
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert, structs, to_builtins

from farm import schema
from farm.errors import Bad, FarmError, Refused
from farm.trace import opening
from farm.trace.analysis import timings
from farm.trace.analysis.analysing import analysed
from farm.trace.analysis.kernels import categories
from farm.trace.analysis.record import Analysis
from farm.trace.analysis.timings import Timings
from farm.trace.opening import Opened
from farm.trace.projecting import projected
from farm.trace.reading import reader
from tests.farm.trace import g8, generating, writing
from tests.farm.trace.analysis.expected import DATA, files
from tests.farm.trace.analysis.traces import (
    COMM,
    call,
    copy,
    graph,
    kernel,
    made,
    repeated,
)

COLUMNS = (
    *("device", "stream", "kind", "category", "phase", "name", "launch"),
    *("start_ns", "duration_ns"),
)


def kept(opened: Opened) -> Opened:
    """Return what is left of it when its document was written and read again."""
    return Opened(opened.name, schema.decode(schema.encode(opened.analysis), Analysis), None)


def answers(opened: Opened) -> list[Any]:
    """Return every projection, or why there is none."""
    asked = [(each, None) for each in categories()] + [(None, n) for n in (1, 7, 10**6)]
    found: list[Any] = []
    for category, launches in asked:
        try:
            found.append(projected(opened, category=category, launches=launches))
        except FarmError as error:
            found.append((str(error), error.hint))
    return found


def of_bytes(data: bytes) -> Opened:
    found = analysed(reader.of(io.BytesIO(data)), name="trace.json")
    return Opened("trace.json", found.analysis, found)


def check(opened: Opened) -> None:
    assert answers(opened) == answers(kept(opened))


@given(st.integers(0, 2**32), st.integers(0, 5), st.integers(1, 4), st.integers(0, 400_000))
def test_a_kept_analysis_projects_as_its_trace_does(
    seed: int, steps: int, streams: int, ahead: int
) -> None:
    told = generating.trace(Random(seed), steps=steps, streams=streams, ahead=ahead)

    check(of_bytes(writing.file(told.events)))


@pytest.mark.parametrize("busy", [0.5, 0.9])
def test_so_does_that_of_the_traces_of_the_seeds(busy: float) -> None:
    found = of_bytes(g8.text(g8.events(busy=busy), deviceProperties=[g8.DEVICE]))

    check(found)
    assert found.analysis.timings is not None


@pytest.mark.parametrize("name", files("traces"))
def test_so_does_that_of_every_real_trace(name: str) -> None:
    check(opening.opened(DATA / name))


def columns(events: list[dict[str, Any]]) -> Timings:
    found = made(events).analysis.timings
    assert isinstance(found, Timings)
    return found


def test_each_column_has_one_number_for_each_event_of_the_window() -> None:
    """Four of five steps; what runs on into the window began at a time below 0."""
    told = repeated(
        5,
        1000,
        lambda number, at: [
            graph(at + 1, 3 * number + 1),
            kernel(at + 100, 100, 3 * number + 1, name=COMM),
            kernel(at + 150, 850, 3 * number + 1, stream=9),
            call("cudaMemcpyAsync", at + 2, of=3 * number + 3),
            copy(at + 990, 20, 3 * number + 3),
        ],
    )
    told.append(kernel(900, 300, stream=5))  # of no step, and until after the first

    found = columns(told)

    assert {len(found.start_ns)} == {len(getattr(found, each)) for each in COLUMNS}
    assert (4, 4_000_000) == (found.steps, found.window_ns)
    first = [getattr(found, each)[0] for each in ("kind", "start_ns", "duration_ns", "launch")]
    assert [0, -110_000, 300_000, timings.NO_LAUNCH] == first
    assert ["kernel", "gpu_memcpy", "gpu_memset"] == found.kinds
    assert {"5", "7", "9", "20"} == {*found.streams}
    groups = [each for each in found.launch if each >= 0]
    assert [2] * len({*groups}) == [groups.count(each) for each in dict.fromkeys(groups)]


def test_a_trace_without_a_gpu_has_columns_without_events() -> None:
    found = g8.analysis(g8.host()).timings

    assert isinstance(found, Timings)
    assert [[]] * len(COLUMNS) == [getattr(found, each) for each in COLUMNS]


def test_more_events_than_are_kept_are_null_and_the_trace_is_asked_for() -> None:
    """All or none: a union of some of them would be a lie."""
    trace = reader.of(io.BytesIO(g8.text(g8.events())))
    events = len(columns(g8.events()).start_ns)

    found = {each: analysed(trace, name="a", most=each).analysis for each in (events, events - 1)}

    assert isinstance(found[events].timings, Timings)
    assert found[events - 1].timings is None
    assert found[events - 1].null_reasons["timings"].startswith("not_supported: more than ")
    with pytest.raises(Refused, match="no kernels are removed") as caught:
        projected(Opened("a", found[events - 1], None), category="gemm", launches=None)
    assert "name its trace" == caught.value.hint


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("wrong", [[], [-(2**63)], [2**62], [-2]])
def test_columns_that_do_not_fit_are_told(column: str, wrong: list[int]) -> None:
    """A time before the window is none of these."""
    whole = columns(g8.events(steps=3))
    old = getattr(whole, column)
    odd = structs.replace(whole, **{column: wrong + old[1:] if wrong else old[1:]})
    if column == "start_ns" and wrong == [-2]:
        timings.of_document(odd)
        return

    with pytest.raises(Bad):
        timings.of_document(odd)


NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.integers(-2, 3)


@given(st.data())
def test_no_document_of_the_right_types_makes_anything_but_a_message(data: st.DataObject) -> None:
    plain = to_builtins(columns(g8.events(steps=2)))
    for each in data.draw(st.lists(st.sampled_from(sorted(plain)), max_size=3)):
        of = {int: NUMBERS, list: st.lists(NUMBERS if each in COLUMNS else st.text(max_size=3))}
        plain[each] = data.draw(of[type(plain[each])])
    odd = structs.replace(g8.analysis(g8.events(steps=2)), timings=convert(plain, Timings))

    answers(Opened("odd", odd, None))
