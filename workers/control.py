"""What an agent and its slot workers say to each other: lines of JSON over one socket pair.

The socket is also the lifeline: when one side is gone the other reads end-of-file. Broker and store
addresses travel here and in no command line, because they may hold a password.
"""

import socket
from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from farm.ledger import Slot
from farm.schema import Device, SystemCard
from workers.gpu import Board
from workers.guard import Manner


class Setup(Struct, frozen=True, kw_only=True, tag="setup"):
    """All a slot worker needs to know, said once at its start."""

    slot: Slot
    owner: str
    device: Device
    card: SystemCard
    environment: str
    broker: str
    store: str
    state: str
    spool: str
    lock_dir: str
    flags: list[str]
    board: Board | None = None
    simulated: bool = False
    fake: str = ""
    faults: str = ""
    manner: Manner = Manner()
    base_clock_hz: float | None = None


class Stop(Struct, frozen=True, kw_only=True, tag="stop"):
    """End the child in hand: its lease is lost, nobody wants it, or the slot is given back now."""

    why: Literal["lost", "cancel", "release"]
    fence: str = ""


class Listen(Struct, frozen=True, kw_only=True, tag="listen"):
    """Somebody follows the log of the entry in hand for the next seconds."""

    fence: str


class Holding(Struct, frozen=True, kw_only=True, tag="holding"):
    """The entry in hand and how far it is; an empty key says that there is none."""

    key: str = ""
    fence: str = ""
    progress: str = ""


class Judged(Struct, frozen=True, kw_only=True, tag="judged"):
    """What the farm holds of the device, as `farm.ledger.Hold`; kind: "" for nothing."""

    kind: str = ""
    note: str = ""
    by: str = ""


class Fit(Struct, frozen=True, kw_only=True, tag="fit"):
    """Whether the device may be measured on now; trouble: why not, "" if it may."""

    trouble: str = ""


Message = Setup | Stop | Listen | Holding | Judged | Fit
_decoder = msgspec.json.Decoder(Message)


class Control:
    """One end of the line between an agent and a slot worker; sending is whole or not at all."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._rest = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> bool:
        """Send one message; False if the other side is gone."""
        try:
            self._socket.sendall(msgspec.json.encode(message) + b"\n")
        except OSError:
            return False
        return True

    def receive(self) -> list[Message] | None:
        """Return the messages that have arrived, waiting for bytes; None at end-of-file."""
        try:
            data = self._socket.recv(1 << 16)
        except ConnectionError:
            return None
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [_decoder.decode(line) for line in lines]

    def __iter__(self) -> Iterator[Message]:
        while (messages := self.receive()) is not None:
            yield from messages

    def close(self) -> None:
        self._socket.close()


def pair() -> tuple[Control, socket.socket]:
    """Return the agent's end, and the socket to hand to the slot worker."""
    ours, theirs = socket.socketpair()
    return Control(ours), theirs
