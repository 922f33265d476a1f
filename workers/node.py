"""What this node offers: its slots, each with a card, the classes of work it takes, its lock."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import structs

from farm import schema
from farm.errors import Bad, Refused
from farm.ledger import Slot
from farm.schema import Device, SystemCard
from workers import card, devices, lease
from workers.host import Host

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Served:
    """A device of this node: how the farm knows it, its card, and its lock for life if taken."""

    slot: Slot
    device: Device
    card: SystemCard
    environment: str
    flags: tuple[str, ...]
    lock_dir: Path
    lock: lease.Lock | None = None


def offer(
    state: Path,
    *,
    selector: str,
    name: str,
    lock_dir: str,
    count: int,
    take: bool,
    host: Host | None = None,
) -> list[Served]:
    """Return the devices that the selector names, with their cards; take locks them for serving.

    state: holds the random id of this node, made when it is missing. Raises Refused for bad words,
    NoResult if a device is not here, or is served already and was to be taken.
    """
    host = host or Host()
    node_id = card.node_id(state)
    node = name or node_id[:8]
    if not _NAME.fullmatch(node):
        raise Refused(f"{node!r} is no name of a node", why="letters a-z, digits, - and _")
    directory, scope = lease.lock_directory(Path(lock_dir) if lock_dir else None)
    found = devices.slots(host, selector, affinity=devices.own_affinity(), count=count)
    served = []
    for each in found:
        made = card.collect(
            each, host, node_id=node_id, name=node, lease_scope=scope, environment=os.environ
        )
        made = _settled(made, state / "cards" / f"{each.number}.json")
        device = each.device(made.stable.cpu.model)
        slot = Slot(
            node=node,
            slot=each.name,
            classes=classes(node, each.number, made.system_class),
            device=device.name,
            system_id=made.system_id,
            system_class=made.system_class,
        )
        lock = lease.slot_lock(each.name, directory=directory, holder=node) if take else None
        served.append(
            Served(
                slot=slot,
                device=device,
                card=made,
                environment="default",
                flags=each.flags,
                lock_dir=directory,
                lock=lock,
            )
        )
    return served


def classes(node: str, number: int, system_class: str) -> list[str]:
    """Return the queues that a CPU slot hears, the narrowest first (`queue.md` §3)."""
    return [f"dev.{node}.{number}", f"node.{node}", f"hw.{system_class}", "hw.cpu", "any"]


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
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".tmp")
    partial.write_bytes(schema.encode(made))
    partial.rename(file)
    return made


def default_state() -> Path:
    """Return where a node keeps its id and its work unless it is told."""
    home = Path.home()
    return home / ("Library/Caches/farm" if sys.platform == "darwin" else ".local/state/farm")
