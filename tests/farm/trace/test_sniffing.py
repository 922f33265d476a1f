"""What a file is, by its first bytes alone."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import interchange, schema
from farm.trace import blocks, sniffing
from farm.trace.sniffing import HEAD, Kind
from tests.farm.interchange import calls
from tests.farm.trace import g8

TRACE = g8.text(g8.events())
LONG = b" " * HEAD
FOREIGN = b'{"schema":"libreyolo.profile.analysis/v1", "mode"'
KNOWN = [
    (TRACE, Kind("trace")),
    (b'{"a": {}, ' + LONG + b'"traceEvents": [', Kind("trace")),
    (b'{"traceEvents": []}', Kind("trace")),
    (b'[{"name": "x", "ph": "X"}]', Kind("trace")),
    (b'[{"name": "x"' + LONG, Kind("trace")),
    (schema.encode(g8.analysis(g8.events())), Kind("analysis", "farm.analysis/v1")),
    (b'{"schema": "farm.analysis/v9"', Kind("analysis", "farm.analysis/v9")),
    (FOREIGN, Kind("analysis", "libreyolo.profile.analysis/v1")),
    (b'{"schema": "farm.profile/v1"}', Kind("document", "farm.profile/v1")),
    (b'[\n {"count": 100}, {"name": ', Kind("layers", "TensorRT")),
    (b'[{"cat" : "Node","pid" : 1', Kind("layers", "ONNX Runtime")),
    (f"{blocks.HEADER}\na,1\n".encode(), Kind("csv")),
    (interchange.encode(calls.document()), Kind("callable")),
    (b'{"latency_samples_ms": [' + LONG, Kind("callable")),
    (b'{"a": 1}', Kind("other")),
    (b"[[" + LONG, Kind("other")),
    (b"[1, 2]", Kind("other")),
    (b"[]", Kind("other")),
    (b"hello", Kind("other")),
    (b"", Kind("other")),
]


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b" \n\t"], ids=["", "bom", "blanks"])
@pytest.mark.parametrize(("data", "expected"), KNOWN, ids=[repr(each[0][:24]) for each in KNOWN])
def test_the_beginning_tells_what_a_file_is(data: bytes, expected: Kind, before: bytes) -> None:
    assert expected == begun(before + data).kind


def test_what_is_packed_is_unpacked_for_that() -> None:
    """And what cannot be unpacked is a trace, since nothing else is packed."""
    for data, expected in KNOWN:
        known = expected if expected.sort != "other" else Kind("trace")
        assert known == begun(gzip.compress(data)).kind

    assert Kind("trace") == begun(b"\x1f\x8b").kind
    assert Kind("trace") == begun(b"\x1f\x8bgarbage").kind


def begun(data: bytes) -> sniffing.Begun:
    return sniffing.begun(io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]


@given(st.binary(max_size=3 * HEAD), st.sampled_from([1, 100, HEAD, 2 * HEAD]))
def test_no_byte_is_lost_however_it_is_read(data: bytes, size: int) -> None:
    file = begun(data).file

    pieces = [*iter(lambda: file.read(size), b"")]

    assert data == b"".join(pieces)


@given(st.binary(max_size=200))
def test_anything_at_all_is_something(data: bytes) -> None:
    begun(data)
    begun(b"\x1f\x8b\x08" + data)
    sniffing.kind(b"{" + data)
    sniffing.kind(b"[{" + data)


def test_closing_it_closes_the_file() -> None:
    inner = io.BufferedReader(io.BytesIO(TRACE))  # type: ignore[arg-type]

    sniffing.begun(inner).file.close()

    assert inner.closed
