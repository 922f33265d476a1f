"""Profiles of the inbox on their way into a part: read, told from known ones, put, verified.

What cannot be read is handed back by name. No more than a few hundred documents are in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from farm import identity
from farm.catalog import parts, rows
from farm.catalog.cache import fetch
from farm.catalog.rows import Row, Unreadable
from farm.errors import Bad
from farm.schema import CatalogPart
from farm.store import Conflict, Corrupt, NotFound, Store, part_key

_EDITIONS: Final = 4
_MEDIA: Final = "application/vnd.apache.parquet"


class Lost(Bad):
    """Parts that the store has no longer, or that double another: begin anew without them."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = frozenset(keys)
        super().__init__("parts of the catalogue are damaged, gone or double others")


class Known:
    """The ids that the parts hold, read only as far back as somebody asks."""

    def __init__(self, store: Store, held: Iterable[CatalogPart], *, cache: Path) -> None:
        self._store = store
        self._cache = cache
        self._unread = sorted(held, key=lambda each: each.received_max)
        self._ids: set[bytes] = set()  # half the memory of their hex digits

    def __contains__(self, profile_id: str) -> bool:
        return bytes.fromhex(profile_id) in self._ids

    def file(self, part: CatalogPart) -> Path:
        """Return a part that counts as a verified file, or raise Lost."""
        try:
            return fetch(self._store, part, folder=self._cache)
        except (Bad, NotFound) as error:
            raise Lost([part.key]) from error

    def add(self, profile_ids: Iterable[str]) -> None:
        self._ids.update(map(bytes.fromhex, profile_ids))

    def reach(self, day: str) -> None:
        """Know every part that received anything on this day or later, or raise Lost.

        Two parts hold a profile that was sent twice by a clock that went wrong in between.
        """
        lost = []
        while self._unread and self._unread[-1].received_max >= day:
            part = self._unread.pop()
            try:
                found = parts.ids(fetch(self._store, part, folder=self._cache))
            except (Bad, NotFound):
                lost.append(part.key)
                continue
            if any(each in self for each in found):
                lost.append(part.key)
            else:
                self.add(found)
        if lost:
            raise Lost(lost)


class Taken(NamedTuple):
    """What came of a list of keys: the part that was put, None if it would have held nothing new.

    added: profiles in it that were in no part.
    """

    part: CatalogPart | None
    added: int
    unreadable: list[Unreadable]


def take(
    store: Store,
    keys: Sequence[str],
    *,
    month: str,
    known: Known,
    beside: Sequence[CatalogPart] = (),
) -> Taken:
    """Put one part with every profile of these keys that no part holds, and make it known.

    month: the one in which they were received, "" for keys that are none. beside: parts, known
    already, whose rows it takes along, so that it stands in for them. Nothing names the part before
    it is in a manifest. Raises Lost, Corrupt if the store does not give back what it was given, and
    what the store raises when it is away.
    """
    span = _Span()
    unreadable: list[Unreadable] = []
    files = [known.file(each) for each in beside]
    fresh = _fresh(rows.fetch(store, keys), known, span, unreadable)
    data = parts.encode(fresh, beside=files)
    if not span.ids:
        return Taken(None, 0, unreadable)
    added = len(span.ids)
    for each, file in zip(beside, files, strict=True):
        span.join(each, parts.ids(file))
    part = _put(store, data, month=month, span=span)
    known.add(span.ids)
    return Taken(part, added, unreadable)


class _Span:
    """What a part being made holds, and the days and times that it covers."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self._started: set[str] = set()
        self._received: set[str] = set()

    def add(self, row: Row) -> None:
        self.ids.add(row.profile_id)
        self._started.add(row.profile.execution.started_at)
        self._received.add(rows.day(row.key))

    def join(self, part: CatalogPart, ids: Iterable[str]) -> None:
        """Cover another part as well."""
        self.ids.update(ids)
        self._started |= {part.started_min, part.started_max}
        self._received |= {part.received_min, part.received_max}

    @property
    def started(self) -> tuple[str, str]:
        """The first and the last."""
        return min(self._started), max(self._started)

    @property
    def received(self) -> tuple[str, str]:
        return min(self._received), max(self._received)


def _fresh(
    found: Iterable[Row | Unreadable], known: Known, span: _Span, unreadable: list[Unreadable]
) -> Iterator[Row]:
    """Yield the profiles that no part holds, each once."""
    for each in found:
        if isinstance(each, Unreadable):
            unreadable.append(each)
            continue
        known.reach(_earliest(each.profile.execution.started_at[:10]))
        if each.profile_id not in known and each.profile_id not in span.ids:
            span.add(each)
            yield each


def _put(store: Store, data: bytes, *, month: str, span: _Span) -> CatalogPart:
    """Put a part, read it back, and return what a manifest says of it.

    An object that lies damaged under its name stays where it is: the part becomes other bytes.
    """
    for edition in range(_EDITIONS):
        given = parts.remade(data, edition) if edition else data
        digest = identity.content_id(given)
        key = part_key(month, digest)
        try:
            store.put_new(key, given, media_type=_MEDIA)
            held = parts.ids(store.get(key, sha256=digest))
            break
        except (Conflict, Corrupt):
            if edition == _EDITIONS - 1:
                raise
    if sorted(held) != sorted(span.ids):
        raise Bad(f"{key} does not hold the profiles that were put into it")
    return CatalogPart(
        key=key,
        sha256=digest,
        bytes=len(given),
        rows=len(held),
        started_min=span.started[0],
        started_max=span.started[1],
        received_min=span.received[0],
        received_max=span.received[1],
    )


@lru_cache(maxsize=1024)
def _earliest(began: str) -> str:
    """Return the first day on which a profile of this day can have been sent; clocks err by one.

    What was sent then and is sent again now lies in a part that reaches this far back.
    """
    try:
        return (date.fromisoformat(began) - timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return ""
