"""Raw profiles of the inbox, read back and checked.

An object that cannot be read is named and counted, and stops nothing: one bad byte among a
thousand profiles must not hide the other 999. What can stop a reading is a store that is away.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple, TypeVar

from farm import identity, schema
from farm.errors import Bad, NoResult
from farm.store import Store, profile_ids

INBOX: Final = "inbox/v1/"
_THREADS: Final = 16
_AT_ONCE: Final = 512  # so many objects are in memory while they are waited for
_PAGE: Final = 5_000

T = TypeVar("T")


class Row(NamedTuple):
    """A profile, the id that its bytes gave it, and the key it lies under."""

    profile_id: str
    key: str
    profile: schema.Profile


class Unreadable(NamedTuple):
    """An object of the inbox that is no profile, and why.

    sha256: of the bytes that were found; None where none could be had, or none were asked for.
    """

    key: str
    reason: str
    sha256: str | None = None


class Rows(NamedTuple):
    """What a reading found, in the order of the keys; no profile twice."""

    rows: list[Row]
    unreadable: list[Unreadable]


class Place(NamedTuple):
    """What the key of a profile says: the day it was sent, its job, and the hash of its bytes."""

    day: str
    job_id: str
    profile_id: str


def place(key: str) -> Place | None:
    """Return what an inbox key says, None if it is not the key of a profile."""
    ids = profile_ids(key)
    if ids is None:
        return None
    try:
        date.fromisoformat(day(key))
    except ValueError:
        return None
    return Place(day(key), *ids)


def day(key: str) -> str:
    """Return the day (YYYY-MM-DD) on which the profile of this key was sent."""
    return key.removeprefix(f"{INBOX}date=")[:10]


def read(store: Store, *, job_ids: Collection[str] | None = None, since: str = "") -> Rows:
    """Return every profile of the inbox, or those of the given jobs, each once.

    job_ids: only these are fetched; the job is in the key, so the rest costs a listing and nothing
    else. since: a day as `2026-11-30`; folders of earlier days are passed over.
    A profile that was sent twice, on two days, is one row. Raises what the store raises when it is
    away; an object that is damaged, foreign, misnamed or gone is listed as unreadable.
    """
    wanted = None if job_ids is None else frozenset(job_ids)
    rows: dict[str, Row] = {}
    unreadable: list[Unreadable] = []
    for entry in store.list(INBOX, after=f"{INBOX}date={since}" if since else ""):
        named = place(entry.key)
        if named is not None and named.profile_id in rows:
            continue
        if named is not None and wanted is not None and named.job_id not in wanted:
            continue
        found = _read(store, entry.key)
        if isinstance(found, Row):
            rows[found.profile_id] = found
        else:
            unreadable.append(found)
    return Rows(list(rows.values()), unreadable)


def keys(store: Store, *, since: str = "") -> Iterator[str]:
    """Yield the keys of the inbox, those of `since` (a day) and later ones; days side by side."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for some in chunks(_days(store, since), _THREADS):
            for prefix, page in zip(some, pool.map(partial(_page, store), some), strict=True):
                yield from page
                if len(page) == _PAGE:
                    yield from (each.key for each in store.list(prefix, after=page[-1]))


def fetch(store: Store, keys: Iterable[str]) -> Iterator[Row | Unreadable]:
    """Yield what lies under each key, in their order; several are fetched at a time.

    Raises what the store raises when it is away.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        for some in chunks(keys, _AT_ONCE):
            shares = chunks(some, -(-len(some) // _THREADS))
            # All of them first: threads that decode, or fetch meanwhile, fight for one lock.
            got = list(pool.map(partial(_share, store), shares))
            yield from map(partial(_understood, store), some, chain.from_iterable(got))


def chunks(found: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the same in lists of `size`, the last one shorter; nothing if there is nothing."""
    left = iter(found)
    while some := list(islice(left, size)):
        yield some


def _days(store: Store, since: str) -> Iterator[str]:
    """Yield the prefix of every day, found by leaps; a key that lies in no folder is one too."""
    after = f"{INBOX}date={since}" if since else INBOX
    while (entry := next(store.list(INBOX, after=after), None)) is not None:
        folder, slash, _ = entry.key.removeprefix(INBOX).partition("/")
        yield INBOX + folder + slash
        after = INBOX + folder + ("0" if slash else "")  # the sign that follows "/"


def _page(store: Store, prefix: str) -> list[str]:
    return [each.key for each in islice(store.list(prefix), _PAGE)]


def _read(store: Store, key: str) -> Row | Unreadable:
    return _understood(store, key, _got(store, key))


def _share(store: Store, keys: Sequence[str]) -> list[bytes | Unreadable]:
    return [_got(store, each) for each in keys]


def _got(store: Store, key: str) -> bytes | Unreadable:
    if place(key) is None:
        return Unreadable(key, "the name is not <job id>.<profile id>.json")
    try:
        return store.get(key)
    except (Bad, NoResult) as error:
        return Unreadable(key, str(error))


def _understood(store: Store, key: str, got: bytes | Unreadable) -> Row | Unreadable:
    found = "" if isinstance(got, Unreadable) else identity.content_id(got)
    if found not in key:  # once more: a wire may have done it
        got = _got(store, key)
        found = "" if isinstance(got, Unreadable) else identity.content_id(got)
    if isinstance(got, Unreadable):
        return got
    try:
        return Row(found, key, _profile(got, found, key))
    except Bad as error:
        return Unreadable(key, str(error), found)


def _profile(data: bytes, found: str, key: str) -> schema.Profile:
    named = place(key)
    if named is None or found != named.profile_id:
        raise Bad("the bytes are not those of its name", why=f"their hash is {found}")
    profile = schema.decode(data, schema.Profile)
    if profile.job_id != named.job_id:
        raise Bad(f"the profile is of job {profile.job_id!r}", why="the key names another one")
    return profile
