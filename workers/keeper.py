"""One slot's worker as its agent sees it: started, heard, told, and started again when it died."""

import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

import msgspec

from workers.control import Control, Fit, Holding, Message, Setup, pair

log = logging.getLogger(__name__)

STOP_S: Final = 20.0
_RESTART_MAX_S: Final = 60.0
_SETTLED_S: Final = 30.0


class Keeper:
    """Keeps the worker of one slot running: at most one process, and what it holds.

    setup: what each worker of the slot is told; it gets an owner of its own. lock: the descriptor
    of the slot's lock, which the worker keeps open; None where none may be started.
    """

    def __init__(self, setup: Setup, *, lock: int | None, clock: Callable[[], float]) -> None:
        self.slot = setup.slot
        self.owner = ""
        self.holding = Holding()
        self.trouble = ""
        self.control: Control | None = None
        self._setup, self._lock, self._clock = setup, lock, clock
        self._process: subprocess.Popen[bytes] | None = None
        self._started = self._restart_at = 0.0
        self._failures = 0
        self._is_ending = False

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start_when_due(self) -> None:
        """Start the worker unless one runs or the last one died too often just now."""
        if self._process is None and self._clock() >= self._restart_at:
            self._start()

    def hear(self) -> bool:
        """Take what the worker says; True if the ledger should hear of it soon."""
        messages = self.control.receive() if self.control is not None else None
        if messages is None:
            self._hang_up()
            return False
        is_news = False
        for message in messages:
            if isinstance(message, Holding):
                changed = message.fence != self.holding.fence
                # A line without progress keeps the last one of the same entry.
                if message.progress or changed:
                    self.holding, is_news = message, True
            elif isinstance(message, Fit) and message.trouble != self.trouble:
                self.trouble, is_news = message.trouble, True
        return is_news

    def tell(self, message: Message) -> None:
        """Send the worker a message; one that is gone does not hear it."""
        if self.control is not None:
            self.control.send(message)

    def died(self) -> str:
        """Return the owner of a worker that has ended since the last time, else ""."""
        if self._process is None:
            return ""
        code, now = self._process.poll(), self._clock()
        if code is None:
            if now - self._started > _SETTLED_S:
                self._failures = 0
            return ""
        log.warning("slot worker %s ended with %s", self.owner, code)
        self._process = None
        self.holding, self.trouble = Holding(), ""
        self._hang_up()
        self._restart_at = now + min(2.0**self._failures, _RESTART_MAX_S) - 1.0
        self._failures += 1
        return self.owner

    def wind_up(self) -> None:
        """Let the worker claim no more and end after the job in hand; said once."""
        if self._process is not None and not self._is_ending:
            # Celery takes one SIGTERM as: no further ticket, let the job in hand end.
            self._process.terminate()
            self._is_ending = True

    def kill(self) -> str:
        """End the worker now; return its owner if it still ran, else ""."""
        self._hang_up()
        if self._process is None:
            return ""
        self._process.kill()
        self._process.wait(timeout=STOP_S)
        self._process = None
        return self.owner

    def _hang_up(self) -> None:
        if self.control is not None:
            self.control.close()
            self.control = None

    def _start(self) -> None:
        assert self._lock is not None
        ours, theirs = pair()
        self.owner = f"{self.slot.node}/{self.slot.slot}#{secrets.token_hex(4)}"
        with theirs, self._log_file() as output:
            fd = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "workers.tasks", self.slot.slot, str(fd)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(fd, self._lock),
                start_new_session=True,
                # Celery renames its process where `setproctitle` happens to be installed; whoever
                # looks for this one must find it by its command line.
                env={**os.environ, "NOSETPS": "1"},
            )
        self.control, self._started = ours, self._clock()
        ours.send(msgspec.structs.replace(self._setup, owner=self.owner))

    def _log_file(self) -> IO[bytes]:
        folder = Path(self._setup.state) / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / f"{self.slot.node}-{self.slot.slot}.log").open("ab")
