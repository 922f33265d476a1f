"""The store: whether it takes what is written, and keeps its promise to overwrite nothing.

A server has longer to answer than a folder: on SeaweedFS two writers of one key that meet wait a
second each, and 16 of them have taken six (measured, 4.48).
"""

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from farm.address import SCHEME
from farm.doctor.findings import About, Finding
from farm.doctor.folders import NOT_MADE, ground, owner_cure, space, writable
from farm.doctor.surroundings import Surroundings
from farm.errors import FarmError, Refused, Unreachable
from farm.store import Conflict, Denied, LocalStore, Store, Unsupported, check_key, place

WRITERS: Final = 16
SERVER_S: Final = 20.0
_STORE: Final = About("store")
_RACE: Final = "parallel writers"
_ANOTHER: Final = 'export FARM_STORE="$HOME/farm-store"  # a folder on another disk'
_ANOTHER_BUCKET: Final = (
    "export FARM_STORE=s3://BUCKET  # on a server that the operator guide lists"
)


def patience_s(url: str, usual_s: float) -> float:
    """Return how long the next finding about a store may take."""
    return SERVER_S if url.startswith(SCHEME) else usual_s


def look(url: str, around: Surroundings) -> Iterator[Finding]:
    """Yield what is found about a store.

    It is probed as every writer does, and 16 writers race for one fresh key below `meta/`, which a
    local store is rid of at once and any other keeps. Nothing else is written; a folder that no
    farm has laid out yet is left alone.
    """
    try:
        store = around.open_store(url)
    except FarmError as error:
        yield _told("address", error)
        return
    folder = store.root if isinstance(store, LocalStore) else None
    if folder is not None and not os.path.lexists(folder / "meta"):
        yield _not_made(folder, around)
    else:
        probed = _probed(store, folder, around, where=str(folder or place(url)))
        yield probed
        if probed.state == "ok":
            yield _raced(store, folder)
        else:
            yield _STORE.skipped(_RACE, "nothing can be written")
    if folder is not None:
        yield space(_STORE, folder, around)


def _not_made(folder: Path, around: Surroundings) -> Finding:
    at = ground(folder)
    unwritten, unlocked = writable(at, around)
    if unwritten:
        code = Unreachable.exit_code if at.is_dir() else Refused.exit_code
        return _STORE.fail("writing", unwritten, cure=owner_cure(at), code=code)
    if unlocked:
        return _STORE.fail("writing", unlocked, cure=_ANOTHER)
    return _STORE.ok("writing", f"{folder}: {NOT_MADE}")


def _probed(store: Store, folder: Path | None, around: Surroundings, *, where: str) -> Finding:
    try:
        store.probe()
    except FarmError as error:
        return _told("writing", error, folder)
    foreign = _foreign(folder, around) if folder is not None else None
    if foreign is not None:
        said = f"{foreign} belongs to somebody else"
        return _STORE.fail("writing", said, cure=owner_cure(foreign), code=Unreachable.exit_code)
    return _STORE.ok("writing", where)


def _foreign(folder: Path, around: Surroundings) -> Path | None:
    """Return a folder of the store that we may not write into, as one of `sudo farm run` is."""
    with os.scandir(folder) as found:
        inside = [Path(each.path) for each in found if each.is_dir()]
    return next((each for each in inside if not around.may_write(each)), None)


def _raced(store: Store, folder: Path | None) -> Finding:
    """Let 16 writers of different bytes start at once: exactly one may win, and its bytes stay."""
    key = check_key(f"meta/race-{secrets.token_hex(16)}.json")
    try:
        won = _race(store, key)
        kept = store.get(key) if won else b""
    except FarmError as error:
        return _told(_RACE, error, folder)
    finally:
        if folder is not None:
            (folder / key).unlink(missing_ok=True)
    if [kept] != won:
        said = f"{len(won)} of {WRITERS} writers of one key were told that they were first"
        cure = _ANOTHER if folder is not None else _ANOTHER_BUCKET
        return _STORE.fail(_RACE, said, cure=cure, code=Unsupported.exit_code)
    return _STORE.ok(_RACE, f"of {WRITERS} writers of one key exactly one won")


def _race(store: Store, key: str) -> list[bytes]:
    """Return what those writers wrote who were told that they were first; raise what one met."""
    start = threading.Barrier(WRITERS)
    won: list[bytes] = []
    met: list[FarmError] = []

    def write(mine: bytes) -> None:
        with suppress(threading.BrokenBarrierError):
            start.wait(1.0)
        try:
            if store.put_new(key, mine):
                won.append(mine)
        except Conflict:
            pass
        except FarmError as error:
            met.append(error)

    # Daemons: a file system that hangs must not keep the command from ending.
    threads = [
        threading.Thread(target=write, args=(b'{"writer": %d}\n' % each,), daemon=True)
        for each in range(WRITERS)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if met:
        raise met[0]
    return won


def _told(name: str, error: FarmError, folder: Path | None = None) -> Finding:
    said = "; ".join(filter(None, (error.what, " ".join(error.why.split()))))
    cure = error.hint or _ANOTHER
    if isinstance(error, Denied) and folder is not None and "Read-only" not in error.why:
        cure = owner_cure(folder)
    return _STORE.fail(name, said, cure=cure, code=error.exit_code)
