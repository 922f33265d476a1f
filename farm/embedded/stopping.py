"""How a command that started programs is ended from outside."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end us in order, as Ctrl-C does."""
    signals = (signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {each: signal.signal(each, signal.default_int_handler) for each in signals}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
