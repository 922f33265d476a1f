"""What a drawing of a trace is made of, as plain data: lanes, and rectangles in columns.

All times are whole nanoseconds from the start of the window on the device, so some are negative.
"""

from typing import Final, Literal

from msgspec import Struct

Place = Literal["stream", "idle", "thread"]
PLACES: Final[tuple[Place, ...]] = ("stream", "idle", "thread")
NOTHING: Final = -1  # no name, no phase, no lane


class Part(Struct, frozen=True, array_like=True):
    """Of a block the ns of one kind, and of how many events."""

    kind: int
    took: int
    count: int


class Rects(Struct, frozen=True, kw_only=True):
    """Rectangles by start, one in each place of the columns.

    name: an index of the names, NOTHING for a block of several events. count, took: how many events
    it stands for, and their lengths together. kind: of most of that time. phase: NOTHING where it
    has none, or the events of a block differ. launch: when the call that launched it began, None
    where nobody knows; by: the lane of that call. parts: of each block by its place.
    """

    start: list[int]
    length: list[int]
    row: list[int]
    name: list[int]
    kind: list[int]
    phase: list[int]
    launch: list[int | None]
    by: list[int]
    count: list[int]
    took: list[int]
    parts: dict[int, list[Part]]


class Lane(Struct, frozen=True, kw_only=True):
    """What one stream, one host thread, or the gaps of one device hold, in rows that nest.

    of: the device, or the process. events: how many it stands for; merged: how many of them in
    blocks. resolution: only events shorter than so many ns were merged; 0 if none was.
    """

    place: Place
    title: str
    of: str
    rows: int
    events: int
    merged: int
    resolution: int
    rects: Rects


class Timeline(Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.timeline/v1"):
    """The lanes of the window, and of what of the host belongs to it.

    window: [0, its length); host: of the host; view: all that may be looked at. steps: begin and
    end of each; unmarked: how many there are where they are too many to be marked. kinds: the words
    of `kind` for each place. longest: names are cut there.
    """

    window: tuple[int, int]
    host: tuple[int, int]
    view: tuple[int, int]
    steps: list[tuple[int, int]]
    unmarked: int
    names: list[str]
    kinds: dict[str, list[str]]
    phases: list[str]
    longest: int
    lanes: list[Lane]

    @property
    def rects(self) -> int:
        """How many rectangles there are in all."""
        return sum(len(each.rects.start) for each in self.lanes)

    @property
    def merged(self) -> int:
        """How many events stand in blocks."""
        return sum(each.merged for each in self.lanes)

    @property
    def blocks(self) -> int:
        """How many blocks they stand in."""
        return sum(len(each.rects.parts) for each in self.lanes)
