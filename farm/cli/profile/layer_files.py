"""Layer tables that lie in files: shown, imported, and set side by side."""

import glob
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, structs

from farm import schema
from farm.errors import Bad, Refused, did_you_mean
from farm.reading import short
from farm.trace import blocks, files, importers
from farm.trace.documents import LayersRead
from farm.trace.files import Address, Chosen

READABLE = (
    "readable now: layer CSVs (FILE#2 is the second block), the layer profiles of TensorRT and "
    "ONNX Runtime, callable JSONs, traces and their analyses"
)
_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_TOLD = ("job_id", "batch", "model", "precision", "device", "method", "clock")


class Shown(NamedTuple):
    """A table from a file; block: where it was appended, 0 if it was not."""

    chosen: Chosen
    file: str
    block: int


class Source(NamedTuple):
    """A file as it was read; is_callable: whether it is a callable JSON, ours or another's."""

    word: str
    where: Address
    data: bytes
    is_callable: bool


def is_file(word: str) -> bool:
    """Whether a word names a layer table, and not a model."""
    return re.search(r"\.(csv|json)(#[^/:]*)?$", word) is not None


def shown(word: str, csv: Path, *, now: str) -> Shown:
    """Return the table that a word names; a foreign profile is appended to the CSV.

    now: UTC, for what stands beside it. Raises Refused, Bad or NoResult for what cannot be read.
    """
    where = place(word)
    if where.path.suffix != ".json":
        return Shown(files.read(where), "", 0)
    files.check(csv)
    chosen = importers.opened(word)
    assert chosen.about is not None, "an import knows where it is from"
    about = structs.replace(chosen.about, written_at=now)
    why = "not_supported: the profile that was imported does not tell"
    return Shown(chosen, str(csv), files.append(csv, chosen.rows, about, why=why))


def document(found: Shown) -> LayersRead:
    """Return the table for a program."""
    chosen = found.chosen
    about = chosen.about
    known = {name: None if about is None else getattr(about, name) for name in _TOLD}
    made = LayersRead(
        source=chosen.name,
        file=found.file or UNSET,
        block=found.block or UNSET,
        warmup_iterations=None if about is None else about.warmup_iterations,
        iterations=None if about is None else about.iterations,
        rows=chosen.rows,
        null_reasons={},
        **known,
    )
    why = f"not_supported: {chosen.doubt or 'the file does not tell'}"
    return structs.replace(made, null_reasons=dict.fromkeys(_nulls(made), why))


def _nulls(made: LayersRead) -> list[str]:
    from msgspec import to_builtins

    return schema.null_paths({**to_builtins(made), "null_reasons": {}})


def opened(
    words: Sequence[str], *, given: Mapping[Path, io.BufferedReader] | None = None
) -> list[Source]:
    """Return the files that the words name, each read once: a pipe gives its bytes only once.

    given: those that are open already, at their beginnings; they are closed. Raises Refused for a
    word that names no file, with the nearest one, or no block, and for what cannot be read; Bad for
    what is too large.
    """
    places = [place(each) for each in words]
    open_ = given or {}
    try:
        data = {
            path: files.content(path, file=open_.get(path))
            for path in dict.fromkeys(each.path for each in places)
        }
    except Refused as error:
        raise _readable(error) from error
    return [
        _source(word, where, data[where.path]) for word, where in zip(words, places, strict=True)
    ]


def place(word: str) -> Address:
    """Return the file that a word names, and which block of it.

    Raises Refused for a word that names no file, with the nearest one, or no block.
    """
    where = files.address(word)
    if not where.path.name or not os.path.lexists(where.path):
        raise Refused(f"no file {short(word)}", hint=did_you_mean(where.path.name, _near(where)))
    return where


def table(side: Source) -> Chosen:
    """Return the layer table that a file is; Refused, saying what can be read, for any other."""
    try:
        return importers.chosen(side.data, side.where)
    except Refused as error:
        raise _readable(error) from error


def kind(side: Source) -> str:
    """Return what a file that is no callable JSON is instead, for a message."""
    if side.is_callable:
        return "none: it has no blocks"
    if side.where.path.suffix == ".csv" or side.data.startswith(blocks.HEADER.encode()):
        return "a layer CSV"
    try:
        data = json.loads(side.data)
    except (ValueError, RecursionError):
        return "none"
    if isinstance(data, dict) and isinstance(data.get("schema"), str):
        return f"of schema {short(data['schema'])}"
    return "a layer profile" if isinstance(data, list) else "none"


def _source(word: str, where: Address, data: bytes) -> Source:
    from farm import interchange

    if _OBJECT.match(data) is None:
        return Source(word, where, data, is_callable=False)
    if len(data) > interchange.LIMIT_BYTES:
        what = f"{word}: larger than {interchange.LIMIT_BYTES >> 20} MiB"
        raise Bad(what, why="no JSON object that is read here is")
    try:
        return Source(word, where, data, is_callable=interchange.is_callable(json.loads(data)))
    except (ValueError, RecursionError):
        return Source(word, where, data, is_callable=False)


def _readable(error: Refused) -> Refused:
    """Return the error with what can be read."""
    why = READABLE if error.why in ("", importers.KNOWN) else f"{error.why}; {READABLE}"
    return Refused(error.what, why=why, hint=error.hint)


def _near(where: Address) -> list[str]:
    """Return the files of that kind in the folder, if there is one."""
    try:
        found = where.path.parent.glob(f"*{glob.escape(where.path.suffix)}")
        return sorted(each.name for each in found)
    except OSError:  # a name that is too long for any folder
        return []
