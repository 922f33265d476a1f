"""Is what the store holds what was put into it? Everything is read, nothing changed or deleted."""

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from farm import identity, schema
from farm.catalog import chain, rows
from farm.catalog.audit import Audited, audit
from farm.errors import Bad, NoResult
from farm.schema import Catalog, Job, Manifest
from farm.store import HEAD_KEY, LocalStore, Store, catalog_key, job_key
from farm.store.keys import is_folder, is_object

_PART: Final = re.compile(r"tables/profiles/v1/month=[0-9-]{7}/[0-9a-f]{64}\.parquet")
_PARTS: Final = "tables/profiles/v1/month="
_TABLES: Final = "tables/"


class Problem(NamedTuple):
    """An object that is not as it must be, and what is wrong with it."""

    key: str
    what: str


class Checked(NamedTuple):
    """What a check found. number: the newest manifest, 0 if there is none.

    parts, profiles: what counts, by that manifest. problems: damage, each key once. orphans: parts
    that count no longer, or never did. foreign: names that no farm gave; neither does harm.
    audited: what else was read, None unless the check was deep.
    """

    number: int
    parts: int
    profiles: int
    problems: list[Problem]
    orphans: list[str]
    foreign: list[str]
    audited: Audited | None = None


def check(store: Store, *, now: Callable[[], datetime], deep: bool = False) -> Checked:
    """Return what is wrong with the catalogue, and with `deep` with all that it is made from.

    Without `deep`: the newest manifest is whole, and every part that counts is there and has its
    size. With it every byte of inbox, parts, manifests, cards and artefacts is read, and parts and
    inbox hold the same profiles. Raises what the store raises when it is away.
    """
    found = _Found()
    pinned = chain.newest(store)
    document = pinned.document if pinned else chain.EMPTY
    number = pinned.number if pinned else 0
    for damaged in pinned.damaged if pinned else ():
        found.say(damaged.key, damaged.reason)
    _check_hint(store, number, found)
    _check_tables(store, document, found, prefix=_TABLES if deep else _PARTS, last=number)
    audited = None
    if deep:
        _check_chain(store, number, found)
        _check_runs(store, found)
        with TemporaryDirectory(prefix="farm-check-") as scratch:
            today = now().astimezone(UTC).date()
            audited = audit(
                store, document.parts, today=today, scratch=Path(scratch), say=found.say
            )
        found.foreign += [*audited.foreign, *_strangers(store)]
    else:
        for each in document.unreadable:
            if rows.place(each.key) is None:
                found.foreign.append(each.key)
            else:
                found.say(each.key, each.reason)
    problems = [Problem(key, what) for key, what in sorted(found.problems.items())]
    profiles = sum(each.rows for each in document.parts)
    return Checked(
        number, len(document.parts), profiles, problems, found.orphans, found.foreign, audited
    )


class _Found:
    """What is wrong so far: for each key the first thing that was said."""

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self.orphans: list[str] = []
        self.foreign: list[str] = []

    def say(self, key: str, what: str) -> None:
        self.problems.setdefault(key, what)


def _check_hint(store: Store, number: int, found: _Found) -> None:
    try:
        hinted = chain.hinted(store)
    except Bad as error:
        found.say(HEAD_KEY, f"{error}; the next commit writes it anew")
        return
    if hinted > number:
        found.say(HEAD_KEY, f"names manifest {hinted}, and {number} is the newest")


def _check_tables(
    store: Store, document: Catalog, found: _Found, *, prefix: str, last: int
) -> None:
    """Every part that counts is there and has its size; what else lies there is told apart."""
    counting = {each.key: each for each in document.parts}
    for entry in store.list(prefix):
        part = counting.pop(entry.key, None)
        if part is not None:
            if entry.size != part.bytes:
                found.say(part.key, f"has {entry.size} bytes, not {part.bytes}")
        elif _PART.fullmatch(entry.key):
            found.orphans.append(entry.key)
        elif (number := chain.number_of(entry.key)) is not None:
            if number > last:
                found.say(entry.key, f"lies beyond the end of the chain, which is {last}")
        elif entry.key != HEAD_KEY:
            found.foreign.append(entry.key)
    for key in counting:
        found.say(key, "is not in the store")


def _check_chain(store: Store, last: int, found: _Found) -> None:
    """Numbers have no gaps, and each manifest names the one before by its digest."""
    before: str | None = None  # the digest of the manifest before, None if that one is damaged
    for number in range(1, last + 1):
        key = catalog_key(number)
        data = chain.read(store, number)
        try:
            document = chain.opened(data, number)
        except Bad as error:
            found.say(key, str(error))
            before = None
            continue
        if before is not None and document.parent_sha256 != before:
            found.say(key, f"does not name {catalog_key(number - 1)}, which lies before it")
        before = identity.content_id(data or b"")


def _check_runs(store: Store, found: _Found) -> None:
    """Every run and every job is there and reads as what it says it is."""
    wanted: set[str] = set()
    for entry in store.list("runs/v1/"):
        try:
            wanted |= {each.job_id for each in schema.decode(store.get(entry.key), Manifest).jobs}
        except (Bad, NoResult) as error:
            found.say(entry.key, str(error))
    for entry in store.list("jobs/v1/"):
        try:
            job_id = schema.decode(store.get(entry.key), Job).job_id
        except (Bad, NoResult) as error:
            found.say(entry.key, str(error))
            continue
        if job_key(job_id) == entry.key:
            wanted.discard(job_id)
        else:
            found.say(entry.key, f"is job {job_id}")
    for job_id in sorted(wanted):
        found.say(job_key(job_id), "is named by a run, and not in the store")


def _strangers(store: Store) -> Iterator[str]:
    """Yield what lies in a folder and in no listing, because it is no key; folders end in "/"."""
    if not isinstance(store, LocalStore):
        return
    for top in ("inbox", "tables"):
        for folder, folders, files in os.walk(store.root / top):
            base = os.path.relpath(folder, store.root)
            odd = [f"{each}/" for each in folders if not is_folder(each)]
            odd += [each for each in files if not is_object(each) and not each.startswith(".tmp-")]
            yield from (f"{base}/{each}" for each in sorted(odd))
            folders[:] = sorted(each for each in folders if is_folder(each))
