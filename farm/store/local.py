"""A folder as a store, shared by any number of threads and processes.

An object appears whole or not at all: it is written beside its place, flushed, and linked to its
name, which fails if the name is taken. So a reader never sees half an object, and of several
writers one wins.
"""

import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import BinaryIO, Final

from farm import errors
from farm.errors import Refused
from farm.store.contract import (
    Conflict,
    Corrupt,
    Denied,
    Entry,
    NotFound,
    StoreError,
    Unreachable,
    Unsupported,
)
from farm.store.keys import check_key, is_folder, is_object, promised_digest

LAYOUT: Final = b'{"layout": 1}\n'
_LAYOUT_KEY: Final = "meta/layout.json"
_CHUNK: Final = 1 << 20
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_NO_FOLDER: Final = (errno.ENOTDIR, errno.EEXIST)
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


class LocalStore:
    """A folder as a store, shared by any number of threads and processes.

    fsync: False only in tests. link: what makes the hard link that decides who was first.
    """

    def __init__(
        self, root: Path, *, fsync: bool = True, link: Callable[[Path, Path], None] = os.link
    ) -> None:
        self.root = root.expanduser().absolute()
        self._fsync = fsync
        self._link = link

    def __repr__(self) -> str:
        return f"LocalStore({str(self.root)!r})"

    def put_new(
        self, key: str, source: bytes | Path, *, media_type: str = "application/json"
    ) -> bool:
        """As in Store. The media type is not kept: a file has none."""
        path = self._path(key)
        with self._told(key):
            if path.exists():
                return self._same(path, source, key)
            self._make_folder(path.parent)
            with self._written(path.parent, source) as temporary:
                created = self._linked(temporary, path, key)
            self._sync_folder(path.parent)
        return created or self._same(path, source, key)

    def get(self, key: str, *, to: Path | None = None, sha256: str | None = None) -> bytes:
        path = self._path(key)
        with self._told(key):
            if to is None:
                data = path.read_bytes()
                self._verify(hashlib.sha256(data).hexdigest() if sha256 else None, sha256, key)
                return data
            file = path.open("rb")
        with file:
            self._copy_out(file, to, sha256=sha256, key=key)
        return b""

    def swap(self, key: str, data: bytes, *, expect: str | None) -> str:
        path = self._path(key)
        wanted = hashlib.sha256(data).hexdigest()
        with self._told(key):
            self._make_folder(path.parent)
            with (self.root / ".lock").open("ab") as lock:
                flock(lock, LOCK_EX)
                found = _digest(path) if path.exists() else None
                if found == wanted:
                    return wanted
                if found != expect:
                    raise Conflict(
                        f"{key} was changed by another writer",
                        key=key,
                        store=str(self.root),
                        hint="read it again and repeat",
                    )
                with self._written(path.parent, data) as temporary:
                    os.replace(temporary, path)
                self._sync_folder(path.parent)
        return wanted

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Entry]:
        """As in Store, one folder in memory at a time.

        The etag of a key that names its digest is that digest; other files are read for it.
        """
        with self._told(prefix):
            yield from self._walk(self.root, "", prefix, after)

    def probe(self) -> None:
        """As in Store; makes the folder and marks it with its layout."""
        try:
            self.put_new(_LAYOUT_KEY, LAYOUT)
        except Conflict as error:
            raise Unsupported(
                "the store was laid out by another version of the farm",
                key=error.key,
                store=error.store,
                why=self.get(error.key)[:80].decode("utf-8", "replace").strip(),
                hint="upgrade this farm, or name another store",
            ) from error
        with self._told(_LAYOUT_KEY), self._written(self.root, b"") as temporary:
            twin = temporary.with_name(temporary.name + "-link")
            self._linked(temporary, twin, _LAYOUT_KEY)
            twin.unlink()

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    @contextmanager
    def _told(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _explained(error, key, str(self.root)) from error

    @contextmanager
    def _written(self, folder: Path, source: bytes | Path) -> Iterator[Path]:
        """Yield a temporary file in the folder that holds the source, durably; remove it after."""
        temporary = folder / f".tmp-{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with temporary.open("xb") as file:
                for chunk in _chunks(source):
                    file.write(chunk)
                file.flush()
                if self._fsync:
                    os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _linked(self, temporary: Path, path: Path, key: str) -> bool:
        try:
            self._link(temporary, path)
        except FileExistsError:
            return temporary.stat().st_nlink == 2
        except OSError as error:
            if temporary.stat().st_nlink == 2:  # NFS: done, and the answer was lost
                return True
            if error.errno in _NO_LINKS:
                raise Unsupported(
                    "the store's file system has no hard links",
                    key=key,
                    store=str(self.root),
                    hint="name a folder on another file system",
                ) from error
            raise
        return True

    def _same(self, path: Path, source: bytes | Path, key: str) -> bool:
        """Return False, as `put_new` must, if the object equals the source; else raise Conflict."""
        if _digest(path) != _digest_of(_chunks(source)):
            raise Conflict(
                f"{key} exists with other content",
                key=key,
                store=str(self.root),
                hint="objects are never overwritten; the new bytes were not stored",
            )
        self._sync_folder(path.parent)  # its writer may not have come to that yet
        return False

    def _copy_out(self, file: BinaryIO, to: Path, *, sha256: str | None, key: str) -> None:
        temporary = to.with_name(f".{to.name[:80]}.{secrets.token_hex(8)}")
        digest = hashlib.sha256()
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as out:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
            self._verify(digest.hexdigest(), sha256, key)
            os.replace(temporary, to)
        except OSError as error:
            raise errors.Unreachable(
                f"cannot write {str(to)!r}", why=error.strerror or ""
            ) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _verify(self, found: str | None, wanted: str | None, key: str) -> None:
        if wanted is not None and found != wanted:
            raise Corrupt(
                f"{key} is damaged: sha256 is {found}, not {wanted}",
                key=key,
                store=str(self.root),
                hint="measure it again, or bring the object back from a copy",
            )

    def _walk(self, folder: Path, base: str, prefix: str, after: str) -> Iterator[Entry]:
        try:
            with os.scandir(folder) as found:
                names = sorted(each.name + ("/" if each.is_dir() else "") for each in found)
        except FileNotFoundError:
            return
        for name in names:
            key = base + name
            if name.endswith("/"):
                if _may_hold(key, prefix, after) and is_folder(name[:-1]):
                    yield from self._walk(folder / name, key, prefix, after)
            elif key > after and key.startswith(prefix) and is_object(name):
                path = folder / name
                stat = path.stat()
                etag = promised_digest(name) or _digest(path)
                yield Entry(key, stat.st_size, etag, stat.st_mtime)

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir(exist_ok=True)
            self._sync_folder(folder.parent)

    def _sync_folder(self, folder: Path) -> None:
        if self._fsync:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _may_hold(folder: str, prefix: str, after: str) -> bool:
    """Return whether a key below `folder` (it ends in "/") can match the prefix and come after."""
    related = folder.startswith(prefix) or prefix.startswith(folder)
    return related and (folder > after or after.startswith(folder))


def _chunks(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    try:
        with source.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise Refused(f"cannot read {str(source)!r}", why=error.strerror or "") from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(chunks: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _explained(error: OSError, key: str, store: str) -> StoreError:
    code = error.errno
    if code == errno.ENOENT:
        return NotFound(f"{key} is not in the store", key=key, store=store)
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Denied(
            f"the store refuses {key!r}",
            key=key,
            store=store,
            why=f"{error.strerror}: {error.filename or store}",
            hint="check its owner, its mode and its mount, or name another store",
        )
    if code in _NO_FOLDER:
        return Unsupported(f"the store {store} is not a folder", key=key, store=store)
    hint = "free some space there, or name another store" if code in _FULL else ""
    return Unreachable(
        f"the store cannot take or give {key!r}",
        key=key,
        store=store,
        why=f"{error.strerror}: {store}",
        hint=hint,
    )
