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
            idle = "full" if node.spool.is_full else idle
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


def spools(nodes: Sequence[Node]) -> list[answers.Spool]:
    """Return what waits for the store, of the nodes where something does."""
    return [
        answers.Spool(
            node=each.name,
            profiles=each.spool.profiles,
            bytes=each.spool.bytes,
            age_s=each.spool.age_s,
            aside=each.spool.aside,
            trouble=each.spool.trouble,
            is_full=each.spool.is_full,
        )
        for each in nodes
        if each.spool.profiles or each.spool.aside
    ]


def spool_lines(found: Sequence[answers.Spool]) -> list[str]:
    """Return the spools for a person: a line for each that is held up or holds something back.

    One that empties as it fills is as it should be.
    """
    lines = []
    for each in found:
        if each.trouble:
            many = words.count(each.profiles, "profile")
            wait = "waits" if each.profiles == 1 else "wait"
            age = words.span(each.age_s)
            lines.append(
                f"{many} {wait} on node {each.node} for the store, the oldest for {age}: "
                f"{each.trouble}"
            )
        if each.is_full:
            lines.append(f"node {each.node} takes no job: its spool is full")
        if each.aside:
            many = words.count(each.aside, "profile")
            lines.append(f"{many} on node {each.node} cannot be stored; its log says why")
    return lines


def held_up(nodes: Sequence[Node]) -> list[str]:
    """Return what keeps profiles from the store, without figures that change all the time."""
    return [
        f"measured profiles wait on node {each.name}: {each.spool.trouble}"
        for each in nodes
        if each.spool.trouble and each.spool.profiles
    ]


def document(
    found: Sequence[answers.Device], unserved: Mapping[str, int], held: Sequence[answers.Spool]
) -> answers.Nodes:
    """Return the devices as one JSON document."""
    return answers.Nodes(devices=list(found), unserved=dict(unserved), spools=list(held))


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
    tones: dict[str, Tone] = {"measuring": "good", "draining": "warn", "full": "bad"}
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
