"""The output of a running attempt, for whoever follows its log.

A child may print anything, as fast as it can. What is kept is bounded, taking a chunk copies
nothing, and what is handed on is text without control characters, so many lines and bytes at a
time. Nothing is handed on, and no thread runs, unless somebody listens.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from farm.errors import Unreachable

log = logging.getLogger(__name__)

LISTENED_S: Final = 12.0  # a follower asks again before that
EVERY_S: Final = 0.5
FORGOTTEN_S: Final = 120.0  # what was handed on longer ago is no longer there
KEPT_BYTES, LINES = 64 * 1024, 200
LONG: Final = 4096  # bytes that wait for the end of their line; characters of one that is shown
_END_S: Final = 2.0  # a ledger that hangs must not hold up the end of an attempt


class Voice:
    """Keeps the last 64 KiB of an attempt's output and, while somebody listens, hands lines on.

    A follower gets the last 200 lines at first, then what comes: twice a second at most 200 lines
    and 64 KiB; a line in brackets says how much was left out before them. put: takes lines and
    keeps them for two minutes from the last call, also one without a line; while it raises
    Unreachable they wait.
    """

    def __init__(
        self, put: Callable[[list[str]], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._put, self._clock = put, clock
        self._guard = threading.Lock()
        self._chunks: deque[bytes] = deque()
        self._kept = 0  # bytes in the chunks
        self._taken = 0  # bytes, of which the chunks are the last
        self._said = 0  # bytes, of which nothing is handed on any more
        self._until = self._put_at = 0.0
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def take(self, data: bytes) -> None:
        """Keep a chunk of output; never waits for the ledger."""
        with self._guard:
            self._chunks.append(data)
            self._taken += len(data)
            self._kept += len(data)
            while self._kept - len(self._chunks[0]) >= KEPT_BYTES:
                self._kept -= len(self._chunks.popleft())

    def listen(self) -> None:
        """Hand on what is kept and what comes, for the next 12 s."""
        with self._guard:
            if self._ended.is_set():
                return
            self._until = self._clock() + LISTENED_S
            if self._thread is None:
                if self._clock() - self._put_at > FORGOTTEN_S:
                    self._said = 0
                self._thread = threading.Thread(target=self._speak, name="voice", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Hand on the rest, if somebody listens; the thread has ended unless the ledger hangs."""
        with self._guard:
            thread = None if self._ended.is_set() else self._thread
            self._ended.set()
        if thread is not None:
            thread.join(_END_S)

    def _speak(self) -> None:
        is_away = False
        while True:
            ended = self._ended.is_set()  # asked first: what was taken before it is handed on
            try:
                self._hand_on(whole=ended)
                is_away = False
            except Unreachable as error:
                if not is_away:
                    log.warning("the log is silent: %s", error)
                is_away = True
            with self._guard:
                if ended or self._clock() >= self._until:
                    self._thread = None
                    return
            self._ended.wait(EVERY_S)

    def _hand_on(self, *, whole: bool) -> None:
        lines, taken = self._news(whole=whole)
        # No lines are put now and then as well: what is there is kept, for a second follower.
        if lines or self._clock() - self._put_at > FORGOTTEN_S / 4:
            self._put(lines)
            self._said, self._put_at = taken, self._clock()

    def _news(self, *, whole: bool) -> tuple[list[str], int]:
        """Return the lines to hand on, and up to which byte; whole: also one without its end."""
        with self._guard:
            taken, tail = self._taken, b"".join(self._chunks)
        new = tail[max(0, len(tail) - min(taken - self._said, KEPT_BYTES)) :]
        if not whole:
            waits = len(new) - (new.rfind(b"\n") + 1)
            waits = 0 if waits > LONG else waits  # one that grows without end is not waited for
            new, taken = new[: len(new) - waits], taken - waits
        if taken == self._said:
            return [], taken
        shown = new.removesuffix(b"\n").rsplit(b"\n", LINES)
        left_out = taken - self._said - len(new)
        left_out += len(shown.pop(0)) + 1 if len(shown) > LINES else 0
        note = [f"[… {left_out:,} bytes left out …]"] if left_out else []
        return note + [each for line in shown for each in plain(line)], taken


def plain(line: bytes) -> list[str]:
    """Return a line of output as text that a terminal can be given, in pieces if it is long.

    Whatever is not UTF-8 or cannot be printed is a question mark, which is never longer than what
    it stands for. Of a line that was written over, as a progress bar is, the last form is shown.
    """
    text = line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2].replace("\ufffd", "?")
    if not text.isprintable():
        text = "".join(each if each.isprintable() or each == "\t" else "?" for each in text)
    return [text[at : at + LONG] for at in range(0, len(text) or 1, LONG)]
