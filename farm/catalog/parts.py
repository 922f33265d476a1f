"""The door to pyarrow: rows as a table, and a part of the catalogue as bytes of Parquet."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from farm.catalog.columns import COLUMNS, flat
from farm.catalog.rows import Row, chunks
from farm.errors import Bad

ROW_GROUP: Final = 122_880  # what DuckDB reads at once; it scans groups in parallel
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us"),
    "texts": pa.list_(pa.string()),
    "reals": pa.list_(pa.float64()),
    "json": pa.string(),
}
ORDER: Final = ("cell_id", "system_class", "started_at", "profile_id")
SCHEMA: Final = pa.schema([(each.name, _TYPES[each.kind]) for each in COLUMNS])
_AT_ONCE: Final = 1_000  # rows that are Python objects at a time
# Every value once: a dictionary of them would be the column again.
_UNIQUE: Final = frozenset({"profile_id", "failure_message"})
_WORDS: Final = [
    f"{each.name}.list.element" if each.kind == "texts" else each.name
    for each in COLUMNS
    if each.kind in ("text", "json", "texts") and each.name not in _UNIQUE
]


def table(rows: Iterable[Row]) -> pa.Table:
    """Return the rows as columns, in the order of a part: cell, system class, time, id."""
    some = [_batch(each) for each in chunks(rows, _AT_ONCE)]
    found = pa.Table.from_batches(some, schema=SCHEMA)
    return found.sort_by([(each, "ascending") for each in ORDER])


def encode(rows: Iterable[Row], *, beside: Sequence[Path] = ()) -> bytes:
    """Return a part of the catalogue: the same rows in any order give the same bytes.

    beside: parts whose rows are taken along; a column that one of them lacks is null there. Raises
    Bad for one that is no part.
    """
    found = table(rows)
    if beside:
        joined = pa.concat_tables([found, *(_fitted(_read(each)) for each in beside)])
        found = joined.sort_by([(each, "ascending") for each in ORDER])
    return _written(found)


def is_ours(path: Path) -> bool:
    """Return whether a part has no column that we do not know: to write it anew loses nothing."""
    try:
        return set(parquet.read_schema(path).names) <= set(SCHEMA.names)
    except (pa.ArrowException, OSError) as error:
        raise Bad("the part is no Parquet file of profiles", why=str(error)) from error


def remade(data: bytes, edition: int) -> bytes:
    """Return a part of the same rows in other bytes, for a name that damaged bytes have taken."""
    found = _read(data)
    marked = {**(found.schema.metadata or {}), b"edition": str(edition).encode()}
    return _written(found.replace_schema_metadata(marked))


def write(found: pa.Table, to: pa.NativeFile | Path) -> None:
    """Write a table, sorted already, as a part is written."""
    parquet.write_table(
        found,
        to,
        compression="zstd",
        row_group_size=ROW_GROUP,
        use_dictionary=_WORDS,
    )


def ids(data: bytes | Path) -> list[str]:
    """Return the profile ids of a part in the order of the file; Bad if it is no part."""
    found = _read(data, columns=["profile_id"])
    if found.column_names != ["profile_id"]:
        raise Bad("the part holds no profile ids")
    return [str(each) for each in found.column(0).to_pylist()]


def _read(data: bytes | Path, *, columns: list[str] | None = None) -> pa.Table:
    try:
        source = pa.BufferReader(data) if isinstance(data, bytes) else data
        return parquet.read_table(source, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise Bad("the part is no Parquet file of profiles", why=str(error)) from error


def _fitted(found: pa.Table) -> pa.Table:
    """Return the rows of a part under the columns of today."""
    columns = [
        found.column(name).cast(kind)
        if name in found.column_names
        else pa.nulls(found.num_rows, kind)
        for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _written(found: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    write(found, sink)
    return bytes(sink.getvalue().to_pybytes())


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    flats = [flat(each) for each in rows]
    arrays = [
        pa.array([each[name] for each in flats], type=kind)
        for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
