"""Peaks of the resident memory of this process: since a reset, and in its whole life.

They come from VmHWM and never from `ru_maxrss`, which a process inherits from its parent. The
kernel keeps one mark for a process, so a reset takes it away from everybody: all peaks of one
process tell each other here what they saw.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final
from weakref import WeakSet

from workers.host.tree import Host

_STATUS: Final = "proc/self/status"


class Peak:
    """The peak of this process since the last reset by this object, whatever others reset."""

    def __init__(self, host: Host, *, pid: Callable[[], int] = os.getpid) -> None:
        self._host, self._pid = host, pid
        self._before: int | None = None  # what resets by others have hidden since ours

    def reset(self) -> bool:
        """Begin a new peak, and return whether the kernel lets us; where not, there is none."""
        high = self._look() or 0
        self._before = None
        try:
            with open(self._host.root / "proc/self/clear_refs", "w") as file:
                file.write("5")
        except OSError:
            return False
        begun = self._process().begun
        for each in begun:
            each._hidden(high)
        self._before = 0
        begun.add(self)
        return True

    def since_reset(self) -> int | None:
        """Return the peak in bytes since our reset; None without one, and where /proc is not."""
        high = self._look()
        return None if high is None or self._before is None else max(high, self._before)

    def lifetime(self) -> int | None:
        """Return the peak in bytes since the process began; None where /proc is not."""
        self._look()
        return self._process().largest

    def _look(self) -> int | None:
        high = self._host.bytes_of(_STATUS, "VmHWM:")
        if high is not None:
            known = self._process()
            known.largest = max(high, known.largest or 0)
        return high

    def _process(self) -> "_Process":
        """Return what is known of this process; a forked one begins anew."""
        return _PROCESSES.setdefault((self._pid(), self._host.root), _Process())

    def _hidden(self, high: int) -> None:
        if self._before is not None:
            self._before = max(high, self._before)


class _Process:
    """What one process knows of its mark: the largest so far, and who has begun a peak."""

    def __init__(self) -> None:
        self.largest: int | None = None
        self.begun: WeakSet[Peak] = WeakSet()


_PROCESSES: Final[dict[tuple[int, Path], _Process]] = {}
