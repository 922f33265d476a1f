"""The profiles that count and match, and what lies beside each of them in the store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from farm.schema import Artifact

if TYPE_CHECKING:
    from farm.catalog.query import Catalog
    from farm.catalog.sql import Answer

_THREADS: Final = 16
_AHEAD: Final = 256

T = TypeVar("T")
R = TypeVar("R")


class Export(NamedTuple):
    """So many rows, or documents, and their bytes as they come.

    left_out: profiles that match and hold nothing of this kind.
    """

    rows: int
    pieces: Iterable[bytes]
    left_out: int = 0


def matching(
    catalog: "Catalog", where: Mapping[str, str], columns: Sequence[str], *, since: datetime | None
) -> "Answer":
    """Return columns of the profiles that count and match, newest first.

    where: as `sql.WHERE`. columns: of `sql.WINNER_COLUMNS`, `started_at` among them. since: those
    that began then or later. Raises Refused for an unknown key.
    """
    found = catalog.winners(where, columns=columns)
    if since is None:
        return found
    at = found.columns.index("started_at")
    return found._replace(
        rows=[row for row in found.rows if row[at] is not None and row[at] >= since]  # type: ignore[operator]
    )


def artifacts(cell: object) -> dict[str, Artifact]:
    """Return by kind what a profile left, from the column `artifacts`."""
    return msgspec.json.decode(str(cell), type=dict[str, Artifact]) if cell is not None else {}


def in_turn(work: Callable[[T], R], things: Sequence[T]) -> Iterator[R]:
    """Yield what the work makes of each thing, in their order; several are worked on at a time.

    Not more than some hundreds are in memory. Raises the first error that there is.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(things), _AHEAD):
            yield from pool.map(work, things[start : start + _AHEAD])
