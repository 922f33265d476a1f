"""Every byte that profiles rest on, read back: parts, inbox, cards and artefacts.

What is wrong is named and stops nothing. Memory grows with the ids of the profiles, and with what
is wrong, alone.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from farm import schema
from farm.catalog import parts, rows
from farm.catalog.rows import Row
from farm.errors import Bad, NoResult, Refused
from farm.schema import CatalogPart
from farm.store import NotFound, Store, card_key

# What a lifecycle rule may have removed, and after how many days; the rest of a store stays.
KEPT_DAYS: Final = {"samples": 400, "trace": 90}
WRONG: Final = (Bad, NoResult, Refused)  # Refused: a document that names no possible key
_THREADS: Final = 16
_AT_ONCE: Final = 256
_SEEN: Final = -1
_OVER: Final = ""

# What to do with something wrong: called with its key and with what is wrong.
Say = Callable[[str, str], None]


class Audited(NamedTuple):
    """objects: in the inbox, misnamed ones apart. waiting: profiles that no part holds yet.

    blobs: artefacts read and found whole. expired: those that a lifecycle rule may have removed.
    foreign: keys of the inbox that are no names of profiles.
    """

    objects: int
    waiting: int
    blobs: int
    expired: int
    foreign: list[str]


class _Thing(NamedTuple):
    """Something that a profile names. kind: of an artefact, "" for the card. day: it was sent."""

    kind: str
    key: str
    sha256: str
    day: str


def audit(
    store: Store, held: Sequence[CatalogPart], *, today: date, scratch: Path, say: Say
) -> Audited:
    """Read these parts, the whole inbox and all that it names; say what is wrong.

    scratch: a folder for what is too big for memory. Raises what the store raises when it is away.
    """
    ids = _ids(store, held, scratch / "part", say)
    inbox = _Inbox(store, ids, today=today, scratch=scratch, say=say)
    found = inbox.read()
    lacking = Counter(index for index in ids.values() if index != _SEEN)
    example = {index: each for each, index in ids.items() if index != _SEEN}
    for index in sorted(lacking):
        words = f"{lacking[index]} of its profiles cannot be read from the inbox"
        say(held[index].key, f"{words}: {example[index].hex()}")
    return found


def _ids(store: Store, held: Sequence[CatalogPart], file: Path, say: Say) -> dict[bytes, int]:
    """Return the ids that the parts hold, each with the number of its part."""
    found: dict[bytes, int] = {}
    for index, part in enumerate(held):
        try:
            store.get(part.key, to=file, sha256=part.sha256)
            ids = parts.ids(file)
        except WRONG as error:
            say(part.key, str(error))
            continue
        if len(ids) != part.rows:
            say(part.key, f"holds {len(ids)} profiles, and the manifest says {part.rows}")
        for each in ids:
            digest = bytes.fromhex(each)
            if digest in found:
                say(part.key, f"holds profile {each} again, after {held[found[digest]].key}")
            found.setdefault(digest, index)
    return found


class _Inbox:
    """A reading of the inbox against the ids that the parts hold."""

    def __init__(
        self, store: Store, ids: dict[bytes, int], *, today: date, scratch: Path, say: Say
    ) -> None:
        self._store, self._ids, self._today = store, ids, today
        self._scratch, self._say = scratch, say
        self._cards: set[str] = set()
        self._foreign: list[str] = []
        self._objects = self._waiting = self._blobs = self._expired = 0

    def read(self) -> Audited:
        with ThreadPoolExecutor(_THREADS) as pool:
            for some in rows.chunks(rows.fetch(self._store, self._keys()), _AT_ONCE):
                things = [thing for each in some for thing in self._named(each)]
                for thing, wrong in zip(things, pool.map(self._wrong, things), strict=True):
                    self._count(thing, wrong)
        return Audited(self._objects, self._waiting, self._blobs, self._expired, self._foreign)

    def _keys(self) -> Iterator[str]:
        for key in rows.keys(self._store):
            if rows.place(key) is None:
                self._foreign.append(key)
            else:
                self._objects += 1
                yield key

    def _named(self, found: Row | rows.Unreadable) -> Iterator[_Thing]:
        """Tick the profile off, and yield what it names."""
        if isinstance(found, rows.Unreadable):
            self._say(found.key, found.reason)
            return
        digest = bytes.fromhex(found.profile_id)
        self._waiting += digest not in self._ids
        self._ids[digest] = _SEEN
        day = rows.day(found.key)
        card = found.profile.card_id
        if card not in self._cards:
            self._cards.add(card)
            yield _Thing("", f"cards/v1/{card}.json", card, day)
        for kind, each in found.profile.artifacts.items():
            yield _Thing(kind, each.key, each.sha256, day)

    def _wrong(self, thing: _Thing) -> str | None:
        """Return what is wrong with a thing, _OVER if its time is, None if it is whole."""
        try:
            if thing.kind:
                file = self._scratch / f"blob-{threading.get_ident()}"
                self._store.get(thing.key, to=file, sha256=thing.sha256)
            else:
                data = self._store.get(card_key(thing.sha256), sha256=thing.sha256)
                schema.decode(data, schema.SystemCard)
        except WRONG as error:
            return _OVER if isinstance(error, NotFound) and self._is_over(thing) else str(error)
        return None

    def _is_over(self, thing: _Thing) -> bool:
        kept = KEPT_DAYS.get(thing.kind)
        if kept is None:
            return False
        return (self._today - date.fromisoformat(thing.day)).days > kept

    def _count(self, thing: _Thing, wrong: str | None) -> None:
        if wrong is None:
            self._blobs += thing.kind != ""
        elif wrong == _OVER:
            self._expired += 1
        else:
            self._say(thing.key, wrong)
