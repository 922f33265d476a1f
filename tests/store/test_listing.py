"""The laws of a listing, held by every backend: whole, in byte order, cut anywhere, in pages."""

import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from farm.store import Store
from tests.store.conftest import Backend

# As the farm lays them out; around `-`, `.`, `/`, `0` byte order and folder order may differ.
LAYOUT = [
    "inbox/v1/date=2026-11-29/aa.1.json",
    "inbox/v1/date=2026-11-29/ab.1.json",
    "inbox/v1/date=2026-11-30/aa.2.json",
    "inbox/v1/date=2026-11-30/aa0.2.json",
    "jobs/v1/0a/0a.json",
    "jobs/v1/0b/0b.json",
    "runs/v1/r-0a/manifest.json",
    "runs/v1/r-0b/manifest.json",
    "tables/profiles/v1/head.json",
    "tables/profiles/v1/manifest/00000001.json",
    "tables/profiles/v1/month=2026-11/ff.parquet",
    "tags/a-b.json",
    "tags/a.json",
    "tags/a0.json",
    "tags/a_b.json",
    "tags/ab.json",
]
# As they must not lie: a folder's name with `-` or `.` after it is its neighbour.
NEIGHBOURS = [
    "a-/x.json",
    "a-b.json",
    "a.json",
    "a/b-c/d.json",
    "a/b.json",
    "a/b/0.json",
    "a/b0.json",
    "a/b=1.json",
    "a0.json",
    "a0/x.json",
    "ab.json",
]


def _put_all(store: Store, keys: Iterable[str]) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda key: store.put_new(key, b"{}"), keys))


def _keys(store: Store, prefix: str = "", after: str = "") -> list[str]:
    return [each.key for each in store.list(prefix, after=after) if not each.key.startswith("meta")]


def _fill(backend: Backend) -> list[str]:
    """Put keys, the last ones first, and return them as they must be listed."""
    keys = sorted(LAYOUT + (NEIGHBOURS if backend.sorts else []))
    for key in reversed(keys):
        backend.store.put_new(key, key.encode())
    return keys


def test_a_listing_is_in_byte_order(store: Store, backend: Backend) -> None:
    assert _fill(backend) == _keys(store)


def test_prefix_and_after_cut_a_listing_anywhere(store: Store, backend: Backend, seed: int) -> None:
    """A prefix is any string, `after` is exclusive and need not exist; it may name a folder."""
    keys = _fill(backend)
    cuts = sorted({key[:end] for key in keys for end in range(len(key) + 1)} | {"zz", "tags/a~"})
    pairs = [(prefix, after) for prefix in cuts for after in cuts if _is_near(prefix, after)]
    random.Random(seed).shuffle(pairs)
    folders = [("", key.rpartition("/")[0]) for key in keys]

    for prefix, after in [*folders, *pairs[: backend.cuts]]:
        wanted = [each for each in keys if each.startswith(prefix) and each > after]
        assert wanted == _keys(store, prefix, after), (prefix, after)


def _is_near(prefix: str, after: str) -> bool:
    return prefix.startswith(after) or after.startswith(prefix)


def test_an_entry_tells_size_and_time(store: Store) -> None:
    store.put_new("a/b.bin", b"12345")

    [entry] = store.list("a/")

    assert ("a/b.bin", 5) == (entry.key, entry.size)
    assert entry.modified > 1.7e9


def test_many_keys_come_in_order_and_page_by_page(
    store: Store, backend: Backend, seed: int
) -> None:
    rng = random.Random(seed)
    names = (f"d{rng.randrange(20)}/{rng.getrandbits(64):016x}" for _ in range(backend.keys))
    keys = {f"inbox/v1/{name}.x.json" for name in names}
    _put_all(store, keys)

    paged: list[str] = []
    while page := [
        entry.key
        for entry, _ in zip(
            store.list("inbox/", after=paged[-1] if paged else ""), range(999), strict=False
        )
    ]:
        paged += page

    assert sorted(keys) == _keys(store, "inbox/")
    assert sorted(keys) == paged


def test_an_empty_store_lists_nothing(store: Store) -> None:
    assert [] == _keys(store)
    assert [] == _keys(store, "inbox/v1/")
