"""The log of a running attempt: whatever a child prints, who follows it gets plain lines."""

import queue
import threading
import time
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Unreachable
from workers.voice import EVERY_S, FORGOTTEN_S, KEPT_BYTES, LINES, LISTENED_S, LONG, Voice, plain


class Follower:
    """Takes lines as the ledger does; its clock is turned by hand. away: raise so many times."""

    def __init__(self) -> None:
        self.now, self.away = 1000.0, 0
        self.heard: queue.Queue[list[str]] = queue.Queue()
        self.voice = Voice(self.put, clock=lambda: self.now)

    def put(self, lines: list[str]) -> None:
        if self.away:
            self.away -= 1
            raise Unreachable("the broker cannot be reached")
        self.heard.put(lines)

    def next(self) -> list[str]:
        """The next lines that are handed on; the calls without a line are left out."""
        return self.heard.get(timeout=10) or self.next()

    def rest(self) -> list[str]:
        """What was handed on and not taken yet."""
        found = []
        while not self.heard.empty():
            found += self.heard.get()
        return found


@pytest.fixture
def follower() -> Iterator[Follower]:
    made = Follower()
    yield made
    made.voice.close()
    assert "voice" not in [each.name for each in threading.enumerate()]


def numbered(count: int, *, start: int = 0) -> bytes:
    return b"".join(b"line %d\n" % n for n in range(start, start + count))


# ── who hears what ───────────────────────────────────────────────────────────────────────────────


def test_nothing_is_handed_on_and_no_thread_runs_unless_somebody_listens(
    follower: Follower,
) -> None:
    follower.voice.take(b"hello\n")

    assert "voice" not in [each.name for each in threading.enumerate()]
    follower.voice.close()
    assert [] == follower.rest()


def test_who_listens_gets_what_was_printed_and_then_what_comes(follower: Follower) -> None:
    follower.voice.take(b"one\ntwo\n")

    follower.voice.listen()

    assert ["one", "two"] == follower.next()
    follower.voice.take(b"three\n")
    assert ["three"] == follower.next()


def test_the_first_lines_are_the_last_200(follower: Follower) -> None:
    """A line in brackets says how many bytes came before them."""
    follower.voice.take(numbered(1000))

    follower.voice.listen()

    first, *lines = follower.next()
    assert f"[… {len(numbered(1000 - LINES)):,} bytes left out …]" == first
    assert numbered(LINES, start=1000 - LINES).decode().splitlines() == lines


def test_a_line_waits_for_its_end_unless_it_is_long(follower: Follower) -> None:
    """And for the end of the attempt at most."""
    follower.voice.take(b"one\nhal")
    follower.voice.listen()
    assert ["one"] == follower.next()

    follower.voice.take(b"f\n" + b"x" * (LONG + 1))
    assert ["half", "x" * LONG, "x"] == follower.next()
    follower.voice.take(b"last")
    follower.voice.close()

    assert ["last"] == follower.next()


def test_after_12_seconds_nobody_is_taken_to_listen(follower: Follower) -> None:
    """The thread ends; who asks again hears what was printed meanwhile."""
    follower.voice.take(b"one\n")
    follower.voice.listen()
    assert ["one"] == follower.next()
    thread = follower.voice._thread
    assert thread is not None

    follower.now += LISTENED_S
    thread.join(10)
    follower.voice.take(b"two\n")

    assert ([], False) == (follower.rest(), thread.is_alive())
    follower.voice.listen()
    assert ["two"] == follower.next()


def test_who_comes_when_all_was_forgotten_gets_it_again(follower: Follower) -> None:
    """What was handed on is kept for two minutes; a log of an hour is followed more than once."""
    follower.voice.take(b"one\n")
    follower.voice.listen()
    assert ["one"] == follower.next()
    thread = follower.voice._thread
    assert thread is not None

    follower.now += LISTENED_S
    thread.join(10)
    follower.now += FORGOTTEN_S
    follower.voice.take(b"two\n")
    follower.voice.listen()

    assert ["one", "two"] == follower.next()


def test_what_a_silent_child_said_is_kept_while_somebody_listens(follower: Follower) -> None:
    follower.voice.take(b"one\n")
    follower.voice.listen()
    assert ["one"] == follower.next()

    follower.now += FORGOTTEN_S / 2
    follower.voice.listen()

    assert [] == follower.heard.get(timeout=10)


def test_an_attempt_that_has_ended_says_no_more(follower: Follower) -> None:
    follower.voice.take(b"one\n")
    follower.voice.close()

    follower.voice.listen()

    assert "voice" not in [each.name for each in threading.enumerate()]
    assert [] == follower.rest()


def test_a_ledger_that_is_away_only_makes_the_log_silent(follower: Follower) -> None:
    """Nothing is raised, and what was not taken is handed on once it is back."""
    follower.away = 2
    follower.voice.take(b"one\n")

    follower.voice.listen()
    follower.voice.take(b"two\n")

    assert ["one", "two"] == follower.next()


def test_a_ledger_that_stays_away_does_not_hold_up_the_end(follower: Follower) -> None:
    follower.away = 1000
    follower.voice.take(b"one\n")
    follower.voice.listen()

    follower.voice.close()

    assert [] == follower.rest()


# ── hostile output ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line", [b"x" * 1023 + b"\n", b"\n" * 1024, b"x" * 1024, b"\xff\x00\x1b[2J" * 128]
)
def test_a_spammer_costs_its_follower_a_bounded_amount(follower: Follower, line: bytes) -> None:
    """Twice a second at most 200 lines and 64 KiB, besides the pieces of long ones."""
    chunk = line * 64
    follower.voice.take(chunk)
    follower.voice.listen()
    parts, began = [follower.next()], time.monotonic()

    while len(parts) < 3:
        follower.voice.take(chunk)
        if not follower.heard.empty():
            parts.append(follower.next())

    assert time.monotonic() - began > 1.5 * EVERY_S
    for part in parts:
        assert len(part) <= 1 + LINES + KEPT_BYTES // LONG
        assert sum(len(each.encode()) for each in part[1:]) <= KEPT_BYTES
    assert "bytes left out" in parts[1][0]


def test_a_hundred_megabytes_take_no_memory_and_no_time() -> None:
    """What is kept has a fixed size, whatever comes; the drain of the child goes on."""
    voice, chunk = Voice(lambda lines: None), b"x" * (1 << 16)
    voice.take(chunk)
    tracemalloc.start()
    began = time.monotonic()

    for _ in range(1600):
        voice.take(chunk)

    took, (_, peak) = time.monotonic() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert took < 5


@given(st.binary(max_size=200))
def test_any_bytes_become_text_that_a_terminal_can_be_given(line: bytes) -> None:
    """No control character but a tab, no end of a line; never longer than what it stands for."""
    text = "".join(plain(line))

    assert text.replace("\t", " ").isprintable()
    assert len(text.encode()) <= len(line)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"", [""]),
        ("naïve 模型\tok".encode(), ["naïve 模型\tok"]),
        (b"loss 0.1\r", ["loss 0.1"]),
        (b" 10 %\r 20 %\r100 %", ["100 %"]),
        (b"\x1b[31mred\x1b[0m\x07", ["?[31mred?[0m?"]),
        (b"caf\xe9 \xf0\x9f", ["caf? ?"]),
        ("a\u202eb\u2028c\x85d".encode(), ["a?b?c?d"]),
        (b"x" * (LONG + 1), ["x" * LONG, "x"]),
    ],
)
def test_a_line_is_shown_as_plain_text(line: bytes, text: list[str]) -> None:
    assert text == plain(line)
