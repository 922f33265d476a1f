"""Where the list of events begins in a file, and what stands around it."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from farm.errors import Bad
from farm.trace.reading.extents import extent
from farm.trace.reading.tally import Tally

_BOM: Final = b"\xef\xbb\xbf"
_TOKEN: Final = re.compile(
    rb'(?P<key>"traceEvents"\s*:\s*(?=(?P<first>\S)))'
    rb'|(?P<cut>"traceEvents"\s*:?\s*\Z|"(?:[^"\\]|\\.)*\\?\Z)'  # which goes on in the next text
    rb'|"(?:[^"\\]|\\.)*"|[{}\[\]]',
    re.DOTALL,
)
_LOST: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_LONGEST: Final = 64 << 20  # bytes of the keys on either side
_NO_TRACE: Final = "expected a list of events, or an object with one under traceEvents"


class Opening(NamedTuple):
    """keys: those before the events. rest: what was read of the list. is_object: what it is in."""

    keys: dict[str, Any]
    rest: bytes
    is_object: bool


def opening(pieces: Iterator[bytes], tally: Tally) -> Opening:
    """Read up to the first event; raises Bad where there is no list of events."""
    text = b""
    while not text.removeprefix(_BOM).strip() or _BOM.startswith(text):
        more = next(pieces, b"")
        if not more:
            break
        text += more
        if text.startswith(_BOM):
            tally.repair("bom", not tally.repaired["bom"])
            text = text[len(_BOM) :]
        text = text if _BOM.startswith(text) else text.lstrip()
    if text[:1] == b"[":
        return Opening({}, text[1:], is_object=False)
    if text[:1] == b"{":
        return _in_object(text, pieces, tally)
    begin = text[:20].decode("utf-8", "replace")
    said = f"it begins with {begin!r}" if text else "it is empty"
    raise Bad("the file is no trace", why=f"{said}; {_NO_TRACE}")


def closing(
    text: bytes, pieces: Iterator[bytes], tally: Tally, *, is_object: bool
) -> dict[str, Any]:
    """Read what follows the list of events to the end of the file, and return its keys."""
    for piece in pieces:
        if len(text) < _LONGEST:
            text += piece
    if not is_object:
        tally.repair("trailing_data", bool(text.strip()))
        return {}
    inside = b"{" + text.lstrip().removeprefix(b",")
    size = extent(memoryview(inside))
    if size < 0:
        tally.repair("structure")
        return {}
    tally.repair("trailing_data", bool(inside[size:].strip()))
    inside = inside[:size]
    return _decoded(inside, tally)


def _in_object(text: bytes, pieces: Iterator[bytes], tally: Tally) -> Opening:
    scan = _Scan()
    while (found := scan.on(text)) is None and len(text) < _LONGEST:
        more = next(pieces, b"")
        if not more:
            break
        text += more
    if found is not None:
        if found["first"] != b"[":
            raise Bad("traceEvents is no list", why=_NO_TRACE)
        keys = _decoded(b"{" + text[1 : found.start()].rstrip().removesuffix(b",") + b"}", tally)
        return Opening(keys, text[found.end("first") :], is_object=True)
    lost = _LOST.search(text)  # a quote too many hides a key
    if lost is None:
        raise Bad("the file is no trace", why=f"it holds no traceEvents; {_NO_TRACE}")
    tally.repair("structure")
    return Opening({}, text[lost.end() :], is_object=True)


class _Scan:
    """A scan for the key of the events in an object, which goes on where the text ended."""

    def __init__(self) -> None:
        self._at = self._depth = 0

    def on(self, text: bytes) -> re.Match[bytes] | None:
        """Return the key with the first character of its value; None if it is not in this text."""
        for token in _TOKEN.finditer(text, self._at):
            if token["key"] is not None and self._depth == 1:
                return token
            if token["cut"] is not None:
                return None
            self._depth += (token[0] in (b"{", b"[")) - (token[0] in (b"}", b"]"))
            self._at = token.end()
        return None


def _decoded(text: bytes, tally: Tally) -> dict[str, Any]:
    """Return the keys of an object; none, counted, where it is damaged."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        tally.repair("structure")
        return {}
