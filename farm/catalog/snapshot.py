"""One look at the store that does not change: the parts of one manifest, and what came since.

Other processes may compact meanwhile: a part never changes, so the manifest that was pinned stays
whole, and what they take into newer parts still lies in the inbox.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from farm.catalog import cache as parts_cache
from farm.catalog import chain, rows
from farm.catalog.columns import flat
from farm.catalog.rows import INBOX, Row, Unreadable
from farm.catalog.sql import LONGEST_LINE
from farm.schema import CatalogPart
from farm.store import Corrupt, Entry, NotFound, Store

_THREADS: Final = 4

# Gives the ids that these files hold of profiles received on this day or later.
IdsSince = Callable[[Sequence[Path], str], set[str]]


class Parts(NamedTuple):
    """The parts of a manifest as files, each with the last day on which it received anything.

    unreadable: objects of the inbox that are no profiles. missing: how many profiles of these parts
    cannot be had. warnings: what was damaged and could be made good.
    """

    files: dict[Path, str]
    unreadable: list[Unreadable]
    missing: int
    warnings: list[str]


class Tail(NamedTuple):
    """Profiles that are in no part, newest first, each a flat row as JSON.

    left_out: how many older ones were not read.
    """

    lines: list[bytes]
    unreadable: list[Unreadable]
    left_out: int


def fetched(store: Store, held: Sequence[CatalogPart], *, cache: Path) -> list[Path | None]:
    """Return the parts as verified files, None for each that the store has not; several at a time.

    Raises what the store raises when it is away.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(partial(_fetched, store, cache), held))


def parts(
    store: Store,
    pinned: chain.Pinned,
    got: Sequence[Path | None],
    *,
    cache: Path,
    ids_since: IdsSince,
) -> Parts:
    """Return the parts of the manifest, given what could be fetched of them.

    What the store has lost is made again from the inbox, with a warning; what that does not bring
    back is missing.
    """
    held = list(zip(pinned.document.parts, got, strict=True))
    files = {file: part.received_max for part, file in held if file is not None}
    lost = [part for part, file in held if file is None]
    unreadable = [Unreadable(each.key, each.reason) for each in pinned.document.unreadable]
    warnings = [f"{each.key} is passed over: {each.reason}" for each in pinned.damaged]
    if not lost:
        return Parts(files, unreadable, 0, warnings)
    made = _Remade(store, lost, _known(files, min(each.received_min for each in lost), ids_since))
    files[made.file(cache)] = max(each.received_max for each in lost)
    warnings += [f"{each.key} is damaged; its profiles were read one by one" for each in lost]
    return Parts(files, unreadable + made.unreadable, made.missing, warnings)


def tail(
    store: Store, pinned: chain.Pinned | None, held: Parts, *, limit: int, ids_since: IdsSince
) -> Tail:
    """Return the newest profiles that are in no part: up to `limit`, by the time they arrived."""
    since = _since(pinned)
    known = _known(held.files, since, ids_since)
    fresh = _Fresh(store, since, known, {each.key for each in held.unreadable})
    newest = heapq.nlargest(max(limit, 1), fresh, key=lambda each: (each.modified, each.key))
    newest = newest[: max(limit, 0)]
    lines: list[bytes] = []
    bad = [Unreadable(key, "the name is not <job id>.<profile id>.json") for key in fresh.misnamed]
    for found in rows.fetch(store, [each.key for each in newest]):
        if isinstance(found, Unreadable):
            bad.append(found)
        elif len(line := msgspec.json.encode(flat(found))) > LONGEST_LINE:
            bad.append(Unreadable(found.key, f"the document is longer than {LONGEST_LINE} bytes"))
        else:
            lines.append(line)
    return Tail(lines, bad, fresh.count - len(newest))


def _known(files: Mapping[Path, str], day: str, ids_since: IdsSince) -> set[str]:
    """Return the ids in the files of profiles received on this day or later."""
    reached = [file for file, last in files.items() if last >= day]
    return ids_since(reached, day) if reached else set()


class _Fresh:
    """What the inbox has beyond the parts, each profile once; counted as it is listed."""

    def __init__(self, store: Store, since: str, known: set[str], told: set[str]) -> None:
        self._store, self._since = store, since
        self._known, self._told = known, told
        self.count = 0
        self.misnamed: list[str] = []

    def __iter__(self) -> Iterator[Entry]:
        after = f"{INBOX}date={self._since}" if self._since else ""
        for entry in self._store.list(INBOX, after=after):
            named = rows.place(entry.key)
            if entry.key in self._told:
                continue
            if named is None:
                self.misnamed.append(entry.key)
            elif named.profile_id not in self._known:
                self._known.add(named.profile_id)
                self.count += 1
                yield entry


class _Remade:
    """What the inbox has of parts that are lost.

    What came since, on the days of these parts, is among it: under this manifest no other file has
    it, so nothing is read twice. It began later than what the parts held, and fills no gap of them.
    """

    def __init__(self, store: Store, lost: Sequence[CatalogPart], known: set[str]) -> None:
        self._store, self._lost, self._known = store, lost, known
        self._found = 0
        self.unreadable: list[Unreadable] = []

    @property
    def missing(self) -> int:
        return max(0, sum(each.rows for each in self._lost) - self._found)

    def file(self, cache: Path) -> Path:
        from farm.catalog.parts import encode  # pyarrow: half a second that few readers need

        return parts_cache.keep(encode(self._rows()), folder=cache)

    def _rows(self) -> Iterator[Row]:
        for each in rows.fetch(self._store, self._keys()):
            if isinstance(each, Unreadable):
                self.unreadable.append(each)
            elif each.profile_id not in self._known:
                self._known.add(each.profile_id)
                self._found += self._held(each)
                yield each

    def _held(self, row: Row) -> bool:
        began = row.profile.execution.started_at
        return any(each.started_min <= began <= each.started_max for each in self._lost)

    def _keys(self) -> Iterator[str]:
        last = max(each.received_max for each in self._lost)
        for key in rows.keys(self._store, since=min(each.received_min for each in self._lost)):
            named = rows.place(key)
            if named is not None and named.day <= last and named.profile_id not in self._known:
                yield key


def _since(pinned: chain.Pinned | None) -> str:
    """Return the first day that may hold a profile that no part has; "" for all of them.

    A pass takes what was sent since the day before it; earlier days are swept once a day, by the
    compactor. Of two clocks that may be wrong the earlier one is believed.
    """
    if pinned is None or pinned.damaged or not pinned.document.parts:
        return ""
    received = max(each.received_max for each in pinned.document.parts)
    try:
        last = date.fromisoformat(min(pinned.document.written_at[:10], received))
        return (last - timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return ""


def _fetched(store: Store, cache: Path, part: CatalogPart) -> Path | None:
    try:
        return parts_cache.fetch(store, part, folder=cache)
    except (Corrupt, NotFound):
        return None
