"""Profiles handed to other tools: flat rows, the stored documents, histories for change points."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from farm.errors import Refused, did_you_mean
from farm.profiles import METRICS
from farm.store import Store, profile_key

if TYPE_CHECKING:
    from farm.catalog.query import Catalog
    from farm.catalog.sql import Answer

KINDS: Final[Mapping[str, Sequence[str]]] = {
    "rows": ("csv", "json", "parquet"),
    "documents": ("json",),
    "series": ("csv", "json", "parquet"),
}
_SERIES: Final = (
    *("cell_id", "protocol_id", "system_class", "model", "precision", "batch", "mode", "backend"),
    *("device", "node", "slot", "started_at", "repeat_set", "validity", "workload_id"),
)
_THREADS: Final = 16
_AHEAD: Final = 256


class Export(NamedTuple):
    """So many rows, or documents, and their bytes as they come."""

    rows: int
    pieces: Iterable[bytes]


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
    Raises Refused for an unknown key or metric, Corrupt or NotFound while the pieces are read for a
    document that the store does not have as it was put.
    """
    from farm.catalog import forms
    from farm.catalog.sql import WINNER_COLUMNS

    if kind == "documents":
        return _documents(store, catalog, where, since=since)
    if kind == "series":
        found = series(catalog, where, since=since, metric=metric)
    else:
        found = _recent(catalog.winners(where, columns=WINNER_COLUMNS), since)
    return Export(len(found.rows), [forms.FORMS[form](found)])


def series(
    catalog: "Catalog", where: Mapping[str, str], *, since: datetime | None, metric: str
) -> "Answer":
    """Return the history of a metric: one row a point, series by series, each in order of time.

    A series is a cell under a protocol on a class of systems; a point is a good winner, and has
    `value`, and `lo` and `hi` where the metric has an interval. Raises Refused for a metric that
    there is none of, with the nearest one.
    """
    from farm.catalog.sql import Answer

    wanted = _columns(metric)
    asked = (*_SERIES, *wanted, "profile_id", "status")
    found = _recent(catalog.winners(where, columns=asked), since)
    at = {name: index for index, name in enumerate(found.columns)}
    points = [
        row
        for row in found.rows
        if row[at["status"]] == "ok" and row[at["validity"]] != "invalid" and row[at["started_at"]]
    ]
    points.sort(key=lambda row: (row[:3], row[at["started_at"]], row[at["profile_id"]]))
    figures = [at[each] for each in wanted]
    lines = [
        (
            *row[: len(_SERIES)],
            metric,
            *(row[each] for each in figures),
            *(None for _ in range(3 - len(figures))),
            row[at["profile_id"]],
        )
        for row in points
    ]
    return Answer((*_SERIES, "metric", "value", "lo", "hi", "profile_id"), lines)


def _columns(metric: str) -> list[str]:
    """Return the column of a metric, and those of its interval if it has one."""
    from farm.catalog.columns import COLUMNS

    if metric not in METRICS:
        raise Refused(
            f"unknown metric {metric!r}",
            why=f"known: {', '.join(METRICS)}",
            hint=did_you_mean(metric, list(METRICS)),
        )
    path = METRICS[metric]
    block = path.partition(".")[0]
    bounds = [
        f"{block}.{end}" if block == "throughput" else path.replace("_ms", f"_{end}_ms")
        for end in ("lo", "hi")
    ]
    named = {each.path: each.name for each in COLUMNS}
    return [named[path], *(named[each] for each in bounds if each != path and each in named)]


def _documents(
    store: Store, catalog: "Catalog", where: Mapping[str, str], *, since: datetime | None
) -> Export:
    """Return the stored bytes of every winner, newest first, each verified and on a line."""
    asked = ("received", "job_id", "profile_id", "started_at")
    found = _recent(catalog.winners(where, columns=asked), since)

    def fetch(row: Sequence[object]) -> bytes:
        day, job_id, profile_id = map(str, row[:3])
        return store.get(profile_key(day, job_id, profile_id), sha256=profile_id) + b"\n"

    def lines() -> Iterator[bytes]:
        with ThreadPoolExecutor(_THREADS) as pool:
            for start in range(0, len(found.rows), _AHEAD):
                yield from pool.map(fetch, found.rows[start : start + _AHEAD])

    return Export(len(found.rows), lines())


def _recent(answer: "Answer", since: datetime | None) -> "Answer":
    if since is None:
        return answer
    at = answer.columns.index("started_at")
    return answer._replace(
        rows=[row for row in answer.rows if row[at] is not None and row[at] >= since]  # type: ignore[operator]
    )
