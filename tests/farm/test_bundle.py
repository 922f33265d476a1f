"""The laws of bundles: the digest names the bytes, and a cached folder is whole or not there."""

import hashlib
import io
import os
import tarfile
import threading
from pathlib import Path

import pytest

from farm import archive, bundle
from farm.errors import Bad, Refused
from farm.store import Corrupt, LocalStore, NotFound


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store", fsync=False)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _files(folder: Path, **texts: str) -> archive.Files:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return [(f"pack/{name}.py", folder / f"{name}.py") for name in texts]


def _texts(folder: Path) -> dict[str, str]:
    return {name: path.read_text() for name, path in archive.contents(folder)}


def _put(store: LocalStore, tmp_path: Path) -> str:
    digest, data = bundle.pack(_files(tmp_path / "code", a="x = 1", b="y = 2"))
    bundle.put(store, data)
    return digest


def test_a_bundle_lies_under_its_digest(store: LocalStore, tmp_path: Path) -> None:
    """The key holds the SHA-256 of the tar, and putting it again is no conflict."""
    digest, data = bundle.pack(_files(tmp_path / "code", a="x = 1"))

    key = bundle.put(store, data)

    assert f"bundles/v1/{digest[:2]}/{digest}.tar" == key == bundle.put(store, data)
    assert hashlib.sha256(data).hexdigest() == digest
    assert data == store.get(key)


def test_a_fetched_bundle_is_whole_and_used_again(
    store: LocalStore, tmp_path: Path, cache: Path
) -> None:
    """The folder holds the files, read-only; a second fetch asks nobody."""
    digest = _put(store, tmp_path)

    folder = bundle.fetch(store, digest, cache)
    again = bundle.fetch(LocalStore(tmp_path / "gone"), digest, cache)

    assert cache / digest == folder == again
    assert {"pack/a.py": "x = 1", "pack/b.py": "y = 2"} == _texts(folder)
    assert 0o444 == (folder / "pack" / "a.py").stat().st_mode & 0o777
    assert [digest] == os.listdir(cache)


@pytest.mark.parametrize("damage", ["changed", "added", "removed"])
def test_a_damaged_folder_is_replaced(
    store: LocalStore, tmp_path: Path, cache: Path, damage: str
) -> None:
    """Whatever a job did to the cached code is undone before the next one; bytecode may stay."""
    digest = _put(store, tmp_path)
    folder = bundle.fetch(store, digest, cache)
    file = folder / "pack" / "a.py"
    file.chmod(0o600)
    if damage == "changed":
        file.write_text("x = 3")
    elif damage == "added":
        (folder / "extra.py").write_text("")
    else:
        file.unlink()

    bundle.fetch(store, digest, cache)

    assert {"pack/a.py": "x = 1", "pack/b.py": "y = 2"} == _texts(folder)
    assert [digest] == os.listdir(cache)


def test_bytecode_beside_the_code_is_no_damage(
    store: LocalStore, tmp_path: Path, cache: Path
) -> None:
    """Python's own cache leaves a bundle as it is."""
    digest = _put(store, tmp_path)
    folder = bundle.fetch(store, digest, cache)
    (folder / "pack" / "__pycache__").mkdir()
    (folder / "pack" / "__pycache__" / "a.pyc").write_bytes(b"x")

    bundle.fetch(LocalStore(tmp_path / "gone"), digest, cache)

    assert (folder / "pack" / "__pycache__" / "a.pyc").exists()


def test_many_may_fetch_at_once(store: LocalStore, tmp_path: Path, cache: Path) -> None:
    """Every one of several fetchers gets the whole folder, and no other folder remains."""
    digest = _put(store, tmp_path)
    start = threading.Barrier(8)
    found: list[dict[str, str]] = []

    def fetch() -> None:
        start.wait()
        found.append(_texts(bundle.fetch(store, digest, cache)))

    threads = [threading.Thread(target=fetch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [{"pack/a.py": "x = 1", "pack/b.py": "y = 2"}] * 8 == found
    assert [digest] == os.listdir(cache)


def test_a_bundle_that_is_not_there_or_not_right_is_not_unpacked(
    store: LocalStore, tmp_path: Path, cache: Path
) -> None:
    """A missing bundle, other bytes under its key, or a digest that is none leave no folder."""
    digest = _put(store, tmp_path)
    (path,) = (tmp_path / "store").rglob("*.tar")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b"x = 1", b"x = 9"))

    with pytest.raises(Corrupt):
        bundle.fetch(store, digest, cache)
    with pytest.raises(NotFound):
        bundle.fetch(store, "0" * 64, cache)
    with pytest.raises(Bad, match="is not the digest of a bundle"):
        bundle.fetch(store, "../" * 20, cache)

    assert not cache.exists() or [] == os.listdir(cache)


def test_a_hostile_bundle_leaves_nothing(store: LocalStore, cache: Path) -> None:
    """A tar with a name that leaves its folder is refused, and nothing of it stays."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../escaped"), io.BytesIO())
    digest = hashlib.sha256(out.getvalue()).hexdigest()
    bundle.put(store, out.getvalue())

    with pytest.raises(Bad, match="would lie outside"):
        bundle.fetch(store, digest, cache)

    assert [] == os.listdir(cache)


def test_arrays_travel_as_the_file_they_came_in(
    store: LocalStore, tmp_path: Path, cache: Path
) -> None:
    """An NPZ is kept and fetched by the digest of its bytes; a damaged copy is fetched again."""
    path = tmp_path / "inputs.npz"
    path.write_bytes(b"PK arrays")
    digest = hashlib.sha256(b"PK arrays").hexdigest()

    bundle.publish(store, bundles={}, npz={digest: path})
    fetched = bundle.fetch_npz(store, digest, cache)
    fetched.write_bytes(b"PK damage")
    bundle.fetch_npz(store, digest, cache)

    assert cache / f"{digest}.npz" == fetched
    assert b"PK arrays" == fetched.read_bytes()
    assert [f"{digest}.npz"] == os.listdir(cache)


def test_a_plan_is_published_as_it_was_made(store: LocalStore, tmp_path: Path, cache: Path) -> None:
    """All code of a plan lands in the store; code that changed since the plan is refused."""
    files = _files(tmp_path / "code", a="x = 1")
    digest = archive.digest(files)

    bundle.publish(store, bundles={digest: files}, npz={})
    assert {"pack/a.py": "x = 1"} == _texts(bundle.fetch(store, digest, cache))

    _files(tmp_path / "code", a="x = 2")
    with pytest.raises(Refused, match=r"pack/a.py changed while the sweep was read"):
        bundle.publish(store, bundles={digest: files}, npz={})
