"""Finished profiles on this machine's disk, from the moment they exist until the store has them.

A profile costs device minutes, so it is durable here before the store is tried, and it stays until
the store has answered. A parcel is a folder that appears whole: the profile, its artefacts, its
card, and a page that says what is to be sent in which order, and which entry waits for it.
"""

import hashlib
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from farm import identity
from farm.errors import Bad, Unreachable

log = logging.getLogger(__name__)

_PAGE: Final = "parcel.json"
_ASIDE: Final = "aside"
_FOR: Final = "store.txt"
_TEMPORARY: Final = ".tmp-"
_NAME: Final = re.compile(r"[0-9]{20}-[0-9a-f]{1,8}-[0-9a-f]{8}")


class Goods(Struct, frozen=True, kw_only=True):
    """One object to send. key: where to; "" for the profile, whose key has the day of sending."""

    key: str
    file: str
    sha256: str
    bytes: int
    media_type: str = "application/json"


class Parcel(Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.parcel/v1"):
    """What is to be sent, the profile last, and how its entry ends then.

    entry: its key in the ledger, "" if none waits for this profile. run: whose name the profile
    bears. effort: a hash of the effort it was measured with. sent_as: the key of the profile on the
    day when it was tried last; it may be there although no answer came.
    """

    entry: str
    run: str
    fence: str
    effort: str
    end: Literal["DONE", "FAILED"]
    cause: str
    job_id: str
    goods: list[Goods]
    sent_as: str


class Waiting(NamedTuple):
    """A parcel in the spool; since: unix time at which it was written. stamp: of its page."""

    name: str
    parcel: Parcel
    since: float
    stamp: int

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.parcel.goods)


class Spool:
    """The parcels for one store; slot workers write them, one uploader sends them.

    root: FARM_SPOOL, or a folder in the node's state. place: of the store, as `farm.store.place`
    says it: what was measured for one store never goes to another.
    """

    def __init__(
        self, root: Path, *, place: str, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self.folder = root / identity.short_hash(place)[:16]
        self._place = place
        self._clock_ns = clock_ns
        self._lock: IO[bytes] | None = None

    def write(self, parcel: Parcel, contents: Sequence[bytes]) -> str:
        """Keep a parcel durably and return its name; names sort by age.

        contents: of its goods, in order. Raises Unreachable if this disk cannot take it.
        """
        name = f"{self._clock_ns():020d}-{parcel.job_id[:8]}-{secrets.token_hex(4)}"
        building = self.folder / f"{_TEMPORARY}{name}"
        try:
            building.mkdir(parents=True)
            self._say_for_whom()
            for each, data in zip(parcel.goods, contents, strict=True):
                _write(building / each.file, data)
            _write(building / _PAGE, _sealed(parcel))
            _sync(building)
            building.rename(self.folder / name)
            _sync(self.folder)
        except OSError as error:
            shutil.rmtree(building, ignore_errors=True)
            raise self._unusable(error) from error
        return name

    def names(self) -> list[str]:
        """Return the names of what waits, the oldest first."""
        try:
            found = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(each for each in found if _NAME.fullmatch(each))

    def read(self, name: str) -> Waiting:
        """Return a parcel; raises Bad if its page cannot be read, or is not as it was written."""
        try:
            stamp = self.stamp(name)  # before its bytes, so that a newer page is read again
            parcel = _opened((self.folder / name / _PAGE).read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Bad(f"the page of parcel {name} cannot be read", why=str(error)) from error
        return Waiting(name, parcel, int(name.partition("-")[0]) / 1e9, stamp)

    def stamp(self, name: str) -> int:
        """Return what changes with the page of a parcel; raises OSError if it is gone."""
        return (self.folder / name / _PAGE).stat().st_mtime_ns

    def of_job(self, job_id: str) -> list[Waiting]:
        """Return what waits of a job, the oldest first; raises Unreachable as `write` does."""
        found = []
        try:
            names = self.names()
        except OSError as error:
            raise self._unusable(error) from error
        for name in names:
            if name.split("-")[1:2] == [job_id[:8]]:
                with suppress(Bad):  # its uploader says so
                    found.append(self.read(name))
        return [each for each in found if each.parcel.job_id == job_id]

    def rewrite(self, name: str, parcel: Parcel) -> None:
        """Replace the page of a parcel; the goods stay."""
        page = self.folder / name / _PAGE
        beside = page.with_name(f"{_TEMPORARY}{secrets.token_hex(4)}")
        try:
            _write(beside, _sealed(parcel))
            beside.replace(page)
        finally:
            beside.unlink(missing_ok=True)
        _sync(page.parent)

    def path(self, name: str, goods: Goods) -> Path:
        """Return the file of one object; raises Bad if it is not what was written there."""
        path = self.folder / name / goods.file
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise Bad(
                f"{goods.file} of parcel {name} cannot be read", why=error.strerror or ""
            ) from error
        if found != goods.sha256:
            raise Bad(f"{goods.file} of parcel {name} was damaged on this disk")
        return path

    def remove(self, name: str) -> None:
        """Forget a parcel that has arrived, in one step for whoever looks on."""
        gone = self.folder / f"{_TEMPORARY}gone-{name}"
        with suppress(FileNotFoundError):
            (self.folder / name).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def set_aside(self, name: str, why: str) -> Path:
        """Move a parcel out of the way of the others; it stays for a person to look at.

        Raises OSError if it cannot be moved.
        """
        place = self.folder / _ASIDE / name
        place.parent.mkdir(exist_ok=True)
        if place.exists():
            place = place.with_name(f"{name}-{secrets.token_hex(4)}")
        with suppress(OSError):
            (self.folder / name / "why.txt").write_text(why + "\n", "utf-8")
        (self.folder / name).rename(place)
        return place

    def aside(self) -> int:
        """Return how many parcels were set aside."""
        try:
            return len(os.listdir(self.folder / _ASIDE))
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def free_bytes(self) -> int:
        """Return the space that is left for more."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self.folder).free

    def own(self) -> bool:
        """Take the sending side, which one process has at a time; True if it is ours."""
        if self._lock is not None:
            return True
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = (self.folder / ".lock").open("ab")
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        return True

    def disown(self) -> None:
        """Leave the sending side to the next."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def sweep(self, *, age_s: float) -> None:
        """Remove what writers that died left half written, once it is that old."""
        limit = self._clock_ns() / 1e9 - age_s
        for each in self.folder.glob(f"{_TEMPORARY}*"):
            with suppress(OSError):
                if each.stat().st_mtime < limit:
                    shutil.rmtree(each, ignore_errors=True)

    def _say_for_whom(self) -> None:
        """Leave the store's place in the folder, whose name is only a hash of it."""
        said = self.folder / _FOR
        if not said.exists():
            said.write_text(self._place + "\n", "utf-8")

    def _unusable(self, error: OSError) -> Unreachable:
        return Unreachable(
            "the spool takes no profile",
            why=f"{error.strerror}: {self.folder}",
            hint="free some space there, or name another folder: FARM_SPOOL",
        )


def goods(key: str, data: bytes, *, file: str, media_type: str = "application/json") -> Goods:
    """Return the line of a parcel's page for these bytes."""
    return Goods(
        key=key,
        file=file,
        sha256=identity.content_id(data),
        bytes=len(data),
        media_type=media_type,
    )


def _sealed(parcel: Parcel) -> bytes:
    """Return a page: the document on one line, the digest of that line on the next."""
    line = msgspec.json.encode(parcel)
    return line + b"\n" + identity.content_id(line).encode() + b"\n"


def _opened(data: bytes) -> Parcel:
    line, _, seal = data.partition(b"\n")
    if seal.strip() != identity.content_id(line).encode():
        raise Bad("it was changed or damaged since it was written")
    parcel = msgspec.json.decode(line, type=Parcel)
    if not parcel.goods or parcel.goods[-1].key:
        raise Bad("it names no profile")
    return parcel


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
