"""What this node offers: its slots, each with a card, the classes of work it takes, its lock."""

import logging
import os
import re
import secrets
import select
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import structs

from farm import __version__, schema
from farm.errors import Bad, NoResult, Refused
from farm.ledger import Slot
from farm.schema import Device, SystemCard
from workers import accelerators, card, cores, devices, ids, lease
from workers.control import Setup
from workers.gpu import Board, Seen
from workers.guard import Manner
from workers.host import Host

log = logging.getLogger(__name__)

_NONE: Final = Seen()
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Around(NamedTuple):
    """What all workers of a node share. place: the store, as `farm.store.place` says it."""

    broker: str
    store: str
    place: str
    state: Path
    spool: Path
    manner: Manner


@dataclass(frozen=True, kw_only=True)
class Served:
    """A device of this node: how the farm knows it, its card, and its lock for life if taken.

    board: of a GPU or slice, None for a CPU slot. seen: where it was, when nothing else was asked.
    """

    slot: Slot
    device: Device
    card: SystemCard
    environment: str
    flags: tuple[str, ...]
    lock_dir: Path
    lock: lease.Lock | None = None
    board: Board | None = None
    seen: Seen = _NONE

    @property
    def simulated(self) -> bool:
        return self.board is not None and self.seen.simulated

    @property
    def base_clock_hz(self) -> float | None:
        """The clock that its GPU keeps under load, None where nobody knows."""
        told = self.seen.facts.get(self.board.uuid, {}) if self.board is not None else {}
        found = told.get("base_clock_hz")
        return None if found is None or not found.value else float(found.value)

    def setup(self, around: Around) -> Setup:
        """Return what the workers of the slot are told; each gets an owner of its own."""
        return Setup(
            slot=structs.replace(self.slot, store=around.place, version=__version__),
            owner="",
            device=self.device,
            card=self.card,
            environment=self.environment,
            broker=around.broker,
            # A folder is the same one wherever the worker stands; of a URL it needs the password.
            store=around.store if "://" in around.store else around.place,
            state=str(around.state),
            spool=str(around.spool),
            lock_dir=str(self.lock_dir),
            flags=list(self.flags),
            board=self.board,
            simulated=self.simulated,
            fake=self.seen.fake,
            faults=self.seen.faults,
            manner=around.manner,
            base_clock_hz=self.base_clock_hz,
        )


def offer(
    state: Path,
    *,
    selector: str,
    name: str,
    lock_dir: str,
    count: int,
    host: Host | None = None,
    seen: Seen = _NONE,
) -> list[Served]:
    """Return the devices that the selector names, with their cards.

    state: holds the random id of this node, made when it is missing. seen: the GPUs of this
    machine, of which CUDA_VISIBLE_DEVICES may leave some. Raises Refused for bad words, NoResult if
    a device is not here.
    """
    host = host or Host()
    try:
        node_id = ids.node_id(state)
    except OSError as error:
        raise _unwritable(state, error) from error
    node = name or node_id[:8]
    if not _NAME.fullmatch(node):
        raise Refused(f"{node!r} is no name of a node", why="letters a-z, digits, - and _")
    directory, scope = lease.lock_directory(Path(lock_dir) if lock_dir else None)
    boards = seen.boards
    if not seen.simulated:
        boards = devices.visible(boards, os.environ.get("CUDA_VISIBLE_DEVICES"))
    found = devices.slots(
        host,
        selector,
        affinity=cores.own_affinity(),
        count=count,
        boards=boards,
        missing=seen.why,
        simulated=seen.simulated,
    )
    numbers = ids.numbers(state, [each.key for each in found])
    return [
        _served(each, numbers[each.key], host, state, (node, node_id), (directory, scope), seen)
        for each in found
    ]


def _served(
    slot: devices.Slot,
    number: int,
    host: Host,
    state: Path,
    node: tuple[str, str],
    locks: tuple[Path, lease.Scope],
    seen: Seen,
) -> Served:
    """Return a slot with its card. node: its name and id."""
    made = card.collect(
        slot,
        host,
        node_id=node[1],
        name=node[0],
        lease_scope=locks[1],
        environment=os.environ,
        facts=seen.facts.get(slot.key),
        salt=ids.salt(state),
    )
    made = _settled(made, state / "cards" / f"{number}.json")
    device = slot.device(made.stable.cpu.model)
    kinds = ["cpu"] if slot.board is None else [*accelerators.class_words(slot.board), "gpu"]
    return Served(
        slot=Slot(
            node=node[0],
            slot=slot.name,
            classes=classes(node[0], number, [made.system_class, *kinds]),
            device=device.name,
            system_id=made.system_id,
            system_class=made.system_class,
        ),
        device=device,
        card=made,
        environment="default",
        flags=slot.flags,
        lock_dir=locks[0],
        board=slot.board,
        seen=seen,
    )


def take(served: Sequence[Served], *, wait: Callable[[lease.Taken], bool]) -> list[Served]:
    """Return the devices with their locks, all of them or none.

    wait: asked, with who holds it, while somebody else serves one of them; True means try again.
    Raises Taken, naming the holder, when it gives up.
    """
    while True:
        locks: list[lease.Lock] = []
        try:
            for each in served:
                name, node = each.device.slot, each.slot.node
                key = name if each.board is None else each.board.uuid
                lock = lease.slot_lock(key, directory=each.lock_dir, holder=node, called=name)
                locks.append(lock)
            return [replace(each, lock=lock) for each, lock in zip(served, locks, strict=True)]
        except NoResult as error:
            for lock in locks:
                lock.release()
            if not isinstance(error, lease.Taken) or not wait(error):
                raise


class Patience:
    """Waits for a device that is served, for as long as whoever started us lives.

    A second `farm run` of a machine shares the first one's workers, or waits for those of another
    folder, and has its own ready for when these end.
    """

    def __init__(self, lifeline: int | None) -> None:
        self._lifeline = lifeline
        self._told = ""

    def __call__(self, taken: lease.Taken) -> bool:
        if self._lifeline is None:
            return False
        if self._told != str(taken):
            self._told = str(taken)
            log.info("waiting for a device: %s", taken)
        return not select.select([self._lifeline], [], [], 0.5)[0]


def classes(node: str, number: int, hardware: Sequence[str]) -> list[str]:
    """Return the queues that a slot hears, the narrowest first (`queue.md` §3).

    hardware: the classes of its device, likewise.
    """
    of_device = [f"hw.{each}" for each in dict.fromkeys(hardware)]
    return [f"dev.{node}.{number}", f"node.{node}", *of_device, "any"]


def _settled(made: SystemCard, file: Path) -> SystemCard:
    """Return the former card where only the time differs, so that equal facts are one document."""
    try:
        former = schema.decode(file.read_bytes(), SystemCard)
    except (OSError, Bad):
        former = None
    if former is not None:
        at = former.node.collected_at
        if structs.replace(made, node=structs.replace(made.node, collected_at=at)) == former:
            return former
    # A name of its own: two commands may ask for the first card of a machine at once.
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(schema.encode(made))
        partial.rename(file)
    except OSError as error:
        raise _unwritable(file.parent, error) from error
    return made


def _unwritable(folder: Path, error: OSError) -> Refused:
    return Refused(f"cannot write the state folder {str(folder)!r}", why=error.strerror or "")


def default_state() -> Path:
    """Return where a node keeps its id and its work unless it is told."""
    home = Path.home()
    return home / ("Library/Caches/farm" if sys.platform == "darwin" else ".local/state/farm")
