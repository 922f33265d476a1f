"""`farm-worker devices`: the slots of this machine, their state, and the end of an ailment."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farm.errors import NoResult, Refused, did_you_mean
from workers import talk
from workers.cli import options
from workers.cli.places import offered, places

if TYPE_CHECKING:
    from workers.node import Served


@click.command()
@options.devices
@options.name
@options.state
@options.locks
@options.slots
@click.option("--probe", is_flag=True, help="Show in a child of each GPU that CUDA works.")
@click.option("--clear", metavar="ID", help="Say that the fault of this slot is mended.")
@click.option("--reason", metavar="TEXT", help="What was done about it; goes into its history.")
@options.fake
@options.json
def devices(
    devices: str,
    name: str,
    state_dir: str,
    lock_dir: str,
    cpu_slots: int,
    probe: bool,
    clear: str | None,
    reason: str | None,
    fake: str,
    as_json: bool,
) -> None:
    """List the slots of this machine: the cores each leases, what it takes, what it suffers from.

    Exit 3 where none of them can be used.
    """
    state, _settings = places(state_dir)
    served = offered(
        state, selector=devices, name=name, lock_dir=lock_dir, count=cpu_slots, fake=fake
    )
    if (clear is None) != (reason is None):
        raise Refused("--clear and --reason go together", why="what was mended is kept")
    if clear is not None:
        _clear(state, served, clear, reason or "")
    troubles = {each.slot.slot: _trouble(state, each, probe=probe) for each in served}
    if as_json:
        _document(served, troubles)
    else:
        for each in served:
            click.echo(_line(each, troubles[each.slot.slot]))
    if all(troubles.values()):
        raise NoResult("no device here can be used", hint="`--clear ID` once its fault is mended")


def _clear(state: Path, served: "Sequence[Served]", word: str, reason: str) -> None:
    from workers.health import Health, number_of

    found = next((each for each in served if word in _names(each)), None)
    if found is None:
        names = [each.slot.slot for each in served]
        hint = did_you_mean(word, names)
        raise NoResult(f"no device {word!r} here", why=f"it has {', '.join(names)}", hint=hint)
    health = Health(state, number_of(found.slot))
    if health.ailment() is None:
        raise NoResult(f"{found.slot.slot} suffers from nothing that is known here")
    health.clear(reason)


def _names(served: "Served") -> set[str]:
    from workers.health import number_of

    uuid = {served.board.uuid} if served.board is not None else set()
    return {served.slot.slot, number_of(served.slot)} | uuid


def _trouble(state: Path, served: "Served", *, probe: bool) -> str:
    """Return what keeps a device from being measured on, as far as this machine knows."""
    from workers.health import Health, number_of
    from workers.trying import tried

    now = Health(state, number_of(served.slot)).ailment()
    if now is not None and now.kind != "suspect":
        return f"{now.kind or 'quarantine'}: {now.note}"
    if probe and served.board is not None and not served.simulated:
        found = tried(served.board)
        return f"CUDA does not work: {found}" if found else ""
    return ""


def _line(served: "Served", trouble: str) -> str:
    cores = ",".join(map(str, served.device.cpus))
    words = [
        *(served.device.slot, served.device.name, f"cores {cores}", served.slot.system_class),
        *([trouble] if trouble else []),
    ]
    return "  ".join(words)


def _document(served: "Sequence[Served]", troubles: dict[str, str]) -> None:
    import msgspec

    rows = [
        {**msgspec.to_builtins(each.slot), "trouble": troubles[each.slot.slot]} for each in served
    ]
    talk.document(json.dumps({"schema": "farm.devices/v1", "slots": rows}).encode())
