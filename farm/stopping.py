"""How a command is ended from outside: in order, so that it leaves no file and no program."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end us in order, as Ctrl-C does.

    What is ignored stays ignored: `nohup` wants a closed terminal to end nothing.
    """
    signals = (signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
    former = {each: signal.signal(each, signal.default_int_handler) for each in heard}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
