"""Nothing of a child outlives it: what left its group is found by a word of ours that it inherited.

Only what carries that word under our own user, or became ours since the child began, is ever
killed: never by name, and never what only a driver has listed (`node.md` §7). The word is kept in a
file while a child runs, so that whoever comes after a killed worker finds what it left.
"""

import ctypes
import json
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from workers.host import Host

log = logging.getLogger(__name__)

WORD: Final = "FARM_LEASE"
LIMIT_S: Final = 10.0
_AGAIN_S: Final = 0.05
_PR_SET_CHILD_SUBREAPER: Final = 36


def adopt_orphans() -> None:
    """Become the parent of whatever a child of ours leaves behind, where the system can."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Cleanup:
    """Of one slot. file: where the word is kept while a child runs; its folder is made."""

    def __init__(
        self,
        file: Path,
        host: Host,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file, self._host, self._clock, self._sleep = file, host, clock, sleep
        self._word, self._ours = "", frozenset[int]()

    def begin(self) -> dict[str, str]:
        """Return what a child that starts now is to have in its environment."""
        self._word = secrets.token_hex(16)
        self._ours = frozenset(_descendants(self._host))
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".tmp")
        partial.write_text(json.dumps({"word": self._word}))
        partial.replace(self._file)
        return {WORD: self._word}

    def end(self) -> list[int]:
        """Kill what the child left, and return the processes that cannot be killed."""
        left = self._killed(self._word, self._ours)
        if not left:
            self._file.unlink(missing_ok=True)
        return left

    def settle(self) -> list[int]:
        """Kill what was left by a worker that could not do it itself; return what cannot be."""
        try:
            word = json.loads(self._file.read_text())["word"]
        except (OSError, ValueError, KeyError, TypeError):
            return []
        if not isinstance(word, str) or len(word) != 32:  # nobody else's processes match that
            return []
        self._word, self._ours = word, frozenset(_descendants(self._host))
        return self.end()

    def _killed(self, word: str, ours: Collection[int]) -> list[int]:
        until, told = self._clock() + LIMIT_S, False
        while True:
            left = _left(self._host, word, ours)
            if not left or self._clock() > until:
                return left
            if not told:
                log.warning("killing %d processes that a child has left", len(left))
                told = True
            for pid in left:
                _kill(pid, self._host, word, ours)
            self._sleep(_AGAIN_S)


def _left(host: Host, word: str, ours: Collection[int]) -> list[int]:
    """Return the processes that carry the word, or that became ours since."""
    new = _descendants(host) - set(ours)
    return sorted(
        pid
        for name in host.names("proc")
        if name.isdecimal()
        and (pid := int(name)) != os.getpid()
        and (pid in new or _carries(host, pid, word))
        and not _is_over(host, pid)
    )


def _carries(host: Host, pid: int, word: str) -> bool:
    """Whether a process of our own user has the word in the environment that it began with."""
    text = host.text(f"proc/{pid}/environ") if word else None
    if not text or f"{WORD}={word}" not in text.split("\0"):
        return False
    try:
        return os.stat(host.root / f"proc/{pid}").st_uid == os.geteuid()
    except OSError:
        return False


def _is_over(host: Host, pid: int) -> bool:
    """Whether a process has ended; one that waits for us as its parent is reaped."""
    with suppress(ChildProcessError, OSError):
        if host.root == Path("/") and os.waitpid(pid, os.WNOHANG)[0] == pid:
            return True
    stat = host.text(f"proc/{pid}/stat")
    return stat is None or stat.rpartition(")")[2].split()[:1] in (["Z"], ["X"])


def _kill(pid: int, host: Host, word: str, ours: Collection[int]) -> None:
    """Kill one of them, and no other process that has its number by now."""
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):  # gone, or a system without handles
        return
    try:
        if _carries(host, pid, word) or (pid in _descendants(host) and pid not in ours):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(handle)


def _descendants(host: Host) -> set[int]:
    """Return our children, their children, and so on."""
    parents: dict[int, int] = {}
    for name in host.names("proc"):
        if name.isdecimal():
            fields = (host.text(f"proc/{name}/stat") or "").rpartition(")")[2].split()
            if len(fields) > 1 and fields[1].isdecimal():
                parents[int(name)] = int(fields[1])
    found: set[int] = set()
    edge = {os.getpid()}
    while edge:
        edge = {pid for pid, parent in parents.items() if parent in edge} - found
        found |= edge
    return found
