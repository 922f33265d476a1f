"""What a store promises, and how it says that it cannot.

A store keeps bytes under keys. `put_new` never overwrites, so two writers of one key cannot both
win; `swap` is for the few keys that are hints and may change.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from farm import errors
from farm.errors import Bad, FarmError, NoResult, Refused

LAYOUT_KEY: Final = "meta/layout.json"
LAYOUT: Final = b'{"layout": 1}\n'


class Entry(NamedTuple):
    """One object in a listing. `etag` is what `swap` expects; `modified` is in Unix seconds."""

    key: str
    size: int
    etag: str
    modified: float


class Store(Protocol):
    """Where everything that must last is kept. Every method raises a StoreError by its cause."""

    def put_new(
        self, key: str, source: bytes | Path, *, media_type: str = "application/json"
    ) -> bool:
        """Keep the bytes and return True; False if the same were there, Conflict if others were."""

    def get(self, key: str, *, to: Path | None = None, sha256: str | None = None) -> bytes:
        """Return the bytes; with `to` write them there as a whole file instead and return b"".

        sha256: the digest they must have; Corrupt is raised before anything is returned or named.
        """

    def swap(self, key: str, data: bytes, *, expect: str | None) -> str:
        """Replace what has the etag `expect` (None: nothing is there) and return the new etag.

        Raises Conflict if something else is there, unless it is the same bytes.
        """

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Entry]:
        """Yield what starts with the prefix and comes after `after`, in ascending byte order."""

    def probe(self) -> None:
        """Return if this store keeps its promises; each process asks before its first write."""


class StoreError(FarmError):
    """What went wrong with which key of which store."""

    def __init__(self, what: str, *, key: str, store: str, why: str = "", hint: str = "") -> None:
        super().__init__(what, why=why or f"store {store}", hint=hint)
        self.key = key
        self.store = store


class NotFound(StoreError, NoResult):
    """No object has this key."""


class Conflict(StoreError, Bad):
    """The key holds other bytes, or another writer was first."""


class Denied(StoreError, errors.Unreachable):
    """The store is there and says no: rights, or a read-only file system."""


class Unreachable(StoreError, errors.Unreachable):
    """The store did not answer, or has no space; worth retrying."""


class Unsupported(StoreError, Refused):
    """This store cannot keep the promises of `put_new`, or was laid out by a newer farm."""


class Corrupt(StoreError, Bad):
    """The bytes are not those that the digest promises."""


def other_layout(error: Conflict, found: bytes) -> Unsupported:
    """Return what it means that a store holds another layout than ours."""
    return Unsupported(
        "the store was laid out by another version of the farm",
        key=error.key,
        store=error.store,
        why=found[:80].decode("utf-8", "replace").strip(),
        hint="upgrade this farm, or name another store",
    )


def check_there(store: Store) -> None:
    """Return if the store still is the one that `probe` marked, else raise Unreachable.

    A folder that is not mounted just now would take everything, and hide it once it is.
    """
    try:
        store.get(LAYOUT_KEY)
    except NotFound as error:
        raise Unreachable(
            "the store is not there",
            key=error.key,
            store=error.store,
            why=f"{error.store} holds no {LAYOUT_KEY}",
            hint="mount it, restore what was removed, or name another store",
        ) from error
