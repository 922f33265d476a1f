"""How busy a host was over the last seconds, kept by a thread so that a look costs nothing."""

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, NamedTuple

from workers.host.probe import core_ticks
from workers.host.tree import Host, number

EVERY_S: Final = 2.0  # eight slots of a node that idles cost a core next to nothing
SPAN_S: Final = 2.0
_LEAST_S: Final = 0.5  # ticks count hundredths of a second: a shorter span says nothing


class Busy(NamedTuple):
    """Shares of a span: of the cores in use, and of the time in which something waited for one.

    None where the host does not tell. is_known: whether the span was long enough to say anything.
    """

    cores: float | None
    pressure: float | None
    is_known: bool = True


class _Mark(NamedTuple):
    at_ns: int
    busy: int | None
    total: int | None
    some_us: int | None


class History:
    """The use of some cores over the last seconds. clock: ns, of any epoch that never steps."""

    def __init__(
        self,
        host: Host,
        cores: Collection[int],
        *,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._host, self._cores, self._clock = host, tuple(cores), clock
        self._marks: deque[_Mark] = deque()
        self._guard, self._ended = threading.Lock(), threading.Event()

    def keep(self) -> None:
        """Take a mark every other second, in a thread, until `end` or that of the process."""

        def run() -> None:
            while not self._ended.wait(EVERY_S):
                self.mark()

        self.mark()
        threading.Thread(target=run, name="host", daemon=True).start()

    def end(self) -> None:
        """Take no more marks by itself."""
        self._ended.set()

    def mark(self) -> None:
        """Note the counters as they are now; those of more than a span ago are forgotten."""
        ticks = core_ticks(self._host, self._cores)
        made = _Mark(
            at_ns=self._clock(),
            busy=None if ticks is None else ticks.busy,
            total=None if ticks is None else ticks.total,
            some_us=number(self._host.text("proc/pressure/cpu"), r"some .*total="),
        )
        with self._guard:
            self._marks.append(made)
            while len(self._marks) > 2 and made.at_ns - self._marks[1].at_ns >= SPAN_S * 1e9:
                self._marks.popleft()

    def begin_anew(self) -> None:
        """Forget what was: until now it was our own work."""
        with self._guard:
            self._marks.clear()
        self.mark()

    def over(self) -> Busy:
        """Return how busy it was until now, over about two seconds or what is known of them."""
        self.mark()
        with self._guard:
            first, last = self._marks[0], self._marks[-1]
        seconds = (last.at_ns - first.at_ns) / 1e9
        if seconds < _LEAST_S:
            return Busy(None, None, is_known=False)
        cores = pressure = None
        if first.busy is not None and last.busy is not None and last.total is not None:
            passed = last.total - (first.total or 0)
            cores = (last.busy - first.busy) / passed if passed > 0 else 0.0
        if first.some_us is not None and last.some_us is not None:
            pressure = (last.some_us - first.some_us) / 1e6 / seconds
        return Busy(cores, pressure)


def free_share(folder: Path) -> float | None:
    """Return which share of the disk that holds a folder is free, None where nobody tells."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return usage.free / usage.total if usage.total else None
