"""Locks on devices and cores: files that processes hold with `flock`, and hand to their child.

A lock belongs to the open file, not to the process: a child that inherits the descriptor keeps the
device taken when its parent is killed, and the kernel frees it when the last of them ends. Nothing
here is ever unlinked, and what a file contains is information only.
"""

import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from farm.errors import NoResult

Scope = Literal["host", "user"]

SHARED: Final = Path("/run/lock/farm")
WAIT_S: Final = 600.0
_ASK_AGAIN_S: Final = 0.1
_STICKY: Final = 0o1777


class Taken(NoResult):
    """Somebody else holds the lock; `why` names the holder."""


class Lock:
    """One lock file, held from its making until `release` and the end of every heir.

    fd: inheritable, for `pass_fds`. shared: others may hold it too, none of them alone. Raises
    Taken if somebody else holds it.
    """

    def __init__(self, path: Path, *, what: str, holder: str = "", shared: bool = False) -> None:
        self.path = path
        self.fd = _open(path)
        try:
            fcntl.flock(self.fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self.fd)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise NoResult(f"cannot lock {path}", why=str(error)) from error
            raise Taken(f"{what} is taken", why=f"held by {_holder(path)}") from error
        os.set_inheritable(self.fd, True)
        _note(path, f"pid {os.getpid()}" + (f", {holder}" if holder else ""))

    def release(self) -> None:
        """Let go. Heirs go on holding it: closing is not unlocking, which would free theirs too."""
        if self.fd >= 0:
            _note(self.path, "")
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(frozen=True, slots=True)
class Lease:
    """The locks of one job: its device, then its cores; fds in that order, for the child."""

    fds: list[int]


def lock_directory(
    wanted: Path | None = None, *, shared: Path = SHARED, runtime: Path | None = None
) -> tuple[Path, Scope]:
    """Return the folder of the locks, made if it was not there, and whom it binds.

    wanted: an operator's choice, else `shared`, else a folder of this user (under `runtime`, by
    default the user's runtime directory). The scope is `host` only where every user can come in.
    Raises NoResult if the chosen one cannot be used.
    """
    if wanted is not None:
        if not _is_usable(wanted, mode=_STICKY):
            raise NoResult(f"lock folder {str(wanted)!r} cannot be used")
        return wanted, _scope(wanted)
    if _is_usable(shared, mode=_STICKY) and _scope(shared) == "host":
        return shared, "host"
    own = runtime or Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    own = own / f"farm-{os.getuid()}"
    if not _is_usable(own, mode=0o700) or own.stat().st_uid != os.getuid():
        raise NoResult(f"no folder for locks: neither {shared} nor {own} can be used")
    return own, "user"


def slot_lock(device: str, *, directory: Path, holder: str = "", called: str = "") -> Lock:
    """Take a device for as long as a worker serves it; nobody else can serve it meanwhile.

    called: what people call it. Raises Taken if it is served already.
    """
    what = f"device {called or device}"
    return Lock(directory / f"{_file_name(device)}.slot", what=what, holder=holder)


@contextmanager
def hold(
    device: str,
    cores: Iterable[int],
    *,
    directory: Path,
    holder: str = "",
    parent: str = "",
    called: str = "",
    wait_s: float = WAIT_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Lease]:
    """Hold a device and its physical cores for one job, from before its first gate to its last.

    called: what people call it. parent: the GPU of a slice, which is held with its other slices, so
    that nobody has the whole of it meanwhile. Waits up to wait_s in all; cores ascend, so that no
    two can wait for each other. Raises Taken if one of them is not free by then, and holds nothing.
    """
    deadline = clock() + wait_s
    what = f"device {called or device}"
    wanted = [(each, what, each == parent) for each in (parent, device) if each]
    wanted = [(f"{_file_name(name)}.lease", what, shared) for name, what, shared in wanted]
    wanted += [(f"core-{core}.lease", f"core {core}", False) for core in sorted(set(cores))]
    with ExitStack() as held:
        locks = []
        for name, what, shared in wanted:
            while True:
                try:
                    lock = Lock(directory / name, what=what, holder=holder, shared=shared)
                    locks.append(held.enter_context(lock))
                    break
                except Taken:
                    # flock knows no time limit, and a thread that waits in it cannot be called off
                    if clock() >= deadline:
                        raise
                    sleep(_ASK_AGAIN_S)
        yield Lease([lock.fd for lock in locks])


def _file_name(device: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in device)


def _open(path: Path) -> int:
    """Open a lock file for reading, made first if need be; never through a link.

    An exclusive flock works on a read-only descriptor and across users. Creating is a step of its
    own, because `fs.protected_regular` refuses O_CREAT on somebody else's file.
    """
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        os.fchmod(made, 0o644)  # whatever the umask: others must be able to open it
        os.close(made)
    except FileExistsError:
        pass
    except OSError as error:
        raise NoResult(f"cannot make lock file {path}", why=str(error)) from error
    try:
        # O_NONBLOCK: a pipe planted under that name must not hang us
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NoResult(f"cannot open lock file {path}", why=str(error)) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NoResult(f"lock file {path} is no regular file")
    return fd


def _note(path: Path, text: str) -> None:
    """Write who holds the lock, where the file is ours to write; nobody relies on it."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    with os.fdopen(fd, "w") as file:
        file.truncate()
        file.write(text)


def _holder(path: Path) -> str:
    """What the holder wrote; its process may have ended while a child holds on."""
    try:
        text = path.read_text(errors="replace")[:200].strip()
    except OSError:
        text = ""
    pid = text.removeprefix("pid ").partition(",")[0]
    if not pid.isdecimal():
        return "another process"
    return text if _is_alive(int(pid)) else f"{text} (ended; a child of it goes on)"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_usable(folder: Path, *, mode: int) -> bool:
    """Whether files can be made in the folder, which is made with this mode if it is missing."""
    try:
        folder.mkdir(parents=True)
        folder.chmod(mode)
    except FileExistsError:
        pass
    except OSError:
        return False
    return not folder.is_symlink() and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _scope(folder: Path) -> Scope:
    return "host" if folder.stat().st_mode & _STICKY == _STICKY else "user"
