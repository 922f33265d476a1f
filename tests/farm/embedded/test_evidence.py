"""Who is behind a number: a process is told from its successor, a server by its password."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from farm.embedded.evidence import HOST, answers, free_port, started

ASKED = b"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*1\r\n$4\r\nPING\r\n"
GOOD = b"+OK\r\n+PONG\r\n"


# ── processes ────────────────────────────────────────────────────────────────────────────────────


def test_a_process_is_the_same_as_long_as_it_lives() -> None:
    assert started(os.getpid())
    assert started(os.getpid()) == started(os.getpid())


def test_two_processes_are_told_apart() -> None:
    """By when they started, not by their numbers: those come again."""
    with _child() as one:
        assert started(one.pid) not in (None, started(os.getpid()))


def test_an_ended_process_is_dead_though_nobody_has_asked_for_its_end() -> None:
    """A zombie still has its number, and serves nobody."""
    with _child() as one:
        assert one.stdin is not None
        one.stdin.close()
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)

        assert started(one.pid) is None

    assert started(one.pid) is None


def test_a_number_of_nobody_is_dead() -> None:
    assert started(2**22 + 1) is None  # above the highest that Linux gives


@contextmanager
def _child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that lives until its standard input closes."""
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


# ── servers ──────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server for one connection; yields its port."""
    with socket.create_server((HOST, 0)) as listening:

        def run() -> None:
            with suppress(OSError):
                wire, _ = listening.accept()
                with wire:
                    serve(wire)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.close()
            thread.join()


def _saying(*chunks: bytes, asked: list[bytes]) -> Callable[[socket.socket], None]:
    def serve(wire: socket.socket) -> None:
        asked.append(wire.recv(1024))
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for each in chunks:
            wire.sendall(each)

    return serve


@pytest.mark.parametrize(
    ("said", "is_ours"),
    [
        ([GOOD], True),
        ([b"+O", b"K\r\n+PO", b"NG\r\n"], True),
        ([b"-WRONGPASS invalid\r\n+PONG\r\n"], False),
        ([b"-ERR no password is set\r\n+PONG\r\n"], False),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], False),
        ([GOOD + b"+more\r\n"], False),
        ([b"+OK\r\n"], False),
        ([], False),
    ],
)
def test_a_server_is_ours_if_it_takes_the_password_and_answers(
    said: list[bytes], is_ours: bool
) -> None:
    """In however many pieces it says so; whoever says anything else is a stranger."""
    asked: list[bytes] = []

    with _server(_saying(*said, asked=asked)) as port:
        assert is_ours is answers(port, "pw")

    assert [ASKED] == asked


def test_a_server_that_says_nothing_is_given_up() -> None:
    done = threading.Event()

    with _server(lambda wire: bool(done.wait(10)) and None) as port:
        assert not answers(port, "pw", timeout_s=0.05)
        done.set()


def test_nobody_answers_at_a_free_port() -> None:
    port = free_port()

    assert not answers(port, "pw")
    with socket.create_server((HOST, port)):
        pass  # and it may be had


def test_free_ports_are_of_the_loopback_alone() -> None:
    assert "127.0.0.1" == HOST
    assert all(1024 <= free_port() < 2**16 for _ in range(5))
