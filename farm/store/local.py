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
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Final

from farm.store.content import CHUNK, chunks, digest_of, landing, other_bytes, verify
from farm.store.contract import (
    LAYOUT,
    LAYOUT_KEY,
    Conflict,
    Corrupt,
    Denied,
    Entry,
    NotFound,
    StoreError,
    Unreachable,
    Unsupported,
    other_layout,
)
from farm.store.keys import check_key, is_folder, is_object, promised_digest

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
                with _opened(path) as whole:
                    data = whole.read()
                if sha256 is not None:
                    found = hashlib.sha256(data).hexdigest()
                    verify(found, sha256, key=key, store=str(self.root))
                return data
            file = _opened(path)
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
            self.put_new(LAYOUT_KEY, LAYOUT)
        except Conflict as error:
            raise other_layout(error, self.get(error.key)) from error
        with self._told(LAYOUT_KEY), self._written(self.root, b"") as temporary:
            twin = temporary.with_name(temporary.name + "-link")
            self._linked(temporary, twin, LAYOUT_KEY)
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
                for chunk in chunks(source):
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
        """Return False, as `put_new` must, if the object equals the source; raise if not."""
        ours = digest_of(chunks(source))
        if _digest(path) != ours:
            raise other_bytes(key, ours, store=str(self.root))
        self._sync_folder(path.parent)  # its writer may not have come to that yet
        return False

    def _copy_out(self, file: BinaryIO, to: Path, *, sha256: str | None, key: str) -> None:
        digest = hashlib.sha256()
        with landing(to) as out:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                out.write(chunk)
            verify(digest.hexdigest(), sha256, key=key, store=str(self.root))

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
                # A link that leads nowhere, a pipe, a socket: none of ours, and none to wait for.
                if path.is_file():
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


def _opened(path: Path) -> BufferedReader:
    """Open an object; a pipe, which would be waited for, is none."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EISDIR, "not a file", str(path))
    return os.fdopen(handle, "rb")


def _digest(path: Path) -> str:
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    if code == errno.EISDIR:
        return Corrupt(f"{key} is no file", key=key, store=store, hint="move it away")
    hint = "free some space there, or name another store" if code in _FULL else ""
    return Unreachable(
        f"the store cannot take or give {key!r}",
        key=key,
        store=store,
        why=f"{error.strerror}: {store}",
        hint=hint,
    )
