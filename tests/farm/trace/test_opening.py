"""A file of a trace is known by its content, read once, and never answered with a traceback."""

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from farm import schema
from farm.errors import Bad, NoResult, Refused
from farm.trace import blocks, opening
from farm.trace.files import Address
from farm.trace.importing.record import LayerProfile
from tests.farm.trace import g8


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return g8.file(tmp_path / "trace.json")


@pytest.mark.seed("S4.55")
def test_a_trace_and_the_analysis_of_it_say_the_same(trace: Path, tmp_path: Path) -> None:
    """An analysis that was kept has no events, so only the trace has `made`."""
    found = opening.opened(trace)

    kept = tmp_path / "profile.json"
    kept.write_bytes(schema.encode(found.analysis))
    again = opening.opened(kept)

    assert found.analysis == again.analysis
    assert (True, False) == (found.made is not None, again.made is not None)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b" \n\t"], ids=["", "bom", "blanks"])
def test_the_content_decides_and_not_the_name(
    trace: Path, tmp_path: Path, before: bytes, pack: Callable[[bytes], bytes]
) -> None:
    found = opening.opened(trace).analysis
    kept = msgspec.json.format(schema.encode(found), indent=2)

    for data in (trace.read_bytes(), kept):
        odd = tmp_path / "odd.txt"
        odd.write_bytes(pack(before + data))
        assert found.step_ms == opening.opened(odd).analysis.step_ms


def test_a_pipe_is_read_as_a_file_is(trace: Path, tmp_path: Path) -> None:
    """It gives its bytes once, and in small pieces as well."""
    expected = opening.opened(trace).analysis
    kept = schema.encode(expected)

    for data in (trace.read_bytes(), gzip.compress(trace.read_bytes()), kept):
        pipe = tmp_path / "63"
        os.mkfifo(pipe)
        writer = threading.Thread(target=_slowly, args=(pipe, data))
        writer.start()
        found = opening.opened(pipe).analysis
        writer.join(10)
        pipe.unlink()
        assert expected.metrics == found.metrics


def _slowly(pipe: Path, data: bytes) -> None:
    with pipe.open("wb", buffering=0) as file:
        for at in range(0, 100):
            file.write(data[at : at + 1])
        file.write(data[100:])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"x", "it begins with 'x'"),
        (b"a,b\n1,2\n", "it begins with 'a,b"),
        (b"\x08\x07 no graph", "it begins with '\\x08\\x07"),
        (b"PK\x03\x04", "it begins with 'PK"),
        (b"\x1f\x8b", "it is empty"),
        (b"[]", "it holds no event"),
        (b"{}", "it holds no traceEvents"),
        (b'{"traceEvents": 1}', "traceEvents is no list"),
        (b'{"schema": "farm.profile/v1"}', "it is a document of schema 'farm.profile/v1'"),
        (b'{"schema": "libreyolo.profile.analysis/v1"}', "missing required field `trace`"),
        (
            b'{"schema": "libreyolo.profile.analysis/v2"}',
            "expected a document of schema 'libreyolo",
        ),
        (b'{"schema": "farm.analysis/v1"}', "not a valid farm.analysis/v1"),
        (b'{"schema": "farm.analysis/v2"}', "expected a document of schema 'farm.analysis/v1'"),
        (b'{"schema": "farm.analysis/v1", "trace', "the document is not JSON"),
        (b'[{"count": 100}, {"name": "fc"}]', "timeMs of 'fc' is None"),
        (b'[\n{"cat" : "Session","ph" : "X"}]', "line 2 is no event"),
    ],
)
def test_what_is_no_trace_cannot_be_analysed_and_says_what_it_is(
    tmp_path: Path, content: bytes, why: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)

    with pytest.raises(Bad) as caught:
        opening.opened(path)

    assert f"'{path}' cannot be analysed" == caught.value.what
    assert why in caught.value.why


TENSORRT = (
    b'[{"count": 10}, {"name": "a", "timeMs": 30, "averageMs": 3},'
    b' {"name": "b", "timeMs": 10, "averageMs": 1}]'
)
CSV = blocks.HEADER.encode() + b"\nfc,100.0,1.0000,1.0000,0.1000,5.0000\n"


@pytest.mark.parametrize("data", [TENSORRT, gzip.compress(TENSORRT, mtime=0), CSV])
def test_a_layer_profile_is_read_and_no_trace(tmp_path: Path, data: bytes) -> None:
    """What it lacks is said where that is needed, and who reads it."""
    path = tmp_path / "a b.txt"
    path.write_bytes(data)

    found = opening.read(Address(path, None))
    with pytest.raises(Refused) as caught:
        opening.opened(path)

    assert isinstance(found, LayerProfile)
    assert ("TensorRT" if b"count" in data or data[:1] == b"\x1f" else "layer CSV") == found.tool
    assert f"a layer profile of {found.tool}" in caught.value.what or "layer CSV" == found.tool
    assert "it does not tell the events of a trace" == caught.value.why


def test_a_block_of_a_csv_is_named_by_its_number(tmp_path: Path) -> None:
    """Nothing else has blocks but one."""
    path = tmp_path / "layers.csv"
    path.write_bytes(CSV + CSV.replace(b"fc", b"other"))

    first, last = opening.read(Address(path, 1)), opening.read(Address(path, None))

    assert isinstance(first, LayerProfile)
    assert isinstance(last, LayerProfile)
    assert [["fc"], ["other"]] == [[row.layer for row in each.rows] for each in (first, last)]
    with pytest.raises(NoResult):
        opening.read(Address(path, 3))


def test_what_has_no_blocks_is_not_named_by_one(trace: Path, tmp_path: Path) -> None:
    layers = tmp_path / "trt.json"
    layers.write_bytes(TENSORRT)

    with pytest.raises(Refused, match="names no block"):
        opening.read(Address(trace, 1))
    with pytest.raises(NoResult, match="it has 1"):
        opening.read(Address(layers, 2))
    assert isinstance(opening.read(Address(layers, 1)), LayerProfile)


@pytest.mark.parametrize("packed", [False, True])
def test_an_analysis_may_end_anywhere(trace: Path, tmp_path: Path, packed: bool) -> None:
    """Wherever it was cut, it cannot be analysed, and that is said."""
    data = schema.encode(opening.opened(trace).analysis)
    data = gzip.compress(data) if packed else data
    path = tmp_path / "cut.json"

    for at in [*range(0, 120), len(data) // 2, len(data) * 7 // 8]:
        path.write_bytes(data[:at])
        with pytest.raises(Bad):
            opening.opened(path)


def test_a_file_that_is_not_there_is_refused_with_the_nearest(trace: Path) -> None:
    with pytest.raises(Refused) as caught:
        opening.opened(trace.with_name("trase.json"))

    assert caught.value.what.startswith("no file '")
    assert "did you mean `trace.json`?" == caught.value.hint


def test_a_folder_and_a_name_that_no_folder_holds_are_refused(tmp_path: Path) -> None:
    for path, why in ((tmp_path, "Is a directory"), (tmp_path / ("x" * 300), "File name too long")):
        with pytest.raises(Refused) as caught:
            opening.opened(path)
        assert why == caught.value.why


def test_a_file_that_nobody_may_read_is_refused(tmp_path: Path) -> None:
    """Reading itself fails, not opening."""
    with pytest.raises(Refused, match="cannot read"):
        opening.opened(Path("/proc/self/mem"))
