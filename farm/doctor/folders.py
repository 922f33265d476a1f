"""The folders of a farm on this machine: settings that name them, the state folder, free space."""

import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from farm import embedded
from farm.doctor.findings import About, Finding
from farm.doctor.surroundings import Surroundings
from farm.doctor.wire import address
from farm.errors import FarmError, Refused, Unreachable
from farm.report import words
from farm.settings import Settings, shown

LEAST_BYTES: Final = 200 << 20
ENOUGH_BYTES: Final = 2 << 30
NOT_MADE: Final = "not made yet; the first run makes it"
_STATE: Final = About("state")


def settings(found: Settings | FarmError) -> Iterator[Finding]:
    """Yield one finding: the settings that hold, with their origins, or why there are none."""
    about = About("settings")
    if isinstance(found, FarmError):
        said = shown("; ".join(filter(None, (found.what, " ".join(found.why.split())))))
        yield about.fail("values", said, cure=_correction(found), code=found.exit_code)
        return
    named = address(found.broker.value).where if found.broker.value else ""
    each = {
        "store": (shown(found.store.value), found.store.origin),
        "state": (found.state.value, found.state.origin),
        "broker": (named or "embedded", found.broker.origin),
    }
    told = [f"{key} {value} ({origin})" for key, (value, origin) in each.items()]
    yield about.ok("values", ", ".join(told))


def state(folder: Path, around: Surroundings) -> Iterator[Finding]:
    """Yield what is found about the state folder: writing, locks, space, and what lies there.

    An unnamed file is written and locked where the folder is, or would be; nothing of it stays.
    """
    yield _usable(folder, around)
    yield space(_STATE, folder, around)
    yield _record("farm up", folder / "up.json", again="`farm up`")
    yield _record("embedded broker", folder / "broker" / "broker.json", again="run")
    named = around.environ.get("FARM_SPOOL", "")
    yield from _spools(Path(named) if named else folder / "spool")


def _spools(folder: Path) -> Iterator[Finding]:
    """Yield what waits here for each store, of which only an agent that serves for it knows."""
    try:
        found = sorted(each for each in folder.iterdir() if each.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for each in found:
        waiting = sum(name.name[:1].isdigit() for name in each.iterdir())
        aside = sum(1 for _ in (each / "aside").iterdir()) if (each / "aside").is_dir() else 0
        said = each / "store.txt"
        store = said.read_text("utf-8", "replace").strip() if said.is_file() else "a store"
        if waiting:
            told = f"{words.count(waiting, 'profile')} in {each}, not in {store} yet"
            cure = f"{shlex.join(['farm', 'up', '--store', store])}  # an agent sends them"
            yield _STATE.warn("spool", told, cure=cure)
        if aside:
            told = f"{words.count(aside, 'profile')} that {store} could not take"
            cure = shlex.join(
                ["cat", *(str(found) for found in (each / "aside").glob("*/why.txt"))]
            )
            yield _STATE.fail("spool", told, cure=cure)
        if not waiting and not aside:
            yield _STATE.ok("spool", f"nothing waits for {store}")


def ground(folder: Path) -> Path:
    """Return the folder, or the nearest above it that is there."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder


def writable(folder: Path, around: Surroundings) -> tuple[str, str]:
    """Return why nothing can be written into a folder, and why nothing can be locked there.

    Each is "" if it can. The file that is tried has no name and is gone at once.
    """
    if not folder.is_dir():
        return f"{folder} is not a folder", ""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"farm doctor")
            file.flush()
            try:
                around.lock(file.fileno())
            except OSError as error:
                return "", f"{folder} takes no locks: {error.strerror or error}"
    except OSError as error:
        return f"{folder} cannot be written: {error.strerror or error}", ""
    return "", ""


def owner_cure(folder: Path) -> str:
    """Return the command that makes a folder ours, or the one that makes a folder of a file."""
    if not folder.is_dir():
        return shlex.join(["mv", str(folder), f"{folder}.old"])
    return f'sudo chown -R "$(id -un)" {shlex.quote(str(folder))}'


def space(about: About, folder: Path, around: Surroundings) -> Finding:
    """Return whether the disk of a folder has room for what a night leaves there."""
    at = ground(folder)
    try:
        free = around.free(at)
    except OSError as error:
        return about.skipped("space", f"{at} does not say: {error.strerror or error}")
    said = f"{words.size(free)} free at {at}"
    cure = f"du -xh -d1 {shlex.quote(str(at))} | sort -h | tail"
    if free < LEAST_BYTES:
        return about.fail("space", said, cure=cure, code=Unreachable.exit_code)
    if free < ENOUGH_BYTES:
        return about.warn("space", said, cure=cure)
    return about.ok("space", said)


def _correction(error: FarmError) -> str:
    """Return the command that opens the file, or drops the variable, that a setting came from."""
    origin = error.what.partition(": ")[0].removeprefix("--config ")
    variable = re.search(r"\bFARM_[A-Z]+\b", f"{origin} {error.why}")
    more = f"  # {error.hint}" if error.hint else ""
    if os.path.isfile(origin):
        return f"${{EDITOR:-vi}} {shlex.quote(origin)}{more}"
    if variable:
        return f"unset {variable[0]}{more}"
    return error.hint or "correct it there"


def _usable(folder: Path, around: Surroundings) -> Finding:
    at = ground(folder)
    unwritten, unlocked = writable(at, around)
    private = folder / "broker"
    if not unwritten and private.is_dir() and not around.may_write(private):
        unwritten, at = f"{private} belongs to somebody else", folder
    if unwritten:
        code = Unreachable.exit_code if at.is_dir() else Refused.exit_code
        return _STATE.fail("folder", unwritten, cure=owner_cure(at), code=code)
    if unlocked:
        cure = 'export FARM_STATE="$HOME/.farm"  # a folder on a local disk'
        return _STATE.fail("folder", unlocked, cure=cure)
    return _STATE.ok("folder", str(folder) if at == folder else f"{folder}: {NOT_MADE}")


def _record(name: str, path: Path, *, again: str) -> Finding:
    """Return whether what is written down about a process still holds.

    A number that now belongs to another process has another start time, and is nobody of ours.
    """
    try:
        record = json.loads(path.read_bytes())
        pid, began = int(record["pid"]), str(record["started"])
    except (FileNotFoundError, NotADirectoryError):
        return _STATE.ok(name, "none runs")
    except PermissionError:
        return _STATE.skipped(name, f"{path} is somebody else's")
    except (OSError, ValueError, KeyError, TypeError):
        return _STATE.ok(name, f"{path} is of no use; the next {again} replaces it")
    if pid > 0 and embedded.started(pid) == began:
        return _STATE.ok(name, f"runs as process {pid}")
    return _STATE.ok(name, f"process {pid} is gone; the next {again} replaces its record")
