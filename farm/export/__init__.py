"""Profiles handed to other tools: rows, documents, histories, layers, callables, analyses."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from farm.export.matching import Export
from farm.store import Store

if TYPE_CHECKING:
    from farm.catalog.query import Catalog

__all__ = ["KINDS", "Export", "export"]

KINDS: Final[Mapping[str, Sequence[str]]] = {
    "rows": ("csv", "json", "parquet"),
    "documents": ("json",),
    "series": ("csv", "json", "parquet"),
    "layers": ("csv", "json", "parquet"),
    "callable": ("json",),
    "analysis": ("json",),
}


def export(
    store: Store,
    catalog: "Catalog",
    *,
    kind: str,
    form: str,
    where: Mapping[str, str],
    since: datetime | None,
    metric: str,
) -> Export:
    """Return the profiles that count and match, as one of KINDS in one of its forms.

    where: as `sql.WHERE`. since: those that began then or later. metric: of the series alone.
    Raises Refused for an unknown key or metric. Raises Corrupt or NotFound, layers at once and
    documents while the pieces are read, for what the store does not have as it was put.
    """
    from farm.catalog import forms
    from farm.catalog.sql import WINNER_COLUMNS

    if kind == "documents":
        from farm.export.documents import documents

        return documents(store, catalog, where, since=since)
    if kind == "callable":
        from farm.export.callables import callables

        return callables(store, catalog, where, since=since)
    if kind == "analysis":
        from farm.export.analyses import analyses

        return analyses(store, catalog, where, since=since)
    left_out = 0
    if kind == "series":
        from farm.export.series import series

        found = series(catalog, where, since=since, metric=metric)
    elif kind == "layers":
        from farm.export.layers import layers

        found, left_out = layers(store, catalog, where, since=since)
    else:
        from farm.export.matching import matching

        found = matching(catalog, where, WINNER_COLUMNS, since=since)
    return Export(len(found.rows), [forms.FORMS[form](found)], left_out)
