"""The part of a list of events that is looked at: one buffer, written over again and again.

A new piece of memory for each part would cost a quarter of the time of reading.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

_LOOK_BACK: Final = 64  # bytes before an event that are searched for the end of the one before
_TRIES: Final = 64  # braces that are looked at, from the last one
_CLOSE: Final = ord("]")


class Cut(NamedTuple):
    """end: after the last event that is followed by another. begin: where that one begins."""

    end: int
    begin: int


class Window:
    """Text that was not consumed. rest: how it begins, and pieces: how it goes on."""

    def __init__(self, rest: bytes, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._buffer = bytearray(b"[")  # before the text, there is room for a bracket
        self._size = 0
        self.is_last = False
        self._append(rest)

    def fill(self, wanted: int) -> None:
        """Let it hold as many bytes, or all there are: then it is the last."""
        while self._size < wanted and not self.is_last:
            piece = next(self._pieces, b"")
            self.is_last = not piece
            self._append(piece)

    def text(self) -> bytes:
        """Return all it holds."""
        return bytes(self._buffer[1 : 1 + self._size])

    def drop(self, until: int) -> None:
        """Forget its beginning."""
        left = self._size - until
        self._buffer[1 : 1 + left] = self._buffer[1 + until : 1 + self._size]
        self._size = left

    def try_list(self, cut: Cut, take: Callable[[memoryview], bool]) -> bool:
        """Offer what comes before a cut as a JSON list, where it lies."""
        end = 1 + cut.end
        kept, self._buffer[end] = self._buffer[end], _CLOSE
        with memoryview(self._buffer) as view:
            taken = take(view[: end + 1])
        self._buffer[end] = kept
        return taken

    def cut(self) -> Cut | None:
        """Return where it may be cut between two events, as late as it can be.

        What looks like it may stand in a string or within an event; then it is no list.
        """
        begin = 1 + self._size
        for _ in range(_TRIES):
            begin = self._buffer.rfind(b"{", 1, begin)
            if begin < 0:
                return None
            first = max(1, begin - _LOOK_BACK)
            before = self._buffer[first:begin].rstrip()
            if before.endswith(b","):
                before = before[:-1].rstrip()
                if before.endswith(b"}"):
                    return Cut(first + len(before) - 1, begin - 1)
        return None

    def _append(self, piece: bytes) -> None:
        end = 1 + self._size
        self._buffer[end : end + len(piece)] = piece
        self._size += len(piece)
