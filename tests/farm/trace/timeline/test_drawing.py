"""The drawing holds what the analysis counts: busy time, idle by cause, steps; it has an end."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace import opening
from farm.trace.analysis.analysing import Analysed
from farm.trace.analysis.idle import Idle
from farm.trace.timeline import drawing
from farm.trace.timeline.record import NOTHING, Lane, Timeline
from tests.farm.trace.analysis import expected
from tests.farm.trace.analysis.test_idle import ANY, whole
from tests.farm.trace.analysis.traces import kernel, launch, launched, made, op, repeated, span

Spans = list[tuple[int, int]]


def of(drawn: Timeline, place: str) -> list[Lane]:
    return [each for each in drawn.lanes if each.place == place]


def covered(spans: Spans, begin: int, end: int) -> int:
    """Return the length of a union of spans in [begin, end), in another way than the analysis."""
    total, reached = 0, begin
    for start, stop in sorted(spans):
        low, top = max(start, reached), min(stop, end)
        total += max(0, top - low)
        reached = max(reached, top)
    return total


def assert_agrees(found: Analysed, drawn: Timeline) -> None:
    """Each device is busy and idle in the drawing as long as in the numbers, cause by cause."""
    begin, end = drawn.window
    for device in found.figures.devices:
        streams = [each.rects for each in of(drawn, "stream") if each.of == device.device]
        spans = [
            (start, start + length)
            for rects in streams
            for start, length in zip(rects.start, rects.length, strict=True)
        ]
        assert device.active == covered(spans, begin, end)
        (gaps,) = [each.rects for each in of(drawn, "idle") if each.of == device.device]
        split = [0] * len(Idle._fields)
        for kind, took in zip(gaps.kind, gaps.took, strict=True):
            split[kind] += took
        assert device.idle == Idle(*split)


@given(ANY)
def test_the_lanes_add_up_to_the_numbers(
    drawn: list[tuple[str, int, int, int, int, int]],
) -> None:
    found = made(whole(drawn))
    if found.figures.skewed:
        return

    assert_agrees(found, drawing.drawn(found))


REAL = [
    each
    for each in expected.files("traces")
    if not isinstance(each, str) or each.startswith(("03", "06", "11", "12", "14", "15", "16"))
]


@pytest.mark.parametrize("name", REAL)
def test_the_lanes_of_a_real_trace_add_up_and_nothing_of_it_is_merged(name: str) -> None:
    found = opening.opened(expected.DATA / name).made
    assert found is not None
    drawn = drawing.drawn(found)

    assert_agrees(found, drawn)
    assert 0 == drawn.merged
    assert drawn.rects <= drawing.MOST_RECTS
    assert len(drawn.steps) == found.analysis.window.real_steps


def busy_trace(kernels: int) -> Analysed:
    """Return a trace of so many kernels with an op around each launch, of two categories."""
    names = ("gemm_kernel", "transpose_kernel")
    events = []
    for at in range(kernels):
        events += [op("aten::mm", 10 * at, 6), launch(10 * at + 1, at + 1)]
        events.append(kernel(10 * at + 4, 3, at + 1, name=names[at % 3 == 0]))
    return made(events)


@pytest.mark.parametrize("most", [300, 2000, 10**6])
def test_a_drawing_has_at_most_so_many_rectangles_that_stand_for_all_events(most: int) -> None:
    """2,000 kernels with as many gaps, and 4,000 events of the host."""
    found = busy_trace(2000)
    drawn = drawing.drawn(found, most=most)

    assert drawn.rects <= most
    by_place = {each.place: each for each in drawn.lanes}
    assert 2000 == by_place["stream"].events == sum(by_place["stream"].rects.count)
    assert 4000 == by_place["thread"].events == sum(by_place["thread"].rects.count)
    assert 2000 * 3000 == sum(by_place["stream"].rects.took)
    assert sum(found.figures.devices[0].idle) == sum(by_place["idle"].rects.took)
    for lane in drawn.lanes:
        inside = [part.count for parts in lane.rects.parts.values() for part in parts]
        alone = sum(name != NOTHING for name in lane.rects.name)
        assert lane.merged == sum(inside)
        assert (lane.merged > 0) == (lane.resolution > 0)
        if lane.place != "idle":
            assert lane.events == lane.merged + alone
    assert (most < 10**6) == (drawn.merged > 0)


def test_devices_keep_their_detail_where_only_the_host_is_too_much() -> None:
    """Half of the room is theirs."""
    events = [op("aten::x", at / 10, 0.05) for at in range(3000)]
    found = made([*launched(20, 10, 1), *launched(200, 10, 2), *events])

    drawn = drawing.drawn(found, most=500)

    assert [0, 0] == [each.merged for each in drawn.lanes if each.place != "thread"]
    assert of(drawn, "thread")[0].merged > 0


def test_times_count_from_the_window_and_steps_touch() -> None:
    found = made(repeated(4, 100, lambda n, at: launched(at + 20, 30, n + 1)))
    drawn = drawing.drawn(found)

    assert ((0, 300_000), [(0, 100_000), (100_000, 200_000), (200_000, 300_000)]) == (
        drawn.window,
        drawn.steps,
    )
    assert (50_000, 350_000) == drawn.host
    assert drawn.view[0] < 0 < drawn.window[1] < drawn.view[1]


def test_a_launch_leads_to_the_lane_of_its_thread() -> None:
    drawn = drawing.drawn(made(repeated(3, 100, lambda n, at: launched(at + 20, 30, n + 1))))
    (stream,), (thread,) = of(drawn, "stream"), of(drawn, "thread")

    assert {drawn.lanes.index(thread)} == set(stream.rects.by)
    calls = [
        start
        for start, name in zip(thread.rects.start, thread.rects.name, strict=True)
        if drawn.names[name] == "cudaLaunchKernel"
    ]
    assert {each for each in stream.rects.launch if each >= drawn.host[0]} == set(calls)


def test_of_a_cpu_only_threads_are_drawn_with_the_steps_as_they_were_marked() -> None:
    found = made(repeated(3, 100, lambda n, at: [op("aten::mm", at + 5, 50)]))
    drawn = drawing.drawn(found)

    assert ["thread"] == [each.place for each in drawn.lanes]
    assert [(0, 100_000), (100_000, 200_000)] == drawn.steps


def test_where_the_clocks_disagree_no_gap_has_a_cause() -> None:
    """As the numbers tell none."""
    early = [*launched(20, 5, 1, before=-50), *launched(200, 5, 2, before=-50)]
    found = made(early)
    (gaps,) = of(drawing.drawn(found), "idle")

    assert found.figures.skewed
    assert {"skewed"} == {drawing.drawn(found).kinds["idle"][each] for each in gaps.rects.kind}


def test_names_are_cut_where_they_would_not_all_have_room() -> None:
    """Few keep 400 characters; of very many all stay within a million of them."""
    drawn = drawing.drawn(made([op("x" * 3000, 10, 5), op("short", 30, 5)]))
    longest, names = drawing.cut(["x" * 3000] * 6000)

    assert (400, ["x" * 399 + "…", "short"]) == (drawn.longest, drawn.names)
    assert longest < 400
    assert sum(map(len, names)) <= 1_000_000
    assert 20 == drawing.cut(["x" * 30] * 10**5)[0]


def test_more_steps_than_can_be_marked_are_counted() -> None:
    drawn = drawing.drawn(made(repeated(2002, 10, lambda n, at: [op("aten::mm", at + 1, 5)])))

    assert ([], 2001) == (drawn.steps, drawn.unmarked)


def test_a_trace_of_one_instant_can_be_drawn() -> None:
    for events in ([span("x", 5, 0)], launched(20, 0, 1), [kernel(20, 0)]):
        drawn = drawing.drawn(made(events))
        assert drawn.view[0] < drawn.view[1]
        assert drawn.rects >= 1


@given(st.integers(1, 30))
def test_it_survives_its_own_document(most: int) -> None:
    drawn = drawing.drawn(busy_trace(5), most=most)

    assert drawn == msgspec.json.decode(msgspec.json.encode(drawn), type=Timeline)
