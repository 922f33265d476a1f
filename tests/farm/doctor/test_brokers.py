"""The broker: who takes us there is one question, whether it keeps what it is given another."""

import socket
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from farm.doctor import Finding, brokers
from farm.doctor.surroundings import Ran
from farm.embedded import Server
from farm.embedded.evidence import free_port
from farm.errors import NoResult, Unreachable
from tests.farm.doctor.sound import Told, listening, loaded, one, redis_like, surroundings

NOW = 1_000_000.0


def _named(folder: Path, url: str, **changes: Any) -> list[Finding]:
    return list(brokers.named(loaded(folder, FARM_BROKER=url), surroundings(folder, **changes)))


def _told(folder: Path, url: str = "redis://:s3cret@127.0.0.1:{port}/0", **told: Any) -> Any:
    """What is found about a broker that lets us in and tells this of itself."""
    with listening(lambda said: b"+OK\r\n" if b"AUTH" in said else b"+PONG\r\n") as port:
        return _named(folder, url.format(port=port), ledger=lambda _url: Told(**told))


def _own(folder: Path, **changes: Any) -> list[Finding]:
    return list(brokers.own(loaded(folder), surroundings(folder, **changes)))


# ── whether it takes us ──────────────────────────────────────────────────────────────────────────


def test_a_sound_broker_is_ok(tmp_path: Path) -> None:
    found = [each for each in _told(tmp_path) if each.subject == "broker"]

    assert ["ok"] * 7 == [each.state for each in found]


def test_where_nothing_listens_a_server_is_to_be_started(tmp_path: Path) -> None:
    port = free_port()

    found = one(_named(tmp_path, f"redis://127.0.0.1:{port}/0"), "connection")

    assert ("fail", 4) == (found.state, found.code)
    assert f"127.0.0.1:{port} (FARM_BROKER): nothing listens there" == found.said
    assert found.cure.startswith(f"redis-server --port {port} ")


def test_something_else_at_the_port_is_named(tmp_path: Path) -> None:
    with listening(lambda _message: b"HTTP/1.1 400 Bad Request\r\n\x1b[2J") as port:
        found = one(_named(tmp_path, f"redis://:s3cret@127.0.0.1:{port}/0"), "connection")

    assert ("fail", 4) == (found.state, found.code)
    assert "something else listens there: HTTP/1.1 400 Bad Request" in found.said
    assert f"ss -ltnp 'sport = :{port}'" in found.cure


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"-WRONGPASS invalid username-password pair\r\n", "it refuses the credentials"),
        (b"-NOAUTH Authentication required.\r\n", "it refuses the credentials"),
    ],
)
def test_refused_credentials_fail_and_are_not_repeated(
    tmp_path: Path, said: bytes, told: str
) -> None:
    with listening(
        lambda message: said if b"AUTH" in message else b"-NOAUTH Authentication required.\r\n"
    ) as port:
        found = one(_named(tmp_path, f"redis://me:s3cret@127.0.0.1:{port}/0"), "connection")

    assert ("fail", 4) == (found.state, found.code)
    assert told in found.said
    assert f"redis-cli -h 127.0.0.1 -p {port} --user me --askpass PING" in found.cure
    assert "s3cret" not in f"{found.said} {found.cure}"


def test_a_broker_that_wants_a_password_says_so(tmp_path: Path) -> None:
    with listening(lambda _message: b"-NOAUTH Authentication required.\r\n") as port:
        found = one(_named(tmp_path, f"redis://127.0.0.1:{port}/0"), "connection")

    assert "it wants a password" in found.said
    assert f"export FARM_BROKER=redis://USER:PASSWORD@127.0.0.1:{port}/0" == found.cure


@pytest.mark.parametrize(
    ("url", "state"),
    [
        ("redis://10.0.0.7:6379/0", "warn"),
        ("rediss://10.0.0.7:6379/0", "ok"),
        ("redis://localhost:6379/0", "ok"),
    ],
)
def test_another_machine_without_tls_is_a_warning(tmp_path: Path, url: str, state: str) -> None:
    def connect(_host: str, _port: int) -> socket.socket:
        raise ConnectionRefusedError

    assert state == one(_named(tmp_path, url, connect=connect), "encryption").state


def test_a_broker_that_is_lost_while_it_is_asked_fails(tmp_path: Path) -> None:
    class Lost(Told):
        def server(self) -> Any:
            raise Unreachable("the broker cannot be reached", why="s3cret")

    with listening(redis_like({})) as port:
        found = one(
            _named(tmp_path, f"redis://127.0.0.1:{port}/0", ledger=lambda _url: Lost()),
            "connection",
        )

    assert ("fail", 4) == (found.state, found.code)
    assert f"127.0.0.1:{port}: the broker cannot be reached" == found.said


@pytest.mark.parametrize("error", [ImportError(), AttributeError()])
def test_a_library_that_cannot_be_loaded_leaves_the_broker_unasked(
    tmp_path: Path, error: Exception
) -> None:
    """Something else may have its name; another check says so."""

    def ledger(_url: str) -> Any:
        raise error

    with listening(redis_like({})) as port:
        found = _named(tmp_path, f"redis://127.0.0.1:{port}/0", ledger=ledger)

    assert "skipped" == one(found, "server").state


# ── what it tells of itself ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("server", "state"),
    [
        ({"version": "6.2.14"}, "fail"),
        ({"version": "7.0.0"}, "ok"),
        ({"flavour": "valkey", "version": "9.1.2"}, "ok"),
    ],
)
def test_a_redis_before_7_fails(tmp_path: Path, server: dict[str, Any], state: str) -> None:
    assert state == one(_told(tmp_path, **server), "version").state


@pytest.mark.parametrize("version", ["6.2.14", "5.0.7"])
def test_an_old_server_is_known_before_our_library_meets_it(tmp_path: Path, version: str) -> None:
    """The library turns away from a server that does not know its greeting."""
    with listening(redis_like({"redis_version": version})) as port:
        found = _named(tmp_path, f"redis://127.0.0.1:{port}/0", ledger=_ledger())

    assert f"redis {version} is older than 7.0" == one(found, "version").said
    assert "upgrade it to Redis 7.0 or later, or to Valkey" == one(found, "version").cure
    assert ["skipped"] == [each.state for each in found if each.subject == "farm"]


def test_a_real_answer_of_a_server_is_understood(tmp_path: Path) -> None:
    """Through the ledger and its library."""
    info = {
        "redis_version": "7.2.4",
        "valkey_version": "8.1.0",
        "server_time_usec": round(NOW * 1e6),
        "maxmemory_policy": "allkeys-lru",
        "aof_enabled": 0,
        "connected_clients": 1,
        "maxclients": 10000,
    }
    with listening(redis_like(info)) as port:
        found = _asked_only(tmp_path, port)

    assert "valkey 8.1.0" == one(found, "version").said
    assert "fail" == one(found, "eviction").state
    assert "warn" == one(found, "durability").state


def test_a_server_that_tells_too_little_is_another_kind(tmp_path: Path) -> None:
    with listening(redis_like({"redis_version": "7.0.0"})) as port:
        found = one(_named(tmp_path, f"redis://127.0.0.1:{port}/0", ledger=_ledger()), "connection")

    assert "fail" == found.state
    assert "does not answer as a Redis server" in found.said


def _asked_only(folder: Path, port: int) -> list[Finding]:
    """What is found until the fleet is asked for, which the server here knows nothing of."""
    settings = loaded(folder, FARM_BROKER=f"redis://127.0.0.1:{port}/0")
    told = brokers.named(settings, surroundings(folder, ledger=_ledger()))
    found = list(takewhile(lambda each: each.name != "clients", told))
    told.close()
    return found


def _ledger() -> Callable[[str], Any]:
    from farm.ledger import Ledger

    return Ledger


@pytest.mark.parametrize(
    ("ahead_s", "state", "said"),
    [
        (-3.5, "warn", "behind"),
        (3.5, "warn", "ahead of"),
        (-1.5, "ok", "within 2 s"),
        (1.5, "ok", "within 2 s"),
    ],
)
def test_a_clock_that_is_off_by_more_than_two_seconds_is_a_warning(
    tmp_path: Path, ahead_s: float, state: str, said: str
) -> None:
    found = one(_told(tmp_path, time_s=NOW + ahead_s), "clock")

    assert state == found.state
    assert said in found.said


def test_a_slow_answer_is_no_skew(tmp_path: Path) -> None:
    """The clock was read somewhere between question and answer, 10 s apart."""
    clock = iter([NOW - 9.0, NOW + 1.0])
    around = surroundings(
        tmp_path, clock=lambda: next(clock), ledger=lambda _url: Told(), running=_up
    )

    assert "ok" == one(list(brokers.own(loaded(tmp_path), around)), "clock").state


@pytest.mark.parametrize(
    ("server", "name", "state", "command"),
    [
        ({"policy": "volatile-lru"}, "eviction", "fail", "CONFIG SET maxmemory-policy noeviction"),
        ({"policy": ""}, "eviction", "skipped", ""),
        ({"appendonly": False}, "durability", "warn", "CONFIG SET appendonly yes"),
        ({"clients": 81, "max_clients": 100}, "clients", "warn", "CONFIG SET maxclients 400"),
        ({"clients": 80, "max_clients": 100}, "clients", "ok", ""),
        ({"clients": 80, "max_clients": 0}, "clients", "ok", ""),
    ],
)
def test_a_broker_that_may_lose_or_refuse_is_found(
    tmp_path: Path, server: dict[str, Any], name: str, state: str, command: str
) -> None:
    found = one(_told(tmp_path, **server), name)

    assert state == found.state
    assert found.cure.endswith(command)
    assert "--askpass" in found.cure or not command


# ── the one that a run brings along ──────────────────────────────────────────────────────────────


def _up(_state: Path) -> Server:
    return Server("redis://:s3cret@127.0.0.1:4711/0", 4711, 1)


def test_a_machine_with_a_server_program_is_ok(tmp_path: Path) -> None:
    found = _own(tmp_path)

    assert ("ok", "9.1.2, /usr/bin/valkey-server") == (found[0].state, found[0].said)
    assert "skipped" == one(found, "connection").state


def test_a_machine_without_a_server_program_is_told_what_to_install(tmp_path: Path) -> None:
    def find() -> Path:
        hint = "install one: `apt-get install redis-server`"
        raise NoResult("no Redis-protocol server on this machine", hint=hint)

    found = one(_own(tmp_path, find_server=find), "server program")

    assert ("fail", "`apt-get install redis-server`") == (found.state, found.cure)


@pytest.mark.parametrize(
    ("ran", "said"),
    [
        (Ran(0, "Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1"), "version 6.0.16"),
        (Ran(0, "hello"), "version unknown"),
        (Ran(127, "not found"), "does not start"),
        (None, "does not start"),
    ],
)
def test_a_server_program_that_is_old_or_broken_fails(
    tmp_path: Path, ran: Ran | None, said: str
) -> None:
    """What is on PATH is taken first, and a distribution may bring an old one."""
    found = one(_own(tmp_path, run=lambda _words: ran), "server program")

    assert "fail" == found.state
    assert said in found.said


def test_a_broker_that_is_up_here_is_asked_too(tmp_path: Path) -> None:
    around = surroundings(
        tmp_path, running=_up, ledger=lambda _url: Told(time_s=NOW, appendonly=False)
    )

    found = list(brokers.own(loaded(tmp_path), around))

    assert "127.0.0.1:4711 takes us" == one(found, "connection").said
    assert "warn" == one(found, "durability").state
