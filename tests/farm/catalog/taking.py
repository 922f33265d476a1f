"""Compacting on a fixed day, and the laws that a catalogue keeps whatever happened to it."""

import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from farm import identity
from farm.catalog import chain, parts, rows
from farm.catalog.compact import Compacted, compact, rebuild
from farm.schema import Catalog
from farm.store import LocalStore, Store, catalog_key

TODAY, YESTERDAY, LONG_AGO = "2026-11-30", "2026-11-29", "2026-10-15"


def at(day: str = TODAY) -> datetime:
    return datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)


def _words(cache: Path, day: str) -> dict:
    rng = random.Random(0)
    return {
        "cache": cache,
        "now": lambda: at(day),
        "writer": "w",
        "sleep": lambda _: None,
        "rng": rng,
    }


def compacted(store: Store, cache: Path, *, day: str = TODAY, **more) -> Compacted:
    return compact(store, **(_words(cache, day) | more))


def rebuilt(store: Store, cache: Path, *, since: str = "", day: str = TODAY, **more) -> Compacted:
    return rebuild(store, since=since, **(_words(cache, day) | more))


def overwrite(store: LocalStore, key: str, data: bytes) -> None:
    """What a disk or a hand does; the store itself never would."""
    (store.root / key).write_bytes(data)


def remove(store: LocalStore, key: str) -> None:
    (store.root / key).unlink()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def newest(store: Store) -> Catalog:
    found = chain.newest(store)
    assert found is not None
    assert () == found.damaged
    return found.document


def live(store: Store) -> list[str]:
    """The ids in the parts that count, sorted, as often as they are there; each part is whole."""
    found: list[str] = []
    for each in newest(store).parts:
        ids = parts.ids(store.get(each.key, sha256=each.sha256))
        assert each.rows == len(ids)
        found += ids
    return sorted(found)


def assert_once(store: Store, ids: set[str]) -> None:
    """The parts that count hold exactly these profiles, each once."""
    counted = Counter(live(store))
    assert ids == set(counted)
    assert {1} >= set(counted.values())


def assert_whole(store: Store, ids: set[str]) -> None:
    """They do, and the chain has no gap and no fork."""
    assert_once(store, ids)
    last, parent = newest(store).number, None
    for number in range(1, last + 1):
        data = store.get(catalog_key(number))
        if parent is not None:
            assert parent == chain.opened(data, number).parent_sha256
        parent = identity.content_id(data)
    assert last == sum(1 for each in store.list("tables/profiles/v1/manifest/"))


def readable(store: Store) -> set[str]:
    """The ids of the inbox that can be read."""
    return {each.profile_id for each in rows.read(store).rows}
