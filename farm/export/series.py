"""The history of a metric, for tools that look for changes."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from farm.errors import Refused, did_you_mean
from farm.export.matching import matching
from farm.profiles import METRICS

if TYPE_CHECKING:
    from farm.catalog.query import Catalog
    from farm.catalog.sql import Answer

_SERIES: Final = (
    *("cell_id", "protocol_id", "system_class", "model", "precision", "batch", "mode", "backend"),
    *("device", "node", "slot", "started_at", "repeat_set", "validity", "workload_id"),
)


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
    found = matching(catalog, where, asked, since=since)
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
