"""What is in which lane: nothing twice, nothing of a thread upon itself, all kinds told apart."""

from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis.gathering import Gathered
from farm.trace.timeline import lanes
from farm.trace.timeline.lanes import Drawn
from farm.trace.timeline.merging import UNKNOWN
from farm.trace.timeline.record import NOTHING
from tests.farm.trace.analysis.traces import (
    GEMM,
    call,
    copy,
    gathered,
    kernel,
    launch,
    launched,
    op,
    span,
    step,
)

EVER = (-(10**12), 10**12)


def told(found: Gathered, drawn: Drawn, field: str) -> list[str]:
    """Return a column of a lane in words."""
    words = {"name": found.trace.names, "phase": found.words, "kind": lanes.kinds()[drawn.place]}
    return [words[field][each] for each in getattr(drawn.marks, field).tolist()]


def test_a_lane_is_a_stream_of_a_device_in_the_order_of_their_numbers() -> None:
    where = [(10, 0), (9, 0), (7, 1)]
    events = [
        launched(20 * at + 10, 5, at + 1, stream=s, device=d) for at, (s, d) in enumerate(where)
    ]
    found = gathered([one for each in events for one in each])

    made = lanes.streams(found, *EVER)

    assert ["GPU 0, stream 9", "GPU 0, stream 10", "GPU 1, stream 7"] == [x.title for x in made]
    assert [1, 1, 1] == [each.marks.size for each in made]


def test_a_kernel_has_its_category_its_phase_and_its_launch() -> None:
    found = gathered([span("step/forward", 0, 50), *launched(20, 5, 1, name=GEMM)])

    (stream,) = lanes.streams(found, *EVER)

    assert ["gemm"] == told(found, stream, "kind")
    assert ["forward"] == told(found, stream, "phase")
    assert [10_000] == stream.marks.launch.tolist()


def test_an_orphan_has_no_launch_and_a_copy_is_one_whatever_it_is_called() -> None:
    found = gathered([launch(0, 1), kernel(5, 5, 1), kernel(20, 5), copy(40, 5)])

    work, copies = lanes.streams(found, *EVER)

    assert [UNKNOWN] == work.marks.launch.tolist()[1:]
    assert [NOTHING] == work.marks.by.tolist()[1:]
    assert ["memcpy"] == told(found, copies, "kind")


def test_only_what_touches_the_view_is_in_a_lane() -> None:
    found = gathered([*launched(20, 10, 1), *launched(60, 10, 2), *launched(100, 10, 3)])

    (stream,) = lanes.streams(found, 30_000, 100_000)

    assert [20_000, 60_000] == stream.marks.start.tolist()


def test_what_a_thread_does_is_told_apart() -> None:
    """Spans that are phases, others, ops, launches, waits and other calls."""
    found = gathered(
        [
            *(step(1, 0, 100), span("step/forward", 0, 90), op("aten::mm", 1, 80)),
            *(launch(2, 1), kernel(9, 5, 1), call("cudaStreamSynchronize", 20, 5)),
            call("cudaEventRecord", 30, 5),
        ]
    )

    (thread,) = lanes.threads(found, *EVER)

    assert [
        ("ProfilerStep#1", "span"),
        ("step/forward", "phase"),
        ("aten::mm", "op"),
        ("cudaLaunchKernel", "launch"),
        ("cudaStreamSynchronize", "wait"),
        ("cudaEventRecord", "call"),
    ] == list(zip(told(found, thread, "name"), told(found, thread, "kind"), strict=True))
    assert [0, 1, 2, 3, 3, 3] == thread.marks.row.tolist()


def test_a_name_of_a_phase_that_only_an_op_has_is_none() -> None:
    """An op called as a span of a phase would be called is an op."""
    found = gathered([op("step/odd", 0, 10), span("other", 20, 10)])

    (thread,) = lanes.threads(found, *EVER)

    assert ["op", "span"] == told(found, thread, "kind")


def test_the_thread_of_the_steps_comes_first_then_who_launches_most() -> None:
    found = gathered(
        [
            *(op("aten::a", 0, 9, thread=5), step(1, 0, 100, thread=9)),
            *(launch(2, 1, thread=7), kernel(9, 5, 1)),
        ]
    )

    assert ["thread 9", "thread 7", "thread 5"] == [x.title for x in lanes.threads(found, *EVER)]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), min_size=1, max_size=30),
)
def test_no_two_of_a_row_overlap(drawn: list[tuple[int, int]]) -> None:
    """Also where ranges cross, which real files have."""
    (thread,) = lanes.threads(gathered([op("aten::x", *each) for each in drawn]), *EVER)
    marks = thread.marks

    assert len(drawn) == marks.size
    for row in range(int(marks.row.max()) + 1):
        mine = marks.where(marks.row == row)
        assert all(
            end <= start
            for end, start in zip(mine.end.tolist(), mine.start.tolist()[1:], strict=False)
        )


def test_what_is_nested_very_deeply_shares_the_last_row() -> None:
    deep = lanes.DEEPEST + 5
    found = gathered([op("aten::x", at, 2 * (deep - at)) for at in range(deep)])

    (thread,) = lanes.threads(found, *EVER)

    assert (deep, lanes.DEEPEST - 1) == (thread.marks.size, int(thread.marks.row.max()))


def test_very_many_lanes_end_in_one_that_holds_the_rest() -> None:
    many = [op("aten::x", 0, 10, thread=at) for at in range(200)]

    made = lanes.threads(gathered(many), *EVER)

    assert (25, "176 more threads, upon each other") == (len(made), made[-1].title)
    assert 200 == sum(each.marks.size for each in made)
    assert 176 == len(made[-1].lanes)
