"""A tar file whose bytes depend on names and contents alone, and its careful unpacking.

The SHA-256 of those bytes is the digest of a model's code: the same files give the same digest on
every machine, so the digest can name the bundle and a cached folder can be checked against it.
"""

import hashlib
import io
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from farm.errors import Bad

Files = Sequence[tuple[str, Path]]
_SKIPPED: Final = "__pycache__"


def pack(files: Files) -> tuple[str, bytes]:
    """Return the digest and the tar of the files, sorted by name, owner and times zeroed.

    files: (name in the tar, file); names are relative with forward slashes.
    """
    out = io.BytesIO()
    _write(files, out)
    data = out.getvalue()
    return hashlib.sha256(data).hexdigest(), data


def digest(files: Files) -> str:
    """Return the digest that `pack` would return, holding no file in memory."""
    sink = _Hashing()
    _write(files, cast("IO[bytes]", sink))  # tarfile in stream mode calls nothing but write
    return sink.hash.hexdigest()


def unpack(data: bytes, folder: Path) -> None:
    """Write the files of a tar below the folder, read-only.

    Raises Bad before anything is written if a member is not a plain file with a relative name
    that stays inside, or if a name is there twice.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            members = tar.getmembers()
            _check(members)
            for member in members:
                source = tar.extractfile(member)
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(source.read() if source else b"")
                path.chmod(0o444)
    except (tarfile.TarError, NotADirectoryError, FileExistsError, IsADirectoryError) as error:
        raise Bad("the bundle is not a proper tar file", why=str(error)) from error


def contents(folder: Path) -> Files:
    """Return the files below an unpacked folder, without the bytecode Python left there."""
    return [
        (path.relative_to(folder).as_posix(), path)
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() and _SKIPPED not in path.relative_to(folder).parts
    ]


class _Hashing:
    """A file that remembers only the hash of what was written."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return len(data)


def _write(files: Files, out: IO[bytes]) -> None:
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name, path in sorted(files):
            member = tarfile.TarInfo(name)
            with path.open("rb") as file:
                member.size = path.stat().st_size
                member.mode = 0o644
                tar.addfile(member, file)


def _check(members: Iterable[tarfile.TarInfo]) -> None:
    seen = set()
    for member in members:
        name = member.name
        parts = PurePosixPath(name).parts
        inside = name == "/".join(parts) and ".." not in parts and not name.startswith("/")
        if not inside or "\0" in name or "\\" in name or len(name) > 1000:
            raise Bad(f"the bundle holds a file called {name[:100]!r}", why="it would lie outside")
        # A sparse member is a plain file of any size in a few bytes.
        if not member.isreg() or member.issparse():
            raise Bad(f"the bundle holds {name!r}", why="it is not a plain file")
        if name in seen:
            raise Bad(f"the bundle holds {name!r} twice")
        seen.add(name)
