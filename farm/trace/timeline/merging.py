"""Neighbours that are too short to be seen become blocks, so that any trace has a bounded drawing.

Nothing is dropped: a block knows how many events it stands for, and how long they took by kind.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farm.trace.timeline.record import NOTHING, Part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

UNKNOWN: Final = np.iinfo("i8").min  # when a launch began that nobody saw
_FINEST: Final = 6  # blocks of less than 2**6 ns are of no use
_COARSEST: Final = 62


class Marks(NamedTuple):
    """The events of one lane, one in each place: times in ns, `row` the depth that it is drawn at.

    launch: UNKNOWN where nobody knows it; by: the lane of the file that launched.
    """

    start: "Whole"
    end: "Whole"
    row: "Whole"
    name: "Whole"
    kind: "Whole"
    phase: "Whole"
    launch: "Whole"
    by: "Whole"

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.start.size)

    @property
    def length(self) -> "Whole":
        """How long each takes."""
        return self.end - self.start

    def where(self, chosen: "NDArray[np.bool_] | NDArray[np.intp]") -> "Marks":
        """Return those that a mask or a list of places chooses."""
        return Marks(*(each[chosen] for each in self))


class Merged(NamedTuple):
    """Marks, some of which are blocks: how many events each stands for, and their time."""

    marks: Marks
    events: "Whole"
    took: "Whole"
    parts: dict[int, list[Part]]


def resolution(lanes: Sequence[Marks], budget: int) -> int:
    """Return the ns below which neighbours have to be merged so that `budget` has room for all.

    0 if it has room as it is. Coarser never leaves more, as each block then lies in a longer one.
    In the end one for each row is left, however many that are.
    """
    if sum(each.size for each in lanes) <= budget:
        return 0
    low, high = _FINEST, _COARSEST
    while low < high:
        middle = (low + high) // 2
        if sum(_left(each, 1 << middle) for each in lanes) <= budget:
            high = middle
        else:
            low = middle + 1
    return 1 << low


def merged(marks: Marks, resolution: int) -> Merged:
    """Return the marks by start, with blocks for those that are shorter than the resolution.

    A block is of at least two that start in the same piece of time of that length and in one row.
    """
    group = _groups(marks, resolution)
    _, whose, count = np.unique(group, return_inverse=True, return_counts=True)
    alone = count[whose] == 1
    single, several = marks.where(alone), np.flatnonzero(~alone)
    if not several.size:
        order = np.argsort(single.start, kind="stable")
        made = single.where(order)
        return Merged(made, np.ones(made.size, "i8"), made.length, {})
    blocks, numbers, took, parts = _blocks(marks, several, whose[several])
    together = Marks(*(np.concatenate(pair) for pair in zip(single, blocks, strict=True)))
    order = np.argsort(together.start, kind="stable")
    place = np.empty(order.size, "i8")
    place[order] = np.arange(order.size)
    return Merged(
        together.where(order),
        np.r_[np.ones(single.size, "i8"), numbers][order],
        np.r_[single.length, took][order],
        {int(place[single.size + at]): each for at, each in enumerate(parts)},
    )


def _groups(marks: Marks, resolution: int) -> "Whole":
    """Return a number for each mark, the same for those that become one."""
    group = np.arange(marks.size)
    if resolution:
        short, pieces = _pieces(marks, resolution)
        group[short] = marks.size + np.unique(pieces, return_inverse=True)[1]
    return group


def _left(marks: Marks, resolution: int) -> int:
    """Return how many marks there would be."""
    short, pieces = _pieces(marks, resolution)
    return marks.size - short.size + int(np.unique(pieces).size)


def _pieces(marks: Marks, resolution: int) -> tuple["NDArray[np.intp]", "Whole"]:
    """Return which marks are short, and a number for the row and the piece of time of each."""
    short = np.flatnonzero(marks.length < resolution)
    if not short.size:
        return short, short.astype("i8")
    since = (marks.start[short] - marks.start.min()) // resolution
    return short, marks.row[short] * (since.max() + 1) + since


def _blocks(
    marks: Marks, which: "NDArray[np.intp]", whose: "Whole"
) -> tuple[Marks, "Whole", "Whole", list[list[Part]]]:
    """Return the blocks of the chosen marks, and of each its count, its time and its parts."""
    order = np.lexsort((marks.start[which], whose))
    which = which[order]
    first = np.flatnonzero(np.diff(whose[order], prepend=-1))
    mine = marks.where(which)
    took, parts = np.add.reduceat(mine.length, first), _parts(mine, first)
    end, phase = np.maximum.reduceat(mine.end, first), mine.phase[first]
    same = np.minimum.reduceat(mine.phase, first) == np.maximum.reduceat(mine.phase, first)
    nothing = np.full(first.size, NOTHING)
    blocks = Marks(
        start=mine.start[first],
        end=end,
        row=mine.row[first],
        name=nothing,
        kind=np.array([each[0].kind for each in parts], "i8"),
        phase=np.where(same, phase, NOTHING),
        launch=np.full(first.size, UNKNOWN),
        by=nothing,
    )
    return blocks, np.diff(first, append=which.size), took, parts


def _parts(marks: Marks, first: "NDArray[np.intp]") -> list[list[Part]]:
    """Return of each block the time and the number of its events by kind, the most time first."""
    kinds = int(marks.kind.max()) + 1
    block = np.repeat(np.arange(first.size), np.diff(first, append=marks.size))
    cell = block * kinds + marks.kind
    cells, whose, count = np.unique(cell, return_inverse=True, return_counts=True)
    took = np.zeros(cells.size, "i8")
    np.add.at(took, whose, marks.length)
    found: list[list[Part]] = [[] for _ in range(first.size)]
    for at, ns, many in zip(cells.tolist(), took.tolist(), count.tolist(), strict=True):
        found[at // kinds].append(Part(at % kinds, ns, many))
    return [sorted(each, key=lambda part: (-part.took, part.kind)) for each in found]
