"""The devices of a farm for a person: where each is, and what it does now."""

from collections.abc import Mapping, Sequence

from farm import answers
from farm.ledger import Node, Record
from farm.report import words
from farm.report.table import Column, Datum, Table, Tone


def devices(
    nodes: Sequence[Node], running: Sequence[Record], *, of: str | None
) -> list[answers.Device]:
    """Return one row for each device of the live nodes, by node and slot; of: this node's alone."""
    busy = {each.owner.partition("#")[0]: each for each in running}
    found = []
    for node in nodes:
        if of is not None and node.name != of:
            continue
        for slot in sorted(node.slots, key=lambda each: each.slot):
            record = busy.get(f"{node.name}/{slot.slot}")
            idle = "draining" if node.state == "draining" else "idle"
            found.append(
                answers.Device(
                    node=node.name,
                    slot=slot.slot,
                    device=slot.device,
                    state="measuring" if record else idle,  # type: ignore[arg-type]
                    job=record.key.partition(".")[0] if record else "",
                    run_id=record.run if record else "",
                    queues=slot.classes,
                    store=slot.store,
                    farm_version=slot.version,
                    silent_s=node.silent_s,
                )
            )
    return found


def document(found: Sequence[answers.Device], unserved: Mapping[str, int]) -> answers.Nodes:
    """Return the devices as one JSON document."""
    return answers.Nodes(devices=list(found), unserved=dict(unserved))


def table(found: Sequence[answers.Device]) -> Table:
    """Return the devices for a person."""
    columns = (
        Column("node"),
        Column("slot"),
        Column("device", cut=True),
        Column("state"),
        Column("job"),
        Column("queues", cut=True, spare=1),
    )
    tones: dict[str, Tone] = {"measuring": "good", "draining": "warn"}
    rows = tuple(
        (
            Datum(each.node, each.node),
            Datum(each.slot, each.slot),
            Datum(each.device, each.device),
            Datum(each.state, each.state, tones.get(each.state, "")),
            Datum(f"{each.run_id}/{each.job[:8]}" if each.job else words.UNKNOWN, each.job),
            Datum(" ".join(each.queues), len(each.queues)),
        )
        for each in found
    )
    return Table("", columns, rows)
