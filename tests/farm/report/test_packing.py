"""What the drawing of a page reads can be turned back into the timeline it was made of."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from farm.report import packing
from farm.trace.timeline import drawing
from farm.trace.timeline.record import Lane
from tests.farm.trace.analysis.test_idle import ANY, whole
from tests.farm.trace.analysis.traces import kernel, made, op


def column(values: Any, size: int) -> list[Any]:
    return values if isinstance(values, list) else [values] * size


def assert_same(lane: Lane, block: dict[str, Any]) -> None:
    rects, size = lane.rects, len(lane.rects.start)
    starts: list[int] = []
    for each in block["start"]:
        starts.append(each + (starts[-1] if starts else 0))
    leads = column(block["lead"], size)

    assert rects.start == starts
    assert rects.length == block["length"]
    for name in ("row", "name", "kind", "phase", "by"):
        assert getattr(rects, name) == column(block[name], size)
    assert rects.launch == [
        None if lead is None else at - lead for at, lead in zip(starts, leads, strict=True)
    ]
    for at in range(size):
        parts = block["parts"].get(str(at), [(0, rects.length[at], 1)])
        assert rects.took[at] == sum(took for _, took, _ in parts)
        assert rects.count[at] == sum(count for _, _, count in parts)


@given(ANY, st.integers(3, 40))
def test_nothing_is_lost_in_packing(
    drawn: list[tuple[str, int, int, int, int, int]], most: int
) -> None:
    line = drawing.drawn(made(whole(drawn)), most=most)
    block: Any = packing.packed(line)

    assert len(line.lanes) == len(block["lanes"])
    for lane, packed in zip(line.lanes, block["lanes"], strict=True):
        assert_same(lane, packed)


def test_names_are_spelled_out_where_they_could_steer() -> None:
    block: Any = packing.packed(drawing.drawn(made([op("a\u202eb\x00", 10, 5), kernel(9, 5)])))

    assert "a\\u202eb\\x00" in block["names"]
