"""User code and input arrays on their way to the workers, each under the digest of its bytes.

A bundle is the tar of a model's code (`archive.py`); arrays travel as the NPZ they came in. The
digest stands in the job, so what a worker unpacks is what the job was planned with.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from farm import archive
from farm.archive import Files, pack
from farm.errors import Bad, Refused
from farm.store import Store, bundle_key

__all__ = ["fetch", "fetch_npz", "pack", "publish", "put"]

_MEDIA: Final = {"tar": "application/x-tar", "npz": "application/zip"}


def put(store: Store, source: bytes | Path, *, ext: str = "tar") -> str:
    """Keep a tar, or with ext `npz` a file of arrays, under its digest; return the key."""
    key = bundle_key(_sha256(source), ext)
    store.put_new(key, source, media_type=_MEDIA[ext])
    return key


def publish(store: Store, *, bundles: Mapping[str, Files], npz: Mapping[str, Path | bytes]) -> None:
    """Keep everything that the jobs of a plan name by digest.

    Raises Refused if a file changed since the plan was made: its jobs would name other bytes.
    """
    for digest, files in bundles.items():
        found, data = pack(files)
        _check_unchanged(digest, found, ", ".join(name for name, _ in files))
        put(store, data)
    for digest, arrays in npz.items():
        what = arrays.name if isinstance(arrays, Path) else "the staged inputs"
        _check_unchanged(digest, _sha256(arrays), what)
        put(store, arrays, ext="npz")


def fetch(store: Store, digest: str, cache: Path) -> Path:
    """Return the folder in the cache that holds the unpacked bundle, verified.

    A folder that is there is used again if it still has the files of the digest, else replaced.
    Several processes may ask at once: a folder appears whole, by rename. Raises what the store
    raises, and Bad if the bundle holds anything but plain files inside it.
    """
    folder = cache / _checked(digest)
    if folder.is_dir():
        if _digest_of(folder) == digest:
            return folder
        _discard(folder, cache)
    data = store.get(bundle_key(digest), sha256=digest)
    cache.mkdir(parents=True, exist_ok=True)
    whole = Path(tempfile.mkdtemp(prefix=".tmp-", dir=cache))
    try:
        archive.unpack(data, whole)
        whole.chmod(0o755)
        _rename(whole, folder)
    finally:
        shutil.rmtree(whole, ignore_errors=True)
    return folder


def fetch_npz(store: Store, digest: str, cache: Path) -> Path:
    """Return the file in the cache that holds the arrays, verified; raises as the store does."""
    path = cache / f"{_checked(digest)}.npz"
    if not path.is_file() or _sha256(path) != digest:
        cache.mkdir(parents=True, exist_ok=True)
        store.get(bundle_key(digest, "npz"), to=path, sha256=digest)
    return path


def _checked(digest: str) -> str:
    """Return the digest if it is one: it comes from a job and names a path."""
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise Bad(f"{digest[:80]!r} is not the digest of a bundle")
    return digest


def _digest_of(folder: Path) -> str:
    try:
        return archive.digest(archive.contents(folder))
    except OSError:
        return ""  # somebody is deleting it


def _check_unchanged(wanted: str, found: str, what: str) -> None:
    if wanted != found:
        raise Refused(f"{what} changed while the sweep was read", hint="run the command again")


def _discard(folder: Path, cache: Path) -> None:
    """Move a damaged folder aside in one step, so that nobody finds half of it, then delete it."""
    aside = Path(tempfile.mkdtemp(prefix=".tmp-", dir=cache))
    try:
        _rename(folder, aside / "old")
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _rename(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except OSError:
        if source.exists() and not target.is_dir():
            raise
        # Another process was first; what it put there has the same digest.


def _sha256(source: bytes | Path) -> str:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    with source.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
