"""The batch that fits a device's memory: measured at small batches, and a line through them.

What a step holds grows with its batch, and what it holds whatever the batch, such as weights and
moments of the optimiser, does not (S4.15).
"""

from collections.abc import Callable
from typing import Final

from workers.backends import LoadFailed

SHARE: Final = 0.70  # of the whole memory
_ENOUGH: Final = 0.5  # of the room: from here on a line is near enough to what it foretells
MOST: Final = 1 << 16


def fitted(
    peak_at: Callable[[int], int | None],
    total_bytes: int,
    *,
    share: float = SHARE,
    most: int = MOST,
) -> int:
    """Return the largest batch whose peak stays within a share of the memory, by measuring a few.

    peak_at: bytes at the peak of some steps at a batch, None where they did not fit at all. Batches
    double until half of the room is used. Raises LoadFailed of kind `oom` if one item is too many.
    """
    room = share * total_bytes
    found: list[tuple[int, int]] = []
    batch, too_many = 1, most + 1
    while batch < too_many:
        peak = peak_at(batch)
        if peak is None or peak > room:
            too_many = batch
            break
        found.append((batch, peak))
        if peak > _ENOUGH * room:
            break
        batch *= 2
    if not found:
        raise LoadFailed("oom", "not even a batch of 1 fits the device", "use smaller images")
    return min(_foretold(found, room), too_many - 1)


def _foretold(found: list[tuple[int, int]], room: float) -> int:
    """Return where a line through the last two measurements leaves the room."""
    if len(found) == 1:
        return found[0][0]
    (few, low), (many, high) = found[-2:]
    slope = (high - low) / (many - few)
    if slope <= 0:
        return many
    return max(many, int(many + (room - high) / slope))
