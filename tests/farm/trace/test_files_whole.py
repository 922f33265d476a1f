"""The laws of an append that fails, and of a file that is read once: nothing by halves."""

import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from farm.errors import Bad, Refused
from farm.trace import blocks, files, sidecar
from farm.trace.blocks import BlockRow
from farm.trace.sidecar import About
from tests.farm.trace.passes import ns, table
from tests.farm.trace.test_files import appended


def row(layer: str = "a", **more: float) -> BlockRow:
    fields = {"share_pct": 100.0, "average_ms": 1.0, "total_ms": 1.0, **more}
    return BlockRow(layer=layer, median_ms=None, std_ms=None, **fields)


def about(**more: object) -> About:
    made = table(["a"], ns([10, 12]))
    known = sidecar.about(made, written_at="", job_id="j", model="m", batch=1)
    return msgspec.structs.replace(known, **more)


def refused(path: Path, rows: Sequence[BlockRow], known: About, kind: type[Exception]) -> str:
    """Append, which must fail and change no byte; return what was said."""
    kept = (path, sidecar.beside(path))
    before = [each.read_bytes() for each in kept]
    with pytest.raises(kind) as caught:
        files.append(path, rows, known)
    assert before == [each.read_bytes() for each in kept]
    return str(caught.value)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (OSError(errno.ENOSPC, "no space left on device"), Refused),
        (Refused("cannot write"), Refused),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "no"), UnicodeEncodeError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_block_whose_run_cannot_be_noted_is_taken_back(
    tmp_path: Path, error: BaseException, raised: type[BaseException]
) -> None:
    """So a block is never without its run, and a second try appends it once."""
    path = tmp_path / "f.csv"
    appended(path, "a")
    before = path.read_bytes()

    def full(csv: Path, data: bytes) -> None:
        assert b"\nb,100.0," in csv.read_bytes(), "the block is there before its run is noted"
        raise error

    with pytest.raises(raised):
        files.append(path, [row("b")], about(), note=full)

    assert before == path.read_bytes()
    assert 2 == files.append(path, [row("b")], about())
    assert 2 == path.read_text().count(blocks.HEADER)
    assert "" == files.read(files.address(str(path))).doubt


def test_a_name_that_is_no_utf_8_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """The file beside it has to say the name."""
    path = tmp_path / os.fsdecode(b"x\xff.csv")

    for act in (lambda: files.check(path), lambda: appended(path, "a")):
        with pytest.raises(Refused, match="its name is no UTF-8"):
            act()
    assert [] == list(tmp_path.iterdir())


def test_such_a_file_of_another_tool_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"x\xff.csv")
    path.write_text(f"{blocks.HEADER}\na,100.0,1,1,1,1\n")

    found = files.read(files.Address(path, None))

    assert (None, True) == (found.about, "its name is no UTF-8" in found.doubt)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "the block at line 1 has no layer"),
        ([row("a" * 131_073)], "field larger than field limit (131072)"),
        ([row("a\ud800")], "surrogates not allowed"),
        ([row(share_pct=100.06)], "a share of 100.1 %"),
        ([row(average_ms=-0.05)], "'-0.0500' is negative"),
        ([row(total_ms=1e300)], "is no time"),
        ([row(total_ms=float("inf"))], "infinity"),
        ([row(average_ms=float("nan"))], "NaN"),
    ],
)
def test_no_block_is_written_that_cannot_be_read_again(
    tmp_path: Path, rows: list[BlockRow], why: str
) -> None:
    """It would make every block of the file unreadable, and the file would take none any more."""
    path = tmp_path / "f.csv"
    appended(path, "a")

    assert why in refused(path, rows, about(), Bad)
    assert 2 == appended(path, "b")


def test_the_longest_name_that_is_read_is_written(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"

    files.append(path, [row("a" * 131_072)], about())

    assert 131_072 == len(files.read(files.address(str(path))).rows[0].layer)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"iterations": 0}, "iterations is 0"),
        ({"iterations": 10**5000}, "iterations is a number too long to show"),
        ({"clean_ms": -2.0}, "clean_ms is -2.0"),
        ({"perturbation": 7.0}, "perturbation is 7.0"),
        ({"profiled_ms": None}, "of no clean iteration"),
    ],
)
def test_no_run_is_noted_that_cannot_be(tmp_path: Path, more: dict[str, object], why: str) -> None:
    path = tmp_path / "f.csv"
    appended(path, "a")

    assert why in refused(path, [row()], about(**more), Bad)


@pytest.mark.seed("S0.25")
def test_the_sidecar_tells_where_a_block_begins_also_behind_a_torn_line(tmp_path: Path) -> None:
    """By that place blocks of equal text are told apart."""
    path = tmp_path / "f.csv"
    path.write_text(f"{blocks.HEADER}\na,100.0,1,1,1,1")

    for job in ("j2", "j3"):
        appended(path, "b", job=job)

    beside = sidecar.load(path)
    assert beside is not None
    data = path.read_bytes()
    for each in beside.blocks:
        assert data[each.offset : each.offset + each.bytes].decode().startswith(blocks.HEADER)
    found = [files.read(files.Address(path, number)).about for number in (1, 2, 3)]
    assert [None, "j2", "j3"] == [each and each.job_id for each in found]


# ── reading once ─────────────────────────────────────────────────────────────────────────────────


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """It gives its bytes to one reader alone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = f"{blocks.HEADER}\na,100.0,1,1,1,1\n"
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()

    found = files.read(files.Address(pipe, None))

    writer.join(10)
    assert "a" == found.rows[0].layer


@pytest.mark.parametrize(("size", "fits"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_a_file_larger_than_any_table_is_bad(tmp_path: Path, size: int, fits: bool) -> None:
    path = tmp_path / "f.csv"
    with path.open("wb") as file:
        file.truncate(size)

    if fits:
        assert size == len(files.content(path, most=1 << 20))
        return
    with pytest.raises(Bad, match="larger than 1 MiB"):
        files.content(path, most=1 << 20)


def test_what_has_no_end_is_not_read_to_it() -> None:
    with pytest.raises(Bad, match="larger than 1 MiB"):
        files.content(Path("/dev/zero"), most=1 << 20)


@pytest.mark.parametrize("digits", [15, 16, 5000])
def test_a_number_of_a_block_that_no_file_has_is_told(tmp_path: Path, digits: int) -> None:
    """However many digits it has; the word is not repeated at length."""
    word = f"{tmp_path}/f.csv#{'9' * digits}"

    if digits == 15:
        assert 10**15 - 1 == files.address(word).number
        return
    with pytest.raises(Refused, match="is more than any file has") as caught:
        files.address(word)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("number", ["0", "00", "0" * 5000])
def test_noughts_count_no_block(number: str) -> None:
    with pytest.raises(Refused, match=r"is not 1, 2, …"):
        files.address(f"f.csv#{number}")
