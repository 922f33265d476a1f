"""The laws of reading and writing, held by every backend: to add one, add a line in conftest.py."""

import hashlib
import random
from pathlib import Path

import pytest

from farm.errors import Refused
from farm.store import Conflict, Corrupt, NotFound, Store, StoreError, blob_key
from tests.store.conftest import Backend


def test_new_bytes_are_created_and_read_back(store: Store) -> None:
    """`put_new` answers True, and `get` returns exactly those bytes."""
    assert store.put_new("runs/v1/r-1/manifest.json", b"{}")

    assert b"{}" == store.get("runs/v1/r-1/manifest.json")


def test_the_same_bytes_again_are_false_and_no_error(store: Store) -> None:
    store.put_new("a/b.json", b"one")

    assert not store.put_new("a/b.json", b"one")


def test_other_bytes_conflict_and_the_first_stay(store: Store) -> None:
    store.put_new("a/b.json", b"one")

    with pytest.raises(Conflict):
        store.put_new("a/b.json", b"two")

    assert b"one" == store.get("a/b.json")


def test_other_bytes_under_a_name_that_promises_ours_are_damage(store: Store) -> None:
    """A key that is the digest of its bytes has one content; another one is Corrupt."""
    key = blob_key("trace", hashlib.sha256(b"ours").hexdigest(), "bin")
    store.put_new(key, b"theirs")

    with pytest.raises(Corrupt) as caught:
        store.put_new(key, b"ours")
    with pytest.raises(Conflict):
        store.put_new(key, b"neither")

    assert 1 == caught.value.exit_code
    assert b"theirs" == store.get(key)


def test_an_unknown_key_is_not_found(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        store.get("a/b.json")
    with pytest.raises(NotFound):
        store.get("a/b.json", to=tmp_path / "out")

    assert 3 == caught.value.exit_code
    assert "a/b.json" == caught.value.key
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [0, 1, 5 << 20, 20 << 20])
def test_every_size_survives_as_bytes_and_as_file(store: Store, tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    source = tmp_path / "source"
    source.write_bytes(data)

    store.put_new("a/bytes.bin", data)
    store.put_new("a/file.bin", source)
    returned = store.get("a/file.bin", to=tmp_path / "new" / "out")

    assert data == store.get("a/bytes.bin")
    assert data == (tmp_path / "new" / "out").read_bytes()
    assert b"" == returned
    assert ["out"] == [each.name for each in (tmp_path / "new").iterdir()]
    assert not store.put_new("a/bytes.bin", source)
    assert not store.put_new("a/file.bin", data)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "a",
        "a/b",
        "/a.json",
        "a/.json",
        "a/b.",
        "a/..json",
        "../a.json",
        "a/../b.json",
        "a.b/c.json",
        "A/b.json",
        "a/B.json",
        "a//b.json",
        "a/b.json/",
        "a b.json",
        "a/é.json",
        "-a.json",
        "a/b.json\n",
        "a\0.json",
        "a" * 201 + "/b.json",
        "a/" + "b" * 200 + ".json",
    ],
)
def test_a_key_outside_the_grammar_is_refused_by_every_method(backend: Backend, key: str) -> None:
    store = backend.store
    with pytest.raises(Refused):
        store.put_new(key, b"")
    with pytest.raises(Refused):
        store.get(key)
    with pytest.raises(Refused):
        store.swap(key, b"", expect=None)


def test_wrong_digest_is_corrupt_and_nothing_is_handed_out(store: Store, tmp_path: Path) -> None:
    """With `sha256`, damaged bytes are neither returned nor named."""
    store.put_new("a/b.bin", b"truncate")
    promised = hashlib.sha256(b"truncated").hexdigest()

    with pytest.raises(Corrupt) as caught:
        store.get("a/b.bin", sha256=promised)
    with pytest.raises(Corrupt):
        store.get("a/b.bin", to=tmp_path / "folder" / "out", sha256=promised)

    assert 1 == caught.value.exit_code
    assert [] == list((tmp_path / "folder").iterdir())


def test_right_digest_is_verified_and_returned(store: Store, tmp_path: Path) -> None:
    store.put_new("a/b.bin", b"whole")
    digest = hashlib.sha256(b"whole").hexdigest()

    assert b"whole" == store.get("a/b.bin", sha256=digest)
    store.get("a/b.bin", to=tmp_path / "out", sha256=digest)
    assert b"whole" == (tmp_path / "out").read_bytes()


# ── swap ─────────────────────────────────────────────────────────────────────────────────────────


def test_swap_follows_the_etag(store: Store) -> None:
    first = store.swap("tags/last.json", b"1", expect=None)
    second = store.swap("tags/last.json", b"2", expect=first)

    assert b"2" == store.get("tags/last.json")
    assert first != second


@pytest.mark.parametrize("stale", [None, "0" * 64])
def test_swap_with_a_stale_etag_conflicts(store: Store, stale: str | None) -> None:
    store.swap("tags/last.json", b"1", expect=None)

    with pytest.raises(Conflict):
        store.swap("tags/last.json", b"2", expect=stale)

    assert b"1" == store.get("tags/last.json")


def test_swap_of_what_is_not_there_conflicts_unless_none_is_expected(store: Store) -> None:
    with pytest.raises(Conflict):
        store.swap("tags/last.json", b"1", expect="0" * 64)

    with pytest.raises(NotFound):
        store.get("tags/last.json")


def test_a_listing_gives_the_etag_that_swap_expects(store: Store) -> None:
    """A reader that did not write the object can still replace it."""
    store.swap("tags/last.json", b"1", expect=None)
    [entry] = store.list("tags/")

    store.swap("tags/last.json", b"2", expect=entry.etag)

    assert b"2" == store.get("tags/last.json")


def test_every_error_names_key_store_and_exit_code(store: Store) -> None:
    store.put_new("a/b.json", b"one")

    with pytest.raises(StoreError) as caught:
        store.put_new("a/b.json", b"two")

    assert ("a/b.json", 1) == (caught.value.key, caught.value.exit_code)
    assert caught.value.store in str(caught.value)
    assert caught.value.hint
