"""The layer tables of many profiles as one table."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from farm import schema
from farm.export.matching import artifacts, in_turn, matching
from farm.schema import LayerRow, LayerTable
from farm.store import Store

if TYPE_CHECKING:
    from farm.catalog.query import Catalog
    from farm.catalog.sql import Answer

_PROFILE: Final = (
    *("profile_id", "job_id", "model", "precision", "batch", "device", "system_class"),
    "started_at",
)
_TABLE: Final = ("method", "clock", "iterations", "perturbation")
COLUMNS: Final = (*_PROFILE, *_TABLE, *LayerRow.__struct_fields__, "null_reasons")


class Layers(NamedTuple):
    """left_out: profiles that match and have no layer table."""

    answer: "Answer"
    left_out: int


def layers(
    store: Store, catalog: "Catalog", where: Mapping[str, str], *, since: datetime | None
) -> Layers:
    """Return one row for each layer, newest profile first, in the order of their execution.

    Times are in ms, of a profiled pass: its shares count. A number that could not be had is None,
    and `null_reasons`, a JSON text, has its reason by column. Raises Corrupt or NotFound for a
    table that the store does not have as it was put, Bad for what is none.
    """
    from farm.catalog.sql import Answer

    found = matching(catalog, where, (*_PROFILE, "artifacts"), since=since)
    with_table = [row for row in found.rows if "layer_table" in artifacts(row[-1])]

    def rows(row: Sequence[object]) -> list[tuple[object, ...]]:
        kept = artifacts(row[-1])["layer_table"]
        return _rows(row[:-1], schema.decode(store.get(kept.key, sha256=kept.sha256), LayerTable))

    lines = [line for some in in_turn(rows, with_table) for line in some]
    return Layers(Answer(COLUMNS, lines), len(found.rows) - len(with_table))


def _rows(profile: Sequence[object], table: LayerTable) -> list[tuple[object, ...]]:
    of_table = [getattr(table, name) for name in _TABLE]
    of_all = {name: why for name, why in table.null_reasons.items() if name in _TABLE}
    return [
        (
            *profile,
            *of_table,
            *msgspec.structs.astuple(row),
            msgspec.json.encode(of_all | _reasons(table, index), order="sorted").decode(),
        )
        for index, row in enumerate(table.rows)
    ]


def _reasons(table: LayerTable, index: int) -> dict[str, str]:
    paths = {name: f"rows.{index}.{name}" for name in LayerRow.__struct_fields__}
    told = table.null_reasons
    return {name: told[path] for name, path in paths.items() if path in told}
