"""A machine on which every check is content, and servers on which it is not."""

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from farm import __version__, settings
from farm.doctor import Finding, Surroundings
from farm.doctor.surroundings import Installed, Ran
from farm.ledger import Node, Server, Slot
from farm.settings import Settings
from farm.store import open_store

NEEDS = ("celery<5.8,>=5.7", "kombu<5.8,>=5.7", "redis>=5", "torch>=2.6; extra == 'worker'")
VERSIONS = {
    "profiling-farm": __version__,
    "celery": "5.7.0",
    "kombu": "5.7.0",
    "redis": "8.1.0",
    "torch": "2.13.0+cpu",
    "nvidia-ml-py": "13.580.65",
}


def surroundings(folder: Path, **changes: Any) -> Surroundings:
    """A sound machine whose folders lie in this one; changes: what is not as it should be."""
    bin_ = folder / "environment" / "bin"
    write(bin_ / "farm-worker", "#!/bin/sh").chmod(0o755)
    given: dict[str, Any] = {
        "environ": {},
        "cwd": folder,
        "root": folder / "root",
        "here": folder / "installed",
        "python": bin_ / "python",
        "python_version": (3, 11, 7),
        "bits": 64,
        "cores": 8,
        "open_files": 4096,
        "has_module": lambda _name: True,
        "which": lambda name: str(bin_ / name),
        "distributions": lambda: distributions(folder / "installed"),
        "run": lambda _words: Ran(0, "Valkey server v=9.1.2 sha=00000000:0"),
        "clock": lambda: 1_000_000.0,
        "free": lambda _folder: 100 << 30,
        "connect": lambda host, port: socket.create_connection((host, port), 2.5),
        "lock": lambda _file: None,
        "may_write": lambda _folder: True,
        "find_server": lambda: Path("/usr/bin/valkey-server"),
        "running": lambda _state: None,
        "ledger": lambda _url: Told(),
        "open_store": open_store,
    }
    return Surroundings(**(given | changes))


def distributions(folder: Path, **versions: str | None) -> list[Installed]:
    """What is installed on a sound machine, with changes; None: it is missing."""
    changed = {name.replace("_", "-"): version for name, version in versions.items()}
    return [
        Installed(name, version, folder, NEEDS if name == "profiling-farm" else ())
        for name, version in (VERSIONS | changed).items()
        if version is not None
    ]


def loaded(folder: Path, **env: str) -> Settings:
    """The settings with these variables, and store and state in a folder."""
    places = {"FARM_STORE": str(folder / "store"), "FARM_STATE": str(folder / "state")}
    return settings.load({}, env=places | env, cwd=folder, home=folder)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def one(findings: Sequence[Finding] | Iterator[Finding], name: str) -> Finding:
    """The one finding of that name."""
    (found,) = [each for each in findings if each.name == name]
    return found


class Told:
    """A ledger that tells what it was told."""

    def __init__(self, nodes: Sequence[Node] = (), leader: str = "host/1", **server: Any) -> None:
        self._nodes, self._leader, self._server = list(nodes), leader, server

    def server(self) -> Server:
        given: dict[str, Any] = {
            "flavour": "redis",
            "version": "7.0.15",
            "time_s": 1_000_000.0,
            "policy": "noeviction",
            "appendonly": True,
            "clients": 12,
            "max_clients": 10_000,
        }
        return Server(**(given | self._server))

    def nodes(self) -> list[Node]:
        return self._nodes

    def leader(self) -> str:
        return self._leader

    def close(self) -> None:
        pass


def node(name: str, *, state: Any = "up", store: str = "", version: str = "") -> Node:
    slot = Slot(
        node=name,
        slot=f"{name}/0",
        classes=["cpu"],
        device="cpu",
        system_id="s",
        system_class="c",
        store=store,
        version=version,
    )
    return Node(name=name, state=state, silent_s=0.1, slots=[slot])


@contextmanager
def listening(
    answer: Callable[[bytes], bytes | None], *, tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """The port of a server that answers each message with these bytes; None: it closes."""

    class Talk(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(5)
            with suppress(OSError):
                while message := self.request.recv(4096):
                    said = answer(message)
                    if said is None:
                        return
                    self.request.sendall(said)

    class Listener(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def get_request(self) -> tuple[socket.socket, Any]:
            wire, peer = super().get_request()
            return (tls.wrap_socket(wire, server_side=True) if tls else wire), peer

    with Listener(("127.0.0.1", 0), Talk) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            serving.join()


def redis_like(info: dict[str, object]) -> Callable[[bytes], bytes]:
    """Answers of a server that knows HELLO, PING and INFO; several commands may come at once."""
    body = "".join(f"{key}:{value}\r\n" for key, value in info.items()).encode()

    def answer(message: bytes) -> bytes:
        said = b""
        words = [each.upper() for each in message.split(b"\r\n")]
        for at, word in enumerate(words):
            if word.startswith(b"*") and at + 2 < len(words):
                told = {
                    b"HELLO": b"%1\r\n$5\r\nproto\r\n:3\r\n",
                    b"PING": b"+PONG\r\n",
                    b"INFO": b"$%d\r\n%s\r\n" % (len(body), body),
                }
                command = words[at + 2]
                said += told.get(command, b"-ERR unknown command '%s'\r\n" % command)
        return said

    return answer
