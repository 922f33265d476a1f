"""Parts of the catalogue on this machine: fetched once, verified each time, oldest dropped first.

Any number of processes share the folder. A file appears whole or not at all, and its name is the
digest of its bytes: it is right or it is dropped, and what another process dropped is fetched anew.
"""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from farm.errors import Unreachable
from farm.schema import CatalogPart
from farm.store import Store

LIMIT_BYTES: Final = 20_000_000_000
# A part; or a hidden name that is being written, or a folder of `engine`.
_OURS: Final = re.compile(r"[0-9a-f]{64}\.parquet|\.farm-.+|\.[0-9a-f]{64}\.parquet\..+")
_IN_USE_S: Final = 3600  # what was asked for since may be read right now, by another process
_LEFT_S: Final = 86_400  # what is hidden and as old as that, a killed process left


def default_folder(environ: Mapping[str, str]) -> Path:
    """Return where this user keeps parts: below XDG_CACHE_HOME, or ~/.cache."""
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    base = named if named.is_absolute() else Path("~/.cache").expanduser()
    return base / "farm" / "parts"


def fetch(store: Store, part: CatalogPart, *, folder: Path, limit_bytes: int = LIMIT_BYTES) -> Path:
    """Return the part as a file whose bytes have its digest.

    A copy that is damaged or missing is fetched, and the oldest files go where the folder passes
    its limit. Raises Corrupt or NotFound if the store has not the bytes either, and what the store
    raises when it is away.
    """
    path = _path(folder, part.sha256)
    if not intact(path):
        store.get(part.key, to=path, sha256=part.sha256)
        trim(folder, limit_bytes=limit_bytes)
    _used(path)
    return path


def keep(data: bytes, *, folder: Path) -> Path:
    """Return a file with these bytes, named as any other; Unreachable if it cannot be written."""
    path = _path(folder, hashlib.sha256(data).hexdigest())
    temporary = folder / f".farm-{secrets.token_hex(8)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        raise Unreachable(f"cannot write {str(path)!r}", why=error.strerror or "") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def intact(path: Path) -> bool:
    """Return whether the file is there and holds the bytes that its name promises."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == path.stem
    except OSError:
        return False


def trim(folder: Path, *, limit_bytes: int) -> None:
    """Drop parts, longest unused first, until the rest fits; never one used in the last hour.

    What processes left that were killed goes after a day; what is not ours stays.
    """
    found: list[tuple[float, int, Path]] = []
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name):
            with suppress(FileNotFoundError):  # another process drops them too
                stat = path.stat()
                found.append((stat.st_mtime, stat.st_size, path))
    newest = max((at for at, _, _ in found), default=0.0)
    held = sum(size for _, size, _ in found)
    for at, size, path in sorted(found):
        if path.name.startswith("."):
            if newest - at > _LEFT_S:
                _drop(path)
        elif held > limit_bytes and newest - at > _IN_USE_S:
            _drop(path)
            held -= size


def _path(folder: Path, sha256: str) -> Path:
    return folder / f"{sha256}.parquet"


def _used(path: Path) -> None:
    with suppress(OSError):
        os.utime(path)


def _drop(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
