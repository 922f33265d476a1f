"""What a file is, as its beginning tells: a trace, an analysis, layers, or something else.

A name tells nothing, and a file may be larger than memory: the first bytes have to do.
"""

import io
import re
import zlib
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from farm.trace.blocks import HEADER

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD: Final = 4096  # bytes: a document says first what it is
BOM: Final = b"\xef\xbb\xbf"

_GZIP: Final = b"\x1f\x8b"
_START: Final = rb"\A(?:" + BOM + rb")?\s*"
_DOCUMENT: Final = re.compile(_START + rb'\{\s*"schema"\s*:\s*"([^"\\]{1,80})"')
_ANALYSIS: Final = ("farm.analysis/", "libreyolo.profile.analysis/")
_LAYERS: Final = (
    ("TensorRT", re.compile(_START + rb'\[\s*\{\s*"count"\s*:\s*\d+\s*\}')),
    ("ONNX Runtime", re.compile(_START + rb'\[\s*\{[^{}]*"cat"\s*:\s*"(?:Session|Node)"')),
)
_CSV: Final = re.compile(_START + re.escape(HEADER).encode())
_CALLABLE: Final = re.compile(rb'"(?:timing_scope|measured_calls|latency_samples_ms)"\s*:')
_OBJECT: Final = re.compile(_START + rb"\{")
_LIST: Final = re.compile(_START + rb"\[\s*\{")

Sort = Literal["trace", "analysis", "document", "layers", "csv", "callable", "other"]


class Kind(NamedTuple):
    """What a file is. of: the schema of a document, the tool that wrote layers, else ""."""

    sort: Sort
    of: str = ""


OTHER: Final = Kind("other")


class Begun(NamedTuple):
    """A file whose beginning is known. file: all of it; closing that closes what it was made of."""

    kind: Kind
    file: io.BufferedReader


def begun(file: io.BufferedReader) -> Begun:
    """Return what an open file is, plain or gzip; it is read once, since a pipe gives bytes once.

    Traces alone are packed, so what cannot be unpacked is one. Raises OSError if it cannot be read.
    """
    head = file.read(HEAD)
    packed = head[:2] == _GZIP
    found = kind(_unpacked(head) if packed else head)
    lost = packed and found == OTHER
    return Begun(Kind("trace") if lost else found, io.BufferedReader(_Again(head, file)))


def kind(begin: bytes) -> Kind:
    """Return what a file is that begins so; it is whole if that is less than HEAD.

    A trace may say late that it is one: each object, and each list of them, that is nothing else
    and too long to be seen whole counts as one.
    """
    if (document := _DOCUMENT.match(begin)) is not None:
        tag = document[1].decode("utf-8", "replace")
        return Kind("analysis" if tag.startswith(_ANALYSIS) else "document", tag)
    for tool, pattern in _LAYERS:
        if pattern.match(begin):
            return Kind("layers", tool)
    if _CSV.match(begin):
        return Kind("csv")
    is_cut = len(begin) >= HEAD
    if _OBJECT.match(begin):
        if b'"traceEvents"' in begin:
            return Kind("trace")
        if _CALLABLE.search(begin):
            return Kind("callable")
        return Kind("trace") if is_cut else OTHER
    if _LIST.match(begin):
        return Kind("trace") if is_cut or b'"ph"' in begin else OTHER
    return OTHER


def _unpacked(data: bytes) -> bytes:
    """Return the beginning of what is packed; nothing if it is damaged there."""
    try:
        return zlib.decompressobj(31).decompress(data, HEAD)
    except zlib.error:
        return b""


class _Again(io.RawIOBase):
    """A file from its beginning, of which some was read already; closing it closes that."""

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

    def close(self) -> None:
        self._file.close()
        super().close()
