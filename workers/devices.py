"""The slots of this machine: GPUs, MIG slices and CPU slots, and which of them words name.

A name is for people: `gpu:0` is the first GPU by its PCI address, as CUDA counts, `mig:0.1` the
second slice of it. A GPU is pinned, locked and remembered by its UUID, which no reboot changes.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from farm.errors import NoResult, Refused, did_you_mean
from farm.schema import Device
from workers import cores
from workers.gpu import Board
from workers.host import Host

_SELECTORS: Final = ["all", "cpu", "gpu"]
_KNOWN: Final = "known: all, cpu, cpu:0, gpu, gpu:0, a UUID, a PCI address, an index"
_NUMBERED: Final = re.compile(r"(?:gpu|cpu):\d+|mig:\d+\.\d+")
_UUID: Final = re.compile(r"(?:GPU|MIG)-[0-9A-F-]{2,}", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Slot:
    """One device that jobs are pinned to.

    number: among those of its kind. cpus: leased logical CPUs, one per leased physical core,
    ascending. flags: doubts that hold for every job of the slot. board: of a GPU or slice, None for
    a CPU slot; place: how its name counts it. simulated: it is not there.
    """

    number: int
    cpus: tuple[int, ...]
    housekeeping: tuple[int, ...]
    flags: tuple[str, ...] = ()
    board: Board | None = None
    place: str = ""
    simulated: bool = False

    @property
    def name(self) -> str:
        return f"cpu:{self.number}" if self.board is None else f"{self.board.kind}:{self.place}"

    @property
    def key(self) -> str:
        """What it is remembered and locked by on this machine; it leaves it in no document."""
        return self.name if self.board is None else self.board.uuid

    def device(self, model: str | None) -> Device:
        """Return the device as a profile shows it; model: of the CPU, where it is known."""
        if self.board is None:
            return Device(name=model or "cpu", slot=self.name, kind="cpu", cpus=list(self.cpus))
        named = " ".join(filter(None, (self.board.name, self.board.profile)))
        return Device(name=named, slot=self.name, kind=self.board.kind, cpus=list(self.cpus))


def slots(
    host: Host,
    selector: str = "all",
    *,
    affinity: Collection[int] | None,
    count: int = 1,
    boards: Sequence[Board] = (),
    missing: str = "",
    simulated: bool = False,
) -> list[Slot]:
    """Return the slots that a selector names: `all`, `gpu`, `cpu`, or one of them.

    affinity: the logical CPUs that this process may use; None where the system has no such thing.
    count: CPU slots that share what the GPUs leave of the cores. boards: the GPUs that may be used;
    missing: why there are no more. simulated: they stand in for all devices of this machine. Raises
    Refused for words that are no selector or several devices, NoResult for one that is not here.
    """
    if count < 1:
        raise Refused(f"{count} CPU slots", why="a node serves at least one")
    is_wanted = _wanted(selector)
    found = _all(host, affinity, count=0 if simulated else count, boards=boards)
    if simulated:
        found = [replace(slot, simulated=True) for slot in found]
    if affinity is None:
        found = [replace(slot, flags=(*slot.flags, "not_pinned")) for slot in found]
    chosen = [slot for slot in found if is_wanted(slot)]
    if not chosen:
        served = ", ".join(slot.name for slot in found)
        has = f"this node has {served}" if served else "this node has none"
        asks = not (boards or selector.startswith("cpu"))
        none = f"no GPU here: {missing or 'the driver shows none'}" if asks else ""
        why = "; ".join(filter(None, (has, none)))
        hint = "say `cpu`" if any(slot.board is None for slot in found) else ""
        raise NoResult(f"no device {selector!r} here", why=why, hint=hint)
    if _UUID.fullmatch(selector) and len(chosen) > 1:
        names = ", ".join(slot.name for slot in chosen)
        raise Refused(f"{selector!r} begins the UUIDs of several devices", why=names)
    return chosen


def visible(boards: Sequence[Board], setting: str | None) -> list[Board]:
    """Return the boards that CUDA_VISIBLE_DEVICES leaves, in the order of their PCI addresses.

    setting: as the operator gave it, None for no word about it. Like CUDA, it takes UUIDs, their
    beginnings and indices, and ends at the first word that names nothing.
    """
    ordered = sorted(boards, key=lambda board: (board.pci_bdf, board.index, board.uuid))
    if setting is None:
        return ordered
    gpus = list(dict.fromkeys(board.parent or board.uuid for board in ordered))
    kept: set[str] = set()
    for word in filter(None, map(str.strip, setting.split(","))):
        named = {
            board.uuid
            for board in ordered
            if board.uuid.startswith(word)
            or (board.parent and board.parent.startswith(word))
            or (word.isdecimal() and gpus.index(board.parent or board.uuid) == int(word))
        }
        if not named:
            break
        kept |= named
    return [board for board in ordered if board.uuid in kept]


def _all(
    host: Host, affinity: Collection[int] | None, *, count: int, boards: Sequence[Board]
) -> list[Slot]:
    """Return every slot, GPUs first."""
    divided = cores.divide(
        cores.allowed(host, affinity), near=[board.cpus for board in boards], slots=count
    )
    keeping = divided.housekeeping
    places = _places(boards)
    gpus = [
        Slot(
            at,
            share.cpus,
            keeping,
            # A slice beside others shares the memory's bandwidth: no profile of it is quiet.
            (*share.flags, "busy_siblings") if board.has_siblings else share.flags,
            board=board,
            place=places[board.uuid],
        )
        for at, (board, share) in enumerate(zip(boards, divided.gpus, strict=True))
    ]
    cpus = [Slot(at, share.cpus, keeping, share.flags) for at, share in enumerate(divided.slots)]
    return gpus + cpus


def _places(boards: Sequence[Board]) -> Mapping[str, str]:
    """Return how each board is counted: GPUs one after the other, slices within theirs."""
    gpus: list[str] = []
    slices: dict[str, int] = {}
    found = {}
    for board in boards:
        gpu = board.parent or board.uuid
        if gpu not in gpus:
            gpus.append(gpu)
        at = slices[gpu] = slices.get(gpu, -1) + 1
        found[board.uuid] = f"{gpus.index(gpu)}.{at}" if board.parent else f"{gpus.index(gpu)}"
    return found


def _wanted(selector: str) -> Callable[[Slot], bool]:
    """Return what tells whether a slot is meant."""
    if selector == "all":
        return lambda slot: True
    if selector in ("cpu", "gpu"):
        return lambda slot: (slot.board is None) == (selector == "cpu")
    if _NUMBERED.fullmatch(selector):
        return lambda slot: slot.name == selector
    if selector.isdecimal():
        return lambda slot: slot.board is not None and slot.place.partition(".")[0] == selector
    word = selector.lower()
    if _ADDRESS.fullmatch(selector):
        return lambda slot: slot.board is not None and _is_at(slot.board, word)
    if _UUID.fullmatch(selector):
        return lambda slot: slot.board is not None and slot.board.uuid.lower().startswith(word)
    raise Refused(
        f"unknown device selector {selector!r}",
        why=_KNOWN,
        hint=did_you_mean(selector, _SELECTORS),
    )


def _is_at(board: Board, word: str) -> bool:
    """Whether a board is at a PCI address; without a domain it is that of domain 0."""
    domain = word[:-7].rstrip(":") or "0"
    return board.pci_bdf == f"{int(domain, 16):04x}:{word[-7:]}"
