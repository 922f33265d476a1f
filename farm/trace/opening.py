"""What a file of a trace means: the trace in it, or an analysis that was kept.

What a file is, its content tells. It is read once, since a pipe gives its bytes only once.
"""

import io
import re
import shlex
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from farm import schema
from farm.errors import Bad, Refused, did_you_mean
from farm.reading import short
from farm.trace.analysis.analysing import Analysed, analysed
from farm.trace.analysis.record import Analysis
from farm.trace.reading import reader
from farm.trace.reading.inflating import chunks
from farm.trace.reading.tally import Tally

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_HEAD: Final = 4096  # bytes: a document says first what it is
_BOM: Final = b"\xef\xbb\xbf"
_START: Final = rb"\A(?:" + _BOM + rb")?\s*"
_DOCUMENT: Final = re.compile(_START + rb'\{\s*"schema"\s*:\s*"([^"\\]{1,80})"')
_LAYERS: Final = (
    ("TensorRT", re.compile(_START + rb'\[\s*\{\s*"count"\s*:\s*\d+\s*\}')),
    ("ONNX Runtime", re.compile(_START + rb'\[\s*\{[^{}]*"cat"\s*:\s*"(?:Session|Node)"')),
)
_OURS: Final = "farm.analysis/"
_PIECE: Final = 1 << 20


class Opened(NamedTuple):
    """An analysis by the name of its file; made: what it was made of, None of a kept document."""

    name: str
    analysis: Analysis
    made: Analysed | None


def opened(path: Path) -> Opened:
    """Return the analysis of a file: a Chrome trace, plain or gzip, or a `profile.json` of ours.

    Raises Refused if it cannot be read, Bad if nothing in it can be analysed.
    """
    name = str(path)
    try:
        with path.open("rb") as file:
            return _of(file, name)
    except Bad as error:
        what = f"{short(name, limit=200)} cannot be analysed"
        raise Bad(what, why=str(error), hint=error.hint) from error
    except FileNotFoundError as error:
        raise Refused(
            f"no file {short(name)}", hint=did_you_mean(path.name, _near(path))
        ) from error
    except (OSError, ValueError) as error:
        why = (error.strerror or "") if isinstance(error, OSError) else str(error)
        raise Refused(f"cannot read {short(name)}", why=why) from error


def _of(file: io.BufferedReader, name: str) -> Opened:
    head = file.read(_HEAD)
    begin, whole = _unpacked(head), io.BufferedReader(_Again(head, file))
    if (document := _DOCUMENT.match(begin)) is not None:
        tag = document[1].decode("utf-8", "replace")
        if not tag.startswith(_OURS):
            raise Bad(f"it is a document of schema {tag!r}", why="that is no trace")
        data = b"".join(chunks(whole, Tally(), size=_PIECE))
        return Opened(name, schema.decode(data.removeprefix(_BOM), Analysis), None)
    for tool, pattern in _LAYERS:
        if pattern.match(begin):
            hint = f"`farm profile layers {shlex.quote(name)}` reads it"
            raise Bad(f"it is a layer profile of {tool}", why="that is no trace", hint=hint)
    made = analysed(reader.of(whole), name=name)
    return Opened(name, made.analysis, made)


def _unpacked(data: bytes) -> bytes:
    """Return the beginning of what is packed, or the data as it is."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return zlib.decompressobj(31).decompress(data, _HEAD)
    except zlib.error:
        return b""


def _near(path: Path) -> list[str]:
    try:
        return sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return []


class _Again(io.RawIOBase):
    """A file from its beginning, of which some was read already."""

    def __init__(self, head: bytes, file: io.BufferedReader) -> None:
        super().__init__()
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        if not self._head:
            return self._file.readinto(buffer)
        room = memoryview(buffer).cast("B")
        piece = self._head[: len(room)]
        self._head = self._head[len(piece) :]
        room[: len(piece)] = piece
        return len(piece)
