"""A timeline as the drawing of a page reads it: columns of small numbers, each name once."""

from collections.abc import Sequence

from farm.report import inks, words
from farm.trace.timeline.record import NOTHING, Lane, Timeline


def packed(drawn: Timeline) -> dict[str, object]:
    """Return it as JSON values: starts as differences, a column of one value as that value.

    Of a block the counts and times stand in its parts only. Names are spelled out, so that none
    can steer how a page is read.
    """
    return {
        "window": drawn.window,
        "host": drawn.host,
        "view": drawn.view,
        "steps": drawn.steps,
        "names": [words.visible(each) for each in drawn.names],
        "phases": [words.visible(each) for each in drawn.phases],
        "kinds": {place: inks.kinds(place, each) for place, each in drawn.kinds.items()},
        "lanes": [_lane(each) for each in drawn.lanes],
    }


def _lane(lane: Lane) -> dict[str, object]:
    rects = lane.rects
    leads = [
        None if launch is None else start - launch
        for start, launch in zip(rects.start, rects.launch, strict=True)
    ]
    return {
        "place": lane.place,
        "title": words.visible(lane.title),
        "rows": lane.rows,
        "resolution": lane.resolution,
        "start": _steps(rects.start),
        "length": rects.length,
        "row": _column(rects.row, 0),
        "name": _column(rects.name, NOTHING),
        "kind": _column(rects.kind, 0),
        "phase": _column(rects.phase, NOTHING),
        "lead": _column(leads, None),
        "by": _column(rects.by, NOTHING),
        "parts": {
            str(at): [(each.kind, each.took, each.count) for each in parts]
            for at, parts in rects.parts.items()
        },
    }


def _steps(values: Sequence[int]) -> list[int]:
    """Return the first value, and of each other how much more it is than the one before."""
    return [each - before for before, each in zip((0, *values), values, strict=False)]


def _column(values: Sequence[int | None], otherwise: int | None) -> list[int | None] | int | None:
    """Return a column, or the one value that is all of it."""
    if not values:
        return otherwise
    return list(values) if any(each != values[0] for each in values) else values[0]
