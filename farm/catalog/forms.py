"""An answer of the catalogue written down: CSV, JSON lines, Parquet."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

import msgspec

from farm import commas
from farm.catalog.sql import Answer
from farm.errors import Refused, did_you_mean


def plain(value: object) -> object:
    """Return a value as JSON has it: times in RFC 3339, everything else as near as can be.

    JSON has no infinity and no NaN; they are the texts `inf`, `-inf` and `nan`, never null.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal):
        return plain(float(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    return value.hex() if isinstance(value, bytes) else str(value)


def cell(value: object) -> str:
    """Return a value as a table has it: nothing for null, JSON for what has parts."""
    found = plain(value)
    if found is None:
        return ""
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, str):
        return found
    return repr(found) if isinstance(found, int | float) else msgspec.json.encode(found).decode()


def comma_separated(answer: Answer) -> bytes:
    """Return a header and one line for each row; a null is empty.

    A text that a spreadsheet would take for a formula starts with an apostrophe.
    """
    lines = [commas.line(map(commas.defused, answer.columns))]
    lines += [commas.line(map(_defused, row)) for row in answer.rows]
    return "".join(lines).encode()


def json_lines(answer: Answer) -> bytes:
    """Return one JSON object for each row, in the order of the columns; equal names get numbers."""
    names = _distinct(answer.columns)
    lines = (
        msgspec.json.encode(dict(zip(names, map(plain, row), strict=True))) for row in answer.rows
    )
    return b"".join(line + b"\n" for line in lines)


def parquet(answer: Answer) -> bytes:
    """Return the rows as one Parquet file; numbers, times and lists keep their types.

    Raises Refused for a column whose values have no common type.
    """
    import pyarrow as pa
    from pyarrow import parquet as pq

    columns: Sequence[Sequence[object]] = list(zip(*answer.rows, strict=True)) or [
        () for _ in answer.columns
    ]
    arrays = []
    for name, values in zip(answer.columns, columns, strict=True):
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise Refused(
                f"column {name!r} fits no type of Parquet", why=str(error).partition("\n")[0]
            ) from error
    sink = pa.BufferOutputStream()
    names = _distinct(answer.columns)
    pq.write_table(pa.Table.from_arrays(arrays, names=names), sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


FORMS: Final[Mapping[str, Callable[[Answer], bytes]]] = {
    "csv": comma_separated,
    "json": json_lines,
    "parquet": parquet,
}


def form_of(name: str, *, known: Sequence[str]) -> str:
    """Return the form that a file's name asks for; raises Refused if it is none of the known."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    wanted = {"jsonl": "json", "ndjson": "json"}.get(ending, ending)
    if wanted not in known:
        raise Refused(
            f"{name!r} names no form",
            why=f"known: {', '.join(known)}",
            hint=did_you_mean(wanted, list(known)) or "say it with --format",
        )
    return wanted


def _defused(value: object) -> str:
    return commas.defused(value) if isinstance(value, str) else cell(value)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names that differ: a table cannot have two columns of one name."""
    taken: set[str] = set()
    made = []
    for name in names:
        number, found = 1, name
        while found in taken:
            number += 1
            found = f"{name}_{number}"
        taken.add(found)
        made.append(found)
    return made
