"""Parts on this machine: right or dropped, the oldest going first, shared by any number."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from farm.catalog import cache
from farm.store import Corrupt, NotFound
from tests.farm import make
from tests.farm.catalog import shelved


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "cache"
    made.mkdir()
    return made


@pytest.fixture
def part(store):
    return shelved.part(store, [make.row()])


def test_a_part_is_fetched_once(store, part, folder):
    """What is here is not asked for again."""
    first = cache.fetch(store, part, folder=folder)
    (store.root / part.key).unlink()

    assert first == cache.fetch(store, part, folder=folder)
    assert cache.intact(first)


def test_a_damaged_copy_is_fetched_again(store, part, folder):
    path = cache.fetch(store, part, folder=folder)
    flip(path)

    assert not cache.intact(path)
    assert path == cache.fetch(store, part, folder=folder)
    assert cache.intact(path)


def test_what_the_store_has_not_is_told_and_not_kept(store, part, folder):
    flip(store.root / part.key)
    with pytest.raises(Corrupt):
        cache.fetch(store, part, folder=folder)

    (store.root / part.key).unlink()
    with pytest.raises(NotFound):
        cache.fetch(store, part, folder=folder)

    assert [] == list(folder.iterdir())


def test_the_longest_unused_goes_first(store, folder):
    """Used is what was asked for, not what was fetched late."""
    old, older, new = (shelved.part(store, [make.row(fence=each)]) for each in (1, 2, 3))
    aged(cache.fetch(store, old, folder=folder), hours=2)
    aged(cache.fetch(store, older, folder=folder), hours=3)
    limit = old.bytes + new.bytes

    path = cache.fetch(store, new, folder=folder, limit_bytes=limit)

    assert {path, folder / f"{old.sha256}.parquet"} == set(folder.iterdir())


def test_what_may_be_read_right_now_is_never_dropped(store, folder):
    """Another process may have verified it a moment ago."""
    paths = [
        cache.fetch(store, shelved.part(store, [make.row(fence=each)]), folder=folder)
        for each in (1, 2)
    ]

    cache.trim(folder, limit_bytes=0)

    assert set(paths) == set(folder.iterdir())


def test_what_killed_processes_left_goes_after_a_day(folder):
    names = [f"{'0' * 64}.parquet", ".farm-a", f".{'1' * 64}.parquet.a", ".farm-b", "notes"]
    for name, hours in zip(names, (0, 25, 25, 23, 99), strict=True):
        (folder / name).write_bytes(b"x")
        aged(folder / name, hours=hours)
    (folder / ".farm-c").mkdir()
    (folder / ".farm-c/tail.json").write_bytes(b"x")
    aged(folder / ".farm-c", hours=25)

    cache.trim(folder, limit_bytes=0)

    assert {names[0], ".farm-b", "notes"} == {each.name for each in folder.iterdir()}


def test_many_readers_share_the_folder(store, part, folder):
    """Each gets whole bytes, whoever wrote them last, and nobody leaves a torn file."""
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda _: read(store, part, folder), range(48)))

    assert {part.bytes} == set(found)
    assert [f"{part.sha256}.parquet"] == [each.name for each in folder.iterdir()]


def test_kept_bytes_have_their_digest_as_name(folder):
    path = cache.keep(b"rows", folder=folder)

    assert b"rows" == path.read_bytes()
    assert cache.intact(path)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_CACHE_HOME": "/var/cache"}, "/var/cache/farm/parts"),
        ({}, os.path.expanduser("~/.cache/farm/parts")),
        ({"XDG_CACHE_HOME": "relative"}, os.path.expanduser("~/.cache/farm/parts")),
    ],
)
def test_the_folder_is_where_a_user_keeps_such_things(environ, folder):
    """A relative XDG_CACHE_HOME is no folder: the standard says to ignore it."""
    assert folder == str(cache.default_folder(environ))


def read(store, part, folder) -> int:
    return len(cache.fetch(store, part, folder=folder).read_bytes())


def flip(path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def aged(path, *, hours: float) -> None:
    now = path.stat().st_mtime
    os.utime(path, (now - hours * 3600, now - hours * 3600))
