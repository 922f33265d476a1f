"""What a check may ask about this machine, in one place, so that a test can ask another one."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import farm
from farm.embedded import Server as Embedded
from farm.embedded import find_server, running
from farm.store import Store, open_store

if TYPE_CHECKING:
    from farm.ledger import Node, Server

# What one look may take. A check that has not answered after PATIENCE_S is given up.
PATIENCE_S: Final = 3.0
LOOK_S: Final = 2.5


class Installed(NamedTuple):
    """A distribution: its name as PyPI spells it, where it lies, and what it requires."""

    name: str
    version: str
    folder: Path
    needs: tuple[str, ...] = ()


class Ran(NamedTuple):
    """How a program ended, and what it printed."""

    code: int
    said: str


class Witness(Protocol):
    """What the ledger tells of itself and of who uses it."""

    def server(self) -> "Server": ...
    def nodes(self) -> "list[Node]": ...
    def leader(self) -> str: ...
    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """A machine as the checks see it.

    cwd: None if the current folder is gone. root: the folder that holds the proc, sys and dev
    trees. here: the folder that holds the package `farm` that runs. open_files: the soft limit,
    None without one. free: bytes that are left for us. run: a program to its end, None if it does
    not start or needs longer than a look may take. lock: takes the lock of an open file.
    may_write: whether we may make files in a folder.
    """

    environ: Mapping[str, str]
    cwd: Path | None
    root: Path = Path("/")
    here: Path = Path(farm.__file__).parent.parent
    python: Path = Path(sys.executable)
    python_version: tuple[int, ...] = tuple(sys.version_info[:3])
    bits: int = 64 if sys.maxsize > 2**32 else 32
    encoding: str = "utf-8"
    cores: int = 1
    open_files: int | None = None
    patience_s: float = PATIENCE_S
    has_module: Callable[[str], bool]
    which: Callable[[str], str | None]
    distributions: Callable[[], Sequence[Installed]]
    run: Callable[[Sequence[str]], Ran | None]
    clock: Callable[[], float]
    free: Callable[[Path], int]
    connect: Callable[[str, int], socket.socket]
    lock: Callable[[int], None]
    may_write: Callable[[Path], bool]
    find_server: Callable[[], Path]
    running: Callable[[Path], Embedded | None]
    ledger: Callable[[str], Witness]
    open_store: Callable[[str], Store]

    @classmethod
    def real(cls, environ: Mapping[str, str] = os.environ) -> "Surroundings":
        """Return this machine and this process."""
        return cls(
            environ=environ,
            cwd=_cwd(),
            encoding=getattr(sys.stdout, "encoding", None) or "",
            cores=_cores(),
            open_files=_open_files(),
            has_module=_has_module,
            which=lambda name: shutil.which(name, path=environ.get("PATH")),
            distributions=_distributions,
            run=_run,
            clock=time.time,
            free=lambda folder: shutil.disk_usage(folder).free,
            connect=lambda host, port: socket.create_connection((host, port), LOOK_S),
            lock=lambda file: flock(file, LOCK_EX | LOCK_NB),
            may_write=lambda folder: os.access(folder, os.W_OK | os.X_OK),
            find_server=find_server,
            running=running,
            ledger=_ledger,
            open_store=lambda url: open_store(url, hasty=True),
        )


def plain(name: str) -> str:
    """Return the one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _cwd() -> Path | None:
    with suppress(FileNotFoundError):
        return Path.cwd()
    return None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _open_files() -> int | None:
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _distributions() -> list[Installed]:
    found = []
    for each in importlib.metadata.distributions():
        if "Name" in each.metadata:  # what a broken uninstall leaves has none
            name, version = plain(each.metadata["Name"]), each.version or ""
            folder = Path(str(each.locate_file("")))
            found.append(Installed(name, version, folder, tuple(each.requires or ())))
    return found


def _run(words: Sequence[str]) -> Ran | None:
    try:
        ended = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LOOK_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Ran(ended.returncode, ended.stdout.decode("utf-8", "replace").strip())


def _ledger(url: str) -> Witness:
    from farm.ledger import Ledger

    return Ledger(url)
