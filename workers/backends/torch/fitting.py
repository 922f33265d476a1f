"""The batch that fits a device's memory: measured at small batches, and a line through them.

What a step holds grows with its batch, and what it holds whatever the batch, such as weights and
moments of the optimiser, does not (S4.15).
"""

from collections.abc import Callable
from typing import Final

from workers.backends import LoadFailed

SHARE: Final = 0.70  # of the whole memory
MOST: Final = 1 << 16
_NEAR: Final = 16  # a batch is near enough to one that is too large by a sixteenth of it


def fitted(
    peak_at: Callable[[int], int | None],
    total_bytes: int,
    *,
    share: float = SHARE,
    most: int = MOST,
) -> int:
    """Return a batch whose measured peak stays within a share of the memory, close to the largest.

    peak_at: bytes at the peak of some steps at a batch, None where they did not fit at all. Batches
    at most double, and go where a line through the last two says that the room ends; from one that
    is too large they halve the way back to the last that fitted. Raises LoadFailed of kind `oom`
    if one item is too many.
    """
    room = share * total_bytes
    found: list[tuple[int, int]] = []
    batch, fits, too_many = 1, 0, most + 1
    while fits < batch < too_many:
        peak = peak_at(batch)
        if peak is None or peak > room:
            too_many = batch
        else:
            fits = batch
            found.append((batch, peak))
        batch = _next(found, room, fits=fits, too_many=too_many, most=most)
    if not found:
        raise LoadFailed("oom", "not even a batch of 1 fits the device", "use smaller images")
    return fits


def _next(found: list[tuple[int, int]], room: float, *, fits: int, too_many: int, most: int) -> int:
    """Return the batch to try after these; one that fits already if the answer is near enough."""
    if too_many <= most:  # one that is too large is known
        return fits if too_many - fits <= max(1, fits // _NEAR) else (fits + too_many) // 2
    foretold = min(2 * fits, _foretold(found, room), most)
    return foretold if foretold - fits > fits // _NEAR else fits


def _foretold(found: list[tuple[int, int]], room: float) -> int:
    """Return where a line through the last two measurements leaves the room."""
    if len(found) == 1:
        return MOST
    (few, low), (many, high) = found[-2:]
    slope = (high - low) / (many - few)
    return int(many + (room - high) / slope) if slope > 0 else MOST
