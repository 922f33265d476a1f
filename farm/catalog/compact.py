"""From the inbox to the catalogue: profiles become parts, and a manifest says which parts count.

A crash before the commit leaves nothing but a part that nobody names; a commit that was lost is
made good by the next pass, because its profiles are in no part that counts.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from farm.catalog import chain, rows
from farm.catalog.cache import fetch
from farm.catalog.intake import Known, Lost, take
from farm.catalog.parts import ids, is_ours
from farm.catalog.rows import INBOX, Unreadable
from farm.errors import Bad, Refused
from farm.schema import Catalog, CatalogPart, CatalogUnreadable
from farm.store import Conflict, NotFound, Store, part_key

BATCH: Final = 20_000  # profiles in a part: what the memory of a small machine holds
_TRIES: Final = 10
_LONGER: Final = 8
_REASON: Final = 300  # signs of a reason that are kept


class Compacted(NamedTuple):
    """What a pass did. number: the newest manifest, 0 if there is none.

    added: profiles that are in a part now; for `rebuild` all those in the new parts. unreadable:
    objects newly found to be no profiles. parts: how many were written. already: keys that were
    passed over, because a part holds their profile. lost: profiles that the replaced parts of a
    rebuild held and the inbox has no longer.
    """

    number: int
    added: int
    unreadable: int
    parts: int
    already: int
    lost: tuple[str, ...] = ()


def compact(
    store: Store,
    *,
    cache: Path,
    now: Callable[[], datetime],
    writer: str,
    every_day: bool = False,
    batch: int = BATCH,
    sleep: Callable[[float], None] = time.sleep,
    rng: random.Random | None = None,
) -> Compacted:
    """Take every profile that arrived since yesterday into parts, and commit.

    Once a day (UTC), after damage, and with `every_day`, all days are looked at: a clock may have
    been wrong. Each `batch` of profiles is committed by itself, so an interrupt loses little.
    A part that the store has no longer is left out, and its profiles are taken from the inbox.
    Raises Conflict if other writers were faster ten times, Refused if a newer farm wrote the newest
    manifest, Corrupt if the store does not give back what it was given, and what the store raises
    when it is away.
    """

    def attempt(lost: frozenset[str]) -> Compacted:
        made = _Pass(store, cache=cache, now=now, writer=writer, batch=batch)
        held = made.pinned.document
        all_days = every_day or lost or made.pinned.damaged or held.swept != made.today.isoformat()
        since = "" if all_days else (made.today - timedelta(days=1)).isoformat()
        kept = [each for each in held.parts if each.key not in lost]
        return made.run(kept, since=since, atomic=bool(lost))

    return _repeated(attempt, sleep, rng or random.Random())


def rebuild(
    store: Store,
    *,
    since: str,
    cache: Path,
    now: Callable[[], datetime],
    writer: str,
    batch: int = BATCH,
    sleep: Callable[[float], None] = time.sleep,
    rng: random.Random | None = None,
) -> Compacted:
    """Make the parts received since this day anew from the inbox, and replace them in one commit.

    since: `2026-11-30`, or "" for everything. What was unreadable since then is tried again. Other
    parts stay. Raises Refused if `since` is no day, else as `compact`.
    """
    if since:
        _check_day(since)

    def attempt(lost: frozenset[str]) -> Compacted:
        made = _Pass(store, cache=cache, now=now, writer=writer, batch=batch)
        held = made.pinned.document.parts
        kept = [each for each in held if each.received_max < since and each.key not in lost]
        replaced = [each for each in held if each not in kept]
        days = (each.received_min for each in replaced if each.received_max >= since)
        first = "" if lost or made.pinned.damaged else min([since, *days])
        made.forget(first)
        before = made.ids(replaced)
        done = made.run(kept, since=first, atomic=True)
        return done._replace(lost=tuple(each for each in before if not made.knows(each)))

    return _repeated(attempt, sleep, rng or random.Random())


def _repeated(
    attempt: Callable[[frozenset[str]], Compacted],
    sleep: Callable[[float], None],
    rng: random.Random,
) -> Compacted:
    """Return what an attempt returned that met no faster writer; each knows the parts to leave."""
    lost: frozenset[str] = frozenset()
    conflicts = 0
    while True:
        try:
            return attempt(lost)
        except Lost as error:
            lost |= error.keys
        except Conflict as error:
            conflicts += 1
            if conflicts == _TRIES:
                raise Conflict(
                    f"other writers of the catalogue were faster {_TRIES} times",
                    key=error.key,
                    store=error.store,
                    hint="nothing is lost: try again, or leave it to them",
                ) from error
            sleep(rng.uniform(0, min(2.0, 0.05 * 2**conflicts)))


class _Pass:
    """One reading of the chain and of the inbox, and the commits that follow from it."""

    def __init__(
        self, store: Store, *, cache: Path, now: Callable[[], datetime], writer: str, batch: int
    ) -> None:
        self._store, self._cache, self._batch = store, cache, batch
        self._now, self._writer = now, writer
        self.today = now().astimezone(UTC).date()
        self.pinned = _pinned(store)
        held = self.pinned.document.unreadable
        self._unreadable = {each.key: each for each in held}
        self._kept: list[CatalogPart] = []
        self._known = Known(store, [], cache=cache)
        self._parts = self._added = self._already = self._bad = 0

    def ids(self, held: Sequence[CatalogPart]) -> list[str]:
        """Return what these parts hold, as far as they can be read."""
        found: list[str] = []
        for each in held:
            with suppress(Bad, NotFound):
                found += ids(fetch(self._store, each, folder=self._cache))
        return sorted(found)

    def knows(self, profile_id: str) -> bool:
        return profile_id in self._known

    def forget(self, first: str) -> None:
        """Try again what was unreadable on this day or later; "": all of it."""
        after = f"{INBOX}date={first}" if first else ""
        self._unreadable = {key: each for key, each in self._unreadable.items() if key <= after}

    def run(self, kept: list[CatalogPart], *, since: str, atomic: bool) -> Compacted:
        """Add to these parts what the inbox has beyond them. atomic: in one commit at the end."""
        self._kept = kept
        self._known = Known(self._store, kept, cache=self._cache)
        self._known.reach(since)
        for keys, last in _batches(self._fresh(since), self._batch):
            self._take(keys, alone=atomic)
            if last and not since:
                self._commit(swept=self.today.isoformat())
            elif last or not atomic:
                self._commit(swept=self.pinned.document.swept)
        number = self.pinned.number
        if number:
            chain.remind(self._store, number)
        return Compacted(number, self._added, self._bad, self._parts, self._already)

    def _fresh(self, since: str) -> Iterator[str]:
        for key in rows.keys(self._store, since=since):
            named = rows.place(key)
            if named is not None and named.profile_id in self._known:
                self._already += 1
            elif key not in self._unreadable:
                yield key

    def _take(self, keys: Sequence[str], *, alone: bool) -> None:
        """Make one part for each month in which these were received.

        alone: other parts stay as they are.
        """
        months: dict[str, list[str]] = {}
        for key in keys:
            named = rows.place(key)
            months.setdefault(named.day[:7] if named else "", []).append(key)
        for month, some in months.items():
            beside = [] if alone else self._small(month, len(some))
            taken = take(self._store, some, month=month, known=self._known, beside=beside)
            self._bad += len(taken.unreadable)
            self._unreadable |= {each.key: _told(each) for each in taken.unreadable}
            if taken.part is not None:
                self._kept = [each for each in self._kept if each not in beside]
                self._kept.append(taken.part)
                self._parts += 1
                self._added += taken.added

    def _small(self, month: str, rows: int) -> list[CatalogPart]:
        """Return the parts of this month that so many new profiles take along.

        Every part is a file that each reader opens: one for each of 300 small runs made a query
        take 2.5 s, in place of 0.3 s for one part of them all (measured). A part at most eight
        times as long as what joins it is written anew, so that a profile is written a few times in
        its life and a month has a handful of parts.
        """
        there = part_key(month, "0" * 64).rpartition("/")[0] + "/"
        found = []
        for each in sorted(self._kept, key=lambda part: part.rows):
            if not each.key.startswith(there):
                continue
            if each.rows > _LONGER * rows or each.rows + rows > self._batch:
                break
            if is_ours(self._known.file(each)):
                found.append(each)
                rows += each.rows
        if found:  # a profile that two of them hold must be seen before they are joined
            self._known.reach(min(each.received_max for each in found))
        return found

    def _commit(self, *, swept: str | UnsetType) -> None:
        """Commit what this pass has come to, if that is not what the chain says already."""
        before = self.pinned.document
        bad = [self._unreadable[key] for key in sorted(self._unreadable) if not self._has(key)]
        changed = self._kept != before.parts or bad != before.unreadable
        due = swept != before.swept or self.pinned.damaged
        if changed or (due and self.pinned.number):
            document = Catalog(
                number=self.pinned.number + 1,
                parent_sha256=self.pinned.sha256 or UNSET,
                written_at=self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                writer=self._writer,
                swept=swept,
                parts=list(self._kept),
                unreadable=bad,
            )
            self.pinned = chain.commit(self._store, document)

    def _has(self, key: str) -> bool:
        """Return whether a part holds the profile of this key: another copy could be read."""
        named = rows.place(key)
        return named is not None and named.profile_id in self._known


def _pinned(store: Store) -> chain.Pinned:
    pinned = chain.newest(store)
    if pinned is None:
        return chain.Pinned(0, chain.EMPTY, "")
    if any(each.newer for each in pinned.damaged):
        raise Refused(
            "the catalogue was written by a newer farm",
            why=f"{pinned.damaged[0].key}: {pinned.damaged[0].reason}",
            hint="upgrade this farm, or let the newer one compact",
        )
    return pinned


def _batches(found: Iterator[str], size: int) -> Iterator[tuple[list[str], bool]]:
    """Yield lists of `size`, the last one shorter and perhaps empty; and whether it is the last."""
    held = list(islice(found, size))
    while following := list(islice(found, 1)):
        yield held, False
        held = following + list(islice(found, size - 1))
    yield held, True


def _told(found: Unreadable) -> CatalogUnreadable:
    digest = UNSET if found.sha256 is None else found.sha256
    return CatalogUnreadable(key=found.key, reason=found.reason[:_REASON], sha256=digest)


def _check_day(since: str) -> None:
    try:
        good = date.fromisoformat(since).isoformat() == since
    except ValueError:
        good = False
    if not good:
        raise Refused(f"{since!r} is no day", why="a day is written as 2026-11-30")
