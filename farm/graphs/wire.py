"""Protocol buffers as bytes: the fields of a message, one after another.

A message is a row of fields, each a number with a wire type, then a whole number, four or eight
bytes, or so many bytes as it says itself: text, packed numbers or another message.
"""

from collections.abc import Iterator
from mmap import mmap

Span = tuple[int, int]  # where a field begins and ends in the file
Value = int | Span


class Damaged(Exception):
    """The bytes do not read as the format says."""


class Wire:
    """The bytes of a file, read where they lie; every method raises Damaged for what is cut off."""

    def __init__(self, data: "mmap | bytes") -> None:
        self._data = data

    @property
    def whole(self) -> Span:
        return 0, len(self._data)

    def fields(self, span: Value | None) -> Iterator[tuple[int, Value]]:
        """Yield each field of a message in order: its number, and its value or where it lies.

        A whole number holds no message and gives nothing.
        """
        if not isinstance(span, tuple):
            return
        at, end = span
        while at < end:
            key, at = self._varint(at, end)
            kind = key & 7
            if kind == 0:
                value, at = self._varint(at, end)
                yield key >> 3, value
                continue
            size = {1: 8, 5: 4}.get(kind, 0)
            if kind == 2:
                size, at = self._varint(at, end)
            elif not size:
                raise Damaged(f"byte {at} is none of its format")
            if size < 0 or at + size > end:
                raise Damaged("it is cut off")
            yield key >> 3, (at, at + size)
            at += size

    def spans(self, span: Value | None, wanted: int) -> list[Span]:
        """Return where the fields of one number lie."""
        fields = self.fields(span)
        return [each for number, each in fields if number == wanted and isinstance(each, tuple)]

    def text(self, value: Value | None) -> str:
        """Return a field as text, "" where it is none or not there."""
        return self.bytes(value).decode("utf-8", "replace")

    def bytes(self, value: Value | None) -> bytes:
        """Return the bytes of a field, none where it has none or is not there."""
        return self._data[value[0] : value[1]] if isinstance(value, tuple) else b""

    def wholes(self, value: Value) -> list[int]:
        """Return one whole number, or those of a packed field."""
        if isinstance(value, int):
            return [value]
        at, end = value
        found = []
        while at < end:
            each, at = self._varint(at, end)
            found.append(each)
        return found

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        while at < end and shift < 70:
            byte = self._data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                value &= (1 << 64) - 1
                return value if value < 1 << 63 else value - (1 << 64), at
        raise Damaged("it is cut off" if at >= end else f"byte {at} is none of its format")
