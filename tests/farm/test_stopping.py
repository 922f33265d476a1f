"""What ends a command from outside ends it in order, and only while it holds programs."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from farm.stopping import stoppable

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def _unheard(number: int, frame: object) -> None:
    """What these signals mean before the block: nothing, and no end of the tests."""


@pytest.fixture(autouse=True)
def before() -> Iterator[None]:
    """Handlers of ours, which must come back."""
    former = {each: signal.signal(each, _unheard) for each in SIGNALS}
    yield
    for each, handler in former.items():
        signal.signal(each, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_ctrl_c_while_programs_run(number: int) -> None:
    """So that whoever started them stops them on the way out."""
    with pytest.raises(KeyboardInterrupt), stoppable():
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("fails", [False, True])
def test_afterwards_signals_mean_what_they_meant(fails: bool) -> None:
    """However the block ended."""
    try:
        with stoppable():
            assert [signal.default_int_handler] * 2 == [signal.getsignal(each) for each in SIGNALS]
            if fails:
                raise ValueError
    except ValueError:
        assert fails

    assert [_unheard] * 2 == [signal.getsignal(each) for each in SIGNALS]


def test_what_is_ignored_stays_ignored() -> None:
    """`nohup farm run …` goes on when its terminal is closed."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with stoppable():
        os.kill(os.getpid(), signal.SIGHUP)

    assert signal.SIG_IGN is signal.getsignal(signal.SIGHUP)


def test_one_inside_the_other_gives_back_what_was_there() -> None:
    with stoppable(), stoppable():
        pass

    assert [_unheard] * 2 == [signal.getsignal(each) for each in SIGNALS]


def test_a_thread_that_may_set_no_signals_goes_on_without() -> None:
    """Python lets the main thread alone do it."""
    seen: list[object] = []

    def run() -> None:
        with stoppable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert [_unheard] == seen
