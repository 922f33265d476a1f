"""Who listens where a broker should be: real sockets, each with another mistake behind it."""

import os
import socket
import ssl
from itertools import chain, repeat
from pathlib import Path

import pytest

from farm.doctor.wire import Address, Look, address, look
from farm.embedded.evidence import free_port
from tests.farm.doctor.sound import listening, redis_like

URL = "redis://127.0.0.1:{port}/0"


def _connect(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), 2.5)


def _look(port: int, *, url: str = URL) -> Look:
    at = address(url.format(port=port))
    assert isinstance(at, Address)
    return look(at, connect=_connect)


@pytest.fixture
def tls() -> ssl.SSLContext:
    """A server side whose certificate it signed itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("loopback.pem"))
    return context


# ── addresses ────────────────────────────────────────────────────────────────────────────────────


def test_an_address_is_taken_apart() -> None:
    at = address("rediss://me:p%40ss@box:7000/1?ssl_ca_certs=/ca.pem&ssl_cert_reqs=none")

    assert Address("box", 7000, "me", "p@ss", True, "/ca.pem", False) == at


def test_a_password_may_stand_among_the_options() -> None:
    assert Address("box", 6379, "me", "p@ss", False) == address(
        "redis://box?password=p%40ss&username=me"
    )


def test_a_socket_in_the_file_system_is_an_address_too() -> None:
    at = address("unix://:p%40ss@/run/redis.sock")

    assert ("/run/redis.sock", "p@ss", True) == (at.where, at.password, at.is_loopback)


@pytest.mark.parametrize(
    ("host", "here"),
    [("localhost", True), ("127.8.9.1", True), ("[::1]", True), ("10.0.0.1", False), ("x", False)],
)
def test_this_machine_is_told_from_others(host: str, here: bool) -> None:
    at = address(f"redis://{host}:1/0")

    assert isinstance(at, Address)
    assert here == at.is_loopback


# ── who is there ─────────────────────────────────────────────────────────────────────────────────


def test_a_closed_port_has_nobody() -> None:
    assert Look("nothing") == _look(free_port())


def test_a_host_that_has_no_address_is_not_known() -> None:
    def connect(_host: str, _port: int) -> socket.socket:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert "host" == look(Address("box", 1, "", "", False), connect=connect).verdict


@pytest.mark.parametrize("error", [TimeoutError(), OSError(113, os.strerror(113))])
def test_a_host_that_cannot_be_reached_is_silent(error: OSError) -> None:
    def connect(_host: str, _port: int) -> socket.socket:
        raise error

    assert "silent" == look(Address("box", 1, "", "", False), connect=connect).verdict


def test_a_server_that_answers_is_one() -> None:
    with listening(redis_like({})) as port:
        assert Look("answers") == _look(port)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"+OK POP3 server ready\r\n",
        b"\x15\x03\x03\x00\x02\x02F\n",
        b"\n",
        b"-ERR unknown command 'PING'\r\n",
        b"x" * 600,
    ],
)
def test_another_protocol_is_foreign_and_never_hears_the_password(said: bytes) -> None:
    heard = b""

    def answer(message: bytes) -> bytes:
        nonlocal heard
        heard += message
        return said

    with listening(answer) as port:
        found = _look(port, url="redis://:s3cret@127.0.0.1:{port}/0")

    assert "foreign" == found.verdict
    assert b"s3cret" not in heard


def test_what_is_foreign_is_quoted_from_its_beginning() -> None:
    with listening(lambda _message: b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n") as port:
        assert Look("foreign", "HTTP/1.1 400 Bad Request") == _look(port)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (b"-NOAUTH Authentication required.\r\n", "password"),
        (b"-DENIED Redis is running in protected mode\r\n", "protected"),
        (b"-LOADING Redis is loading the dataset in memory\r\n", "busy"),
        (b"-ERR max number of clients reached\r\n", "busy"),
        (None, "closed"),
    ],
)
def test_what_keeps_a_server_from_answering_is_told_apart(said: bytes | None, verdict: str) -> None:
    with listening(lambda _message: said) as port:
        assert verdict == _look(port).verdict


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (b"+OK\r\n", "answers"),
        (b"-WRONGPASS invalid username-password pair or user is disabled.\r\n", "refused"),
        (b"-ERR AUTH <password> called without any password configured\r\n", "refused"),
        (b"-ERR unknown command `AUTH`, with args beginning with: `s3cret`\r\n", "refused"),
    ],
)
def test_credentials_are_tried_and_the_answer_is_never_repeated(after: bytes, verdict: str) -> None:
    """Some servers repeat the words that they do not understand."""

    def answer(message: bytes) -> bytes:
        return after if b"AUTH" in message else b"-NOAUTH Authentication required.\r\n"

    with listening(answer) as port:
        found = _look(port, url="redis://me:s3cret@127.0.0.1:{port}/0")

    assert verdict == found.verdict
    assert "" == found.said


def test_who_says_nothing_is_given_up_in_time() -> None:
    """The clock has moved on when the answer is awaited, so it is awaited for a moment only."""
    clock = chain([0.0], repeat(100.0))

    with listening(lambda _message: b"") as port:
        at = Address("127.0.0.1", port, "", "", False)
        found = look(at, connect=_connect, clock=lambda: next(clock))

    assert "silent" == found.verdict


def test_who_does_not_speak_tls_is_told() -> None:
    with listening(lambda _message: b"-ERR Protocol error\r\n") as port:
        assert "plain" == _look(port, url="rediss://127.0.0.1:{port}/0").verdict


def test_a_certificate_file_that_is_not_there_is_told() -> None:
    with listening(lambda _message: None) as port:
        found = _look(port, url="rediss://127.0.0.1:{port}/0?ssl_ca_certs=/nowhere.pem")

    assert Look("untrusted", "no file '/nowhere.pem'") == found


def test_a_certificate_that_nobody_vouches_for_is_told(tls: ssl.SSLContext) -> None:
    """Where the address says that any will do, it does."""
    with listening(redis_like({}), tls=tls) as port:
        assert "untrusted" == _look(port, url="rediss://127.0.0.1:{port}/0").verdict
        at = "rediss://127.0.0.1:{port}/0?ssl_cert_reqs=none"
        assert "answers" == _look(port, url=at).verdict


def test_who_wants_tls_is_no_server_of_ours_without(tls: ssl.SSLContext) -> None:
    with listening(redis_like({}), tls=tls) as port:
        assert _look(port).verdict in ("closed", "foreign")
