"""The laws of a store, held by every backend: to add one, add a line to BACKENDS."""

import hashlib
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from farm.errors import FarmError, Refused
from farm.store import Conflict, Corrupt, LocalStore, NotFound, Store, StoreError, open_store

# name → what makes an empty store for a test, and the words with which another process opens it
Backend = Callable[[Path], tuple[Store, str]]


def _local(folder: Path) -> tuple[Store, str]:
    return LocalStore(folder / "store", fsync=False), f"LocalStore(Path({str(folder / 'store')!r}))"


BACKENDS: dict[str, Backend] = {"local": _local}
ROUNDS = 20
WRITERS = 12

pytestmark = pytest.mark.parametrize("backend", list(BACKENDS))


@pytest.fixture
def store(backend: str, tmp_path: Path) -> Store:
    made = BACKENDS[backend](tmp_path)[0]
    made.probe()
    return made


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


def test_an_unknown_key_is_not_found(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        store.get("a/b.json")
    with pytest.raises(NotFound):
        store.get("a/b.json", to=tmp_path / "out")

    assert 3 == caught.value.exit_code
    assert "a/b.json" == caught.value.key
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [0, 1, 5 << 20])
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
def test_a_key_outside_the_grammar_is_refused_by_every_method(store: Store, key: str) -> None:
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


# ── races ────────────────────────────────────────────────────────────────────────────────────────


def _race(act: Callable[[int], object]) -> list[str]:
    """Return what WRITERS threads got, all let go at once: `True`, `False`, or the error's name."""
    gate = threading.Barrier(WRITERS)
    got: list[str] = []

    def write(number: int) -> None:
        gate.wait()
        try:
            got.append(str(act(number)))
        except FarmError as error:
            got.append(type(error).__name__)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sorted(got)


def test_of_threads_with_different_bytes_one_wins(store: Store) -> None:
    """One True, the others Conflict, and the winner's bytes stay."""
    for number in range(ROUNDS):
        key = f"race/{number}.bin"
        winners: list[bytes] = []

        def put(writer: int, key: str = key, winners: list[bytes] = winners) -> bool:
            data = b"%d" % writer * 1000
            created = store.put_new(key, data)
            winners.append(data)
            return created

        assert ["Conflict"] * (WRITERS - 1) + ["True"] == _race(put)
        assert [store.get(key)] == winners


def test_of_threads_with_the_same_bytes_one_creates(store: Store) -> None:
    for number in range(ROUNDS):
        put = partial(store.put_new, f"race/{number}.bin", b"same" * 1000)

        got = _race(lambda _, put=put: put())

        assert ["False"] * (WRITERS - 1) + ["True"] == got


def test_of_swapping_threads_one_wins_each_round(store: Store) -> None:
    etag: str | None = None
    for number in range(ROUNDS):
        data = [b"%d %d" % (number, writer) for writer in range(WRITERS)]
        swap = partial(store.swap, "tags/x.json", expect=etag)

        got = _race(lambda n, data=data, swap=swap: swap(data[n]))

        assert ["Conflict"] * (WRITERS - 1) == [each for each in got if each == "Conflict"]
        [etag] = [each for each in got if each != "Conflict"]
        assert store.get("tags/x.json") in data


def test_of_processes_with_different_bytes_one_wins(backend: str, tmp_path: Path) -> None:
    """The same law across processes: they share nothing but the store."""
    store, words = BACKENDS[backend](tmp_path)
    code = f"""if True:
        import sys
        from pathlib import Path
        from farm.store import *
        store = {words}
        sys.stdin.readline()
        for number in range({ROUNDS}):
            try:
                print(store.put_new(f"race/{{number}}.bin", sys.argv[1].encode() * 1000))
            except Conflict:
                print("Conflict")
    """
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(WRITERS)
    ]
    for each in writers:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
        each.stdin.flush()

    rows = [each.communicate(timeout=60)[0].decode().split() for each in writers]

    for number, got in enumerate(zip(*rows, strict=True)):
        assert ["Conflict"] * (WRITERS - 1) + ["True"] == sorted(got)
        assert b"%d" % got.index("True") * 1000 == store.get(f"race/{number}.bin")
    assert [0] * WRITERS == [each.returncode for each in writers]


# ── listing ──────────────────────────────────────────────────────────────────────────────────────

# Around `-`, `.`, `/`, `0` byte order and folder order differ.
TRICKY = [
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


def _keys(store: Store, prefix: str = "", after: str = "") -> list[str]:
    return [each.key for each in store.list(prefix, after=after) if not each.key.startswith("meta")]


def test_a_listing_is_in_byte_order(store: Store) -> None:
    for key in reversed(TRICKY):
        store.put_new(key, key.encode())

    assert sorted(TRICKY) == _keys(store)


def test_prefix_and_after_cut_a_listing_anywhere(store: Store) -> None:
    """A prefix is any string, `after` is exclusive and need not exist."""
    for key in TRICKY:
        store.put_new(key, key.encode())
    cuts = ["", *TRICKY, *(key[:end] for key in TRICKY for end in range(1, len(key))), "zz", "a~"]

    for prefix in ["", "a", "a/", "a/b", "a/b/", "a/b/0.json", "a-", "none"]:
        for after in cuts:
            wanted = sorted(k for k in TRICKY if k.startswith(prefix) and k > after)
            assert wanted == _keys(store, prefix, after)


def test_an_entry_tells_size_and_time(store: Store) -> None:
    store.put_new("a/b.bin", b"12345")

    [entry] = store.list("a/")

    assert ("a/b.bin", 5) == (entry.key, entry.size)
    assert entry.modified > 1.7e9


def test_five_thousand_keys_come_in_order_and_page_by_page(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    keys = {f"inbox/v1/d{rng.randrange(20)}/{rng.getrandbits(64):016x}.x.json" for _ in range(5000)}
    for key in keys:
        store.put_new(key, b"{}")

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


# ── kills ────────────────────────────────────────────────────────────────────────────────────────


def test_a_killed_writer_leaves_no_half_object(backend: str, tmp_path: Path, seed: int) -> None:
    """20 times SIGKILL at any moment: what is listed is whole."""
    store, words = BACKENDS[backend](tmp_path)
    code = f"""if True:
        import hashlib, os
        from pathlib import Path
        from farm.store import *
        store = {words}
        print("ready", flush=True)
        while True:
            data = os.urandom(200_000)
            store.put_new(blob_key("trace", hashlib.sha256(data).hexdigest(), "bin"), data)
    """
    rng = random.Random(seed)

    for _ in range(20):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(rng.uniform(0.005, 0.05))
            writer.kill()

    found = list(store.list("blobs/"))
    assert 20 <= len(found)
    for entry in found:
        assert 200_000 == entry.size
        store.get(entry.key, sha256=entry.key.rpartition("/")[2].removesuffix(".bin"))


def test_every_error_names_key_store_and_exit_code(store: Store) -> None:
    store.put_new("a/b.json", b"one")

    with pytest.raises(StoreError) as caught:
        store.put_new("a/b.json", b"two")

    assert ("a/b.json", 1) == (caught.value.key, caught.value.exit_code)
    assert caught.value.store in str(caught.value)
    assert caught.value.hint


def test_a_store_of_another_scheme_is_refused(backend: str) -> None:
    for url in ("s3://bucket/prefix", "http://x/y", "file://host/x", "file://"):
        with pytest.raises(Refused):
            open_store(url)
