"""When the catalogue takes in what has arrived: at the end of a run, and now and then during one.

A process of its own does it, off the cores that are measured on, so the scheduler keeps its beat
and its memory. Whatever becomes of that process, the profiles lie in the inbox.
"""

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

log = logging.getLogger(__name__)

MOST_NEW: Final = 5_000
LONGEST_S: Final = 600.0


class Process(Protocol):
    """As much of a started process as is needed here."""

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class Compaction:
    """Starts a compaction when one is due; one runs at a time.

    start: starts it, and returns its process.
    """

    def __init__(
        self, start: Callable[[], Process], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._start, self._clock = start, clock
        self._process: Process | None = None
        self._is_due = False
        self._began = clock()
        self._ended_then = 0

    def look(self, *, closed: bool, ended: int) -> None:
        """Start one if a run was closed, or if 5,000 jobs or 10 minutes have gone by with news.

        ended: how many jobs of the open runs have ended by now.
        """
        new = ended - self._ended_then
        waited = self._clock() - self._began
        self._is_due |= closed or new >= MOST_NEW or (new > 0 and waited >= LONGEST_S)
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            if code:
                log.warning("the catalogue was not brought up to date: exit code %s", code)
            self._process = None
        if self._is_due:
            try:
                self._process = self._start()
            except OSError as error:  # no memory for it just now; the next end of a run asks again
                log.warning("the catalogue was not brought up to date: %s", error)
            self._is_due = False
            self._began, self._ended_then = self._clock(), ended
        elif new < 0:  # runs were closed, and their jobs are no longer counted
            self._ended_then = ended

    def end(self) -> None:
        """Stop the one that runs: what it had not committed, the next one takes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def starter(store: str, environ: Mapping[str, str]) -> Callable[[], Process]:
    """Return what starts the compaction of a store as a command; its complaints go to our stderr.

    store: its address.
    """

    def start() -> Process:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "farm.cli", "--quiet", "store", "compact"],
            env={**environ, "FARM_STORE": store},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for us, and we end it
        )

    return start
