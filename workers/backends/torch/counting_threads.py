"""Whether other Python threads worked during a call: nobody hears their operators.

A dispatch mode belongs to one thread. A thread that only waited meanwhile has computed nothing,
which its CPU time says exactly: a notebook and a compiler keep several that wait.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_OURS: Final = "lifeline"  # it watches the parent of a child, and computes nothing


class Company:
    """has_worked: whether a thread began, ended or used CPU time inside the block.

    The main thread, the caller's and our own are not looked at. Where the system tells no CPU time
    of a thread (macOS), one that lives counts as one that works.
    """

    def __init__(self) -> None:
        self.has_worked = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at every other thread before and after, and hear of each that begins inside."""
        before, profile = _others(), threading.getprofile()

        def began(frame: Any, event: str, arg: object) -> None:
            self.has_worked = True
            sys.setprofile(profile)

        threading.setprofile(began)
        try:
            yield
        finally:
            threading.setprofile(profile)
            after = _others()
            worked = before != after or None in after.values()
            self.has_worked = self.has_worked or worked


def _others() -> dict[int, int | None]:
    """Return the CPU time of each other thread in ns, by its identity."""
    ours = {each.ident for each in threading.enumerate() if each.name == _OURS}
    ours |= {threading.main_thread().ident, threading.get_ident()}
    # a thread with a frame lives, so that its clock may be asked for; one of `enumerate` may not
    return {each: _cpu_ns(each) for each in sys._current_frames() if each not in ours}


def _cpu_ns(thread: int) -> int | None:
    if not hasattr(time, "pthread_getcpuclockid"):
        return None
    return time.clock_gettime_ns(time.pthread_getcpuclockid(thread))
