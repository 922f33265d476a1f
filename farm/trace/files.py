"""Layer CSVs on disk: appending a block, reading the blocks, and saying which one is meant."""

import errno
import fcntl
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import UNSET

from farm import writing
from farm.errors import Bad, FarmError, NoResult, Refused
from farm.reading import short
from farm.trace import blocks, shares, sidecar
from farm.trace.blocks import Block, BlockRow
from farm.trace.sidecar import About, Entry

# Far more than a million events, at which ONNX Runtime stops to note any; a pipe has no end.
LIMIT_BYTES: Final = 1 << 30
_PIECE: Final = 1 << 20
_MOST_DIGITS: Final = 15  # of the number of a block


class Address(NamedTuple):
    """A file, and which of its blocks, counted from 1; None for the last."""

    path: Path
    number: int | None


class Chosen(NamedTuple):
    """One block of a file: its rows, its number of how many, and what stands beside it.

    name: as one addresses it. about: None where nothing beside the file knows this block, and
    doubt says why.
    """

    name: str
    rows: list[BlockRow]
    number: int
    of: int
    about: About | None
    doubt: str


def address(word: str) -> Address:
    """Return what `FILE` or `FILE#2` means; raises Refused for a number that counts no block.

    A file whose own name ends so is meant by that name.
    """
    file, sign, number = word.rpartition("#")
    if not sign or not file or os.path.exists(word):
        return Address(Path(word), None)
    counts = number.isascii() and number.isdigit() and number.strip("0")
    if not counts or len(number) > _MOST_DIGITS:
        why = f"{short(number)} is {'more than any file has' if counts else 'not 1, 2, …'}"
        raise Refused(f"{short(word)} names no block", why=why)
    return Address(Path(file), int(number))


def check(path: Path) -> None:
    """Raise Refused if no block could be appended; asked before anything is measured for it."""
    beside = sidecar.beside(path)
    if not os.path.isfile(path):
        writing.write(path, (), trial=True)  # which leaves a pipe alone, and refuses a folder
    else:
        try:
            with _opened(path) as file:
                _checked(_content(file), path)
        except OSError as error:
            raise Refused(f"cannot write {str(path)!r}", why=error.strerror or "") from error
    sidecar.load(path)
    writing.write(beside, (), trial=True)


def append(
    path: Path,
    rows: Sequence[BlockRow],
    about: About,
    *,
    why: str = "not_probed",
    write: Callable[[int, bytes], int] = os.write,
    note: Callable[[Path, bytes], None] = sidecar.put,
) -> int:
    """Append a block to a CSV and note beside it which run that is; return its number.

    Two writers wait for each other, and each block goes into the file in one piece, or nothing of
    it where what stands beside it cannot be written. No byte that is there is touched; a last line
    without its end gets one. why: the reason of every null in `about`. What is no plain file gets
    the block alone, and 0 is returned. write, note: as `os.write` and `sidecar.put`. Raises Refused
    if it cannot be written, and Bad for a block that could not be read again.
    """
    text = _text(rows, path, iterations=about.iterations)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                stream.write(text.encode())
            return 0
        sidecar.beside(path)  # before there is a file
        with _opened(path) as file, ExitStack() as undo:
            before = _content(file)
            number = len(_checked(before, path)) + 1
            missing = b"" if not before or before.endswith(b"\n") else b"\n"
            block = Block(list(rows), len(before) + len(missing), text)
            known = sidecar.added(path, about, block, number=number, why=why)
            undo.callback(os.ftruncate, file, len(before))
            _write(file, missing + text.encode(), write=write)
            note(path, known)
            undo.pop_all()
            return number
    except OSError as error:
        raise Refused(f"cannot write {str(path)!r}", why=error.strerror or "") from error


def content(path: Path, *, most: int = LIMIT_BYTES, file: io.BufferedReader | None = None) -> bytes:
    """Return the bytes of a file, which is read once, since a pipe gives them once.

    file: what is open of it already, at its beginning; it is closed. Raises Refused if it cannot be
    read, and Bad if it is larger than that.
    """
    pieces, size = [], 0
    try:
        with file or path.open("rb") as whole:
            while size <= most and (piece := whole.read(_PIECE)):
                pieces.append(piece)
                size += len(piece)
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error
    if size > most:
        raise Bad(f"{path}: larger than {most >> 20} MiB", why="no layer table is")
    return b"".join(pieces)


def read(where: Address) -> Chosen:
    """Return the block that an address means.

    Raises Refused if there is no such file or it is no layer CSV, Bad if it is damaged or empty,
    and NoResult if it has fewer blocks.
    """
    return block(content(where.path), where)


def block(data: bytes, where: Address) -> Chosen:
    """Return the block that an address means of a file that was read; raises as `read` does."""
    path = where.path
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{str(path)!r} is no layer CSV", why="it is no text") from error
    if content and not blocks.is_layers(content):
        why = f"its first line is not {blocks.HEADER}"
        raise Refused(f"{str(path)!r} is no layer CSV", why=why)
    found = blocks.split(content, name=str(path))
    number = len(found) if where.number is None else where.number
    if number > len(found):
        raise NoResult(f"no block {number} in {str(path)!r}", why=f"it has {len(found)}")
    entries, doubt = _entries(path, found)
    entry = entries[number - 1]
    if entry is not None and (odd := sidecar.impossible(entry)):
        entry, doubt = None, f"{sidecar.beside(path).name} says of this block what cannot be: {odd}"
    return Chosen(
        name=f"{path}#{number}",
        rows=found[number - 1].rows,
        number=number,
        of=len(found),
        about=entry,
        doubt="" if entry else doubt,
    )


def of_clean(chosen: Chosen) -> list[tuple[float | None, str]]:
    """Return what each row takes of a clean iteration in ms, or None and why.

    Empty where nothing beside the file knows a clean iteration. The rest counts as known where
    the file beside it tells.
    """
    about = chosen.about
    if about is None or about.clean_ms is None:
        return []
    rest = None if about.unattributed_ms is UNSET else about.unattributed_ms
    attributed = shares.attributed(sum(each.average_ms for each in chosen.rows), rest)
    whole = sum(each.total_ms for each in chosen.rows)
    return [
        shares.of_clean(
            each.total_ms / whole if whole else 0.0,
            *(about.clean_ms, about.perturbation),
            attributed=attributed,
        )
        for each in chosen.rows
    ]


def _entries(path: Path, found: list[Block]) -> tuple[list[Entry | None], str]:
    try:
        beside = sidecar.load(path)
    except FarmError as error:
        return [None] * len(found), str(error)
    if beside is None:
        return [None] * len(found), "no file beside it says which run it is"
    doubt = f"{sidecar.beside(path).name} does not know this block: it was edited, or is not ours"
    return sidecar.known(found, beside), doubt


def _text(rows: Sequence[BlockRow], path: Path, *, iterations: int) -> str:
    """Return the text of a block; Bad for one that would make the whole file unreadable."""
    try:
        text = blocks.text(rows, iterations=iterations)
        text.encode()
        (found,) = blocks.split(text, name="the block")
    except (Bad, ValueError, OverflowError) as error:  # half a character, a number that is none
        what = f"{str(path)!r} cannot hold this table: it could not be read again"
        raise Bad(what, why=str(error)) from error
    assert [each.layer for each in rows] == [each.layer for each in found.rows]
    return text


def _checked(data: bytes, path: Path) -> list[Block]:
    """Return the blocks that are there; Refused if another kind of file has this name."""
    if not data:
        return []
    try:
        return blocks.split(data.decode(), name=str(path))
    except (UnicodeDecodeError, Bad) as error:
        hint = "name another file for the table"
        raise Refused(f"{str(path)!r} is no layer CSV", why=str(error), hint=hint) from error


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open for appending, made if need be, and locked against others that append."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _content(file: int) -> bytes:
    with os.fdopen(os.dup(file), "rb") as opened:
        opened.seek(0)
        return opened.read()


def _write(file: int, data: bytes, *, write: Callable[[int, bytes], int]) -> None:
    """Write all of it at once; raises OSError if there was room for a part alone."""
    if write(file, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC).lower())
