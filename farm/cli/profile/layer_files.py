"""Layer tables that lie in files: shown, imported, and set side by side."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, structs

from farm import schema
from farm.errors import FarmError, Refused, did_you_mean
from farm.reading import short
from farm.trace import files, importers
from farm.trace.documents import LayersRead
from farm.trace.files import Address, Chosen

READABLE = (
    "readable now: layer CSVs (FILE#2 is the second block), the layer profiles of TensorRT and "
    "ONNX Runtime, callable JSONs"
)
_TOLD = ("job_id", "batch", "model", "precision", "device", "method", "clock")


class Shown(NamedTuple):
    """A table from a file; block: where it was appended, 0 if it was not."""

    chosen: Chosen
    file: str
    block: int


def is_file(word: str) -> bool:
    """Whether a word names a layer table, and not a model."""
    return re.search(r"\.(csv|json)(#[^/:]*)?$", word) is not None


def shown(word: str, csv: Path, *, now: str) -> Shown:
    """Return the table that a word names; a foreign profile is appended to the CSV.

    now: UTC, for what stands beside it. Raises Refused, Bad or NoResult for what cannot be read.
    """
    where = _there(word)
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


def check_there(words: Sequence[str]) -> None:
    """Raise Refused for a word that names no file or no block, with the nearest file."""
    for each in words:
        _there(each)


def table(word: str) -> Chosen:
    """Return the layer table that a word means; Refused, saying what can be read, for any other."""
    _there(word)
    try:
        return importers.opened(word)
    except Refused as error:
        why = READABLE if error.why in ("", importers.KNOWN) else f"{error.why}; {READABLE}"
        raise Refused(error.what, why=why, hint=error.hint) from error


def kind(word: str) -> str:
    """Return what a file that is no callable JSON is instead, for a message."""
    path, number = files.address(word)
    if number is not None and is_callable(str(path)):
        return "none: it has no blocks"
    if path.suffix == ".csv":
        return "a layer CSV"
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return "none"
    if isinstance(data, dict) and isinstance(data.get("schema"), str):
        return f"of schema {short(data['schema'])}"
    return "a layer profile" if isinstance(data, list) else "none"


def is_callable(word: str) -> bool:
    """Whether a word names a callable JSON; a file that cannot be read is none."""
    from farm import interchange

    try:
        data = json.loads(Path(word).read_bytes())
    except (OSError, ValueError, RecursionError, FarmError):
        return False
    return interchange.is_callable(data)


def _there(word: str) -> Address:
    """Return the file that a word names, and which block of it."""
    where = files.address(word)
    if not where.path.name or not os.path.lexists(where.path):
        near = sorted(each.name for each in where.path.parent.glob(f"*{where.path.suffix}"))
        raise Refused(f"no file {short(word)}", hint=did_you_mean(where.path.name, near))
    return where
