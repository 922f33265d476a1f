"""Bytes on their way: from a source in chunks, and to a file that appears whole or not at all."""

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from farm import errors
from farm.errors import Refused
from farm.store.contract import Conflict, Corrupt, StoreError
from farm.store.keys import promised_digest

CHUNK: Final = 1 << 20


def chunks(source: bytes | Path, *, size: int = CHUNK) -> Iterator[bytes]:
    """Yield the source in pieces of at most `size` bytes; raises Refused for an unreadable file."""
    if isinstance(source, bytes):
        for start in range(0, len(source), size):
            yield source[start : start + size]
        return
    try:
        with source.open("rb") as file:
            while chunk := file.read(size):
                yield chunk
    except OSError as error:
        raise Refused(f"cannot read {str(source)!r}", why=error.strerror or "") from error


def digest_of(pieces: Iterable[bytes]) -> str:
    """Return the SHA-256 of the pieces together."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def verify(found: str, wanted: str | None, *, key: str, store: str) -> None:
    """Raise Corrupt unless the digest is the wanted one; None wants none."""
    if wanted is not None and found != wanted:
        raise Corrupt(
            f"{key} is damaged: sha256 is {found}, not {wanted}",
            key=key,
            store=store,
            hint="measure it again, or bring the object back from a copy",
        )


def other_bytes(key: str, ours: str, *, store: str) -> StoreError:
    """Return what it means that the key holds other bytes than ours, whose SHA-256 is given."""
    if promised_digest(key.rpartition("/")[2]) == ours:
        return Corrupt(
            f"{key} does not hold the bytes that its name promises",
            key=key,
            store=store,
            hint="have the damaged object removed, then send it again",
        )
    return Conflict(
        f"{key} exists with other content",
        key=key,
        store=store,
        hint="objects are never overwritten; the new bytes were not stored",
    )


@contextmanager
def landing(to: Path) -> Iterator[BinaryIO]:
    """Yield a file beside `to` that takes its name at the end; an error inside leaves nothing.

    Raises errors.Unreachable if this machine's disk cannot take it; no OSError of another source
    may be raised inside.
    """
    temporary = to.with_name(f".{to.name[:80]}.{secrets.token_hex(8)}")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as out:
            yield out
        os.replace(temporary, to)
    except OSError as error:
        raise errors.Unreachable(f"cannot write {str(to)!r}", why=error.strerror or "") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
