"""`farm nodes`: the devices of the farm, and what people may say to them."""

from typing import TYPE_CHECKING, Final

import click

from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.cli.waiting import unserved_of, warn_of
from farm.errors import NoResult, Refused, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farm.ledger import Hold, Node
    from farm.reaching import Farm

_DONE: Final = {
    "paused": "claims nothing more; a job in hand ends",
    "unpaused": "claims again",
    "quarantine": "is out until it is cleared; a job in hand ends",
    "cleared": "claims again as soon as its gates pass",
}


@verb(
    examples=(
        "farm nodes",
        "farm nodes gpu-03 --json",
        'farm nodes gpu-03/2 --pause "fan is swapped"',
        'farm nodes gpu-03/gpu:1 --clear "new cable"',
    )
)
@click.argument("node", required=False)
@click.option("--pause", metavar="NOTE", help="Let it claim nothing more; jobs in hand end.")
@click.option("--unpause", is_flag=True, help="Let it claim again.")
@click.option("--quarantine", metavar="NOTE", help="Take it out until somebody clears it.")
@click.option("--clear", metavar="NOTE", help="Say that its fault is mended.")
@click.pass_obj
def nodes(
    talk: Talk,
    node: str | None,
    pause: str | None,
    unpause: bool,
    quarantine: str | None,
    clear: str | None,
) -> None:
    """List the devices of the farm: what each measures, or why not.

    NODE shows one machine with its history. NODE, NODE/2 or NODE/gpu:1 can be paused, taken out
    and cleared.
    """
    from farm import fleet, reaching

    asked = {
        "paused": pause,
        "unpaused": "" if unpause else None,
        "quarantine": quarantine,
        "cleared": clear,
    }
    wanted = {kind: note for kind, note in asked.items() if note is not None}
    if len(wanted) > 1:
        raise Refused("one of --pause, --unpause, --quarantine, --clear at a time")
    if wanted and node is None:
        raise Refused("no node is named", hint="farm nodes NODE, or NODE/2 for a device")
    farm, console = reaching.need(talk.settings(), passing=True), talk.console()
    if wanted and node is not None:
        _say(farm, node, *next(iter(wanted.items())), talk=talk)
        node = node.partition("/")[0]
    known, held = farm.ledger.nodes(), farm.ledger.holds()
    name, _, slot = (node or "").partition("/")
    found = fleet.devices(known, farm.ledger.running(), held, of=name or None)
    found = [each for each in found if not slot or slot in (each.slot, _number(each.queues))]
    spools = fleet.spools([each for each in known if name in ("", each.name)])
    if node is not None and not found:
        raise _unknown(node, known)
    unserved = unserved_of(farm)
    alerts = fleet.alerts(farm.ledger.cases(), held)
    history = fleet.history(farm.ledger.health(name)) if name else []
    if talk.as_json:
        console.document(fleet.document(found, unserved, spools, alerts, history))
        return
    if not found:
        raise NoResult(
            "no node serves this farm", hint="`farm-worker start` on a machine offers its devices"
        )
    console.show(fleet.table(found), *([fleet.history_table(history)] if history else []))
    for line in alerts:
        console.warn(line)
    warn_of(console, unserved, spools)


def _say(farm: "Farm", word: str, kind: str, note: str, *, talk: Talk) -> None:
    """Tell the farm what becomes of a node or device; a note goes into its history."""
    if len(note) > 500 or not (note.isprintable() or not note):
        raise Refused("the note is no line of text", why="at most 500 printable characters")
    held = farm.ledger.holds()
    for target in _targets(farm.ledger.nodes(), held, word, kind):
        farm.ledger.hold(target, kind, note=note)  # type: ignore[arg-type]
        if not talk.as_json:
            talk.console().say(f"{target} {_DONE[kind]}")


def _targets(known: "Sequence[Node]", held: "Sequence[Hold]", word: str, kind: str) -> "list[str]":
    """Return what a word stands for; a node that is away can be named as long as it is held.

    What is cleared of a node are those of its devices that are out, and the node itself.
    """
    name, slash, slot = word.partition("/")
    live = next((each for each in known if each.name == name), None)
    of_node = [each for each in held if each.node == name]
    if live is None and not of_node:
        raise _unknown(word, known)
    if not slash:
        out = [each for each in of_node if each.kind not in ("paused", "cleared")]
        if kind != "cleared":
            return [name]
        return [f"{name}/{each.slot}" if each.slot else name for each in out] or [name]
    slots = [(each.slot, _number(each.classes)) for each in live.slots] if live else []
    names = {*(each for each, _ in slots), *(each.slot for each in of_node if each.slot)}
    found = next((each for each, number in slots if number == slot), slot)
    if found not in names:
        told = ", ".join(f"{each} (number {number})" for each, number in slots)
        raise NoResult(f"no device {slot!r} on node {name!r}", why=f"it has {told}")
    return [f"{name}/{found}"]


def _number(queues: "Sequence[str]") -> str:
    """Return the number of a device on its node, which its own queue ends in."""
    return next((each.rpartition(".")[2] for each in queues if each.startswith("dev.")), "")


def _unknown(node: str, known: "Sequence[Node]") -> NoResult:
    names = [each.name for each in known]
    return NoResult(
        f"no node {node!r} on this farm",
        why=f"it has {', '.join(names)}" if names else "it has none",
        hint=did_you_mean(node, names),
    )
