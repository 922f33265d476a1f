"""The devices of a farm for a person: where each is, and what it does now."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from farm import answers
from farm.ledger import Case, HealthEvent, Hold, Node, Record, Slot
from farm.report import words
from farm.report.table import Column, Datum, Table, Tone
from farm.runs import stamp


def devices(
    nodes: Sequence[Node], running: Sequence[Record], held: Sequence[Hold], *, of: str | None
) -> list[answers.Device]:
    """Return one row for each device of the live nodes, by node and slot; of: this node's alone."""
    busy = {each.owner.partition("#")[0]: each for each in running}
    found = []
    for node in nodes:
        if of is not None and node.name != of:
            continue
        for slot in sorted(node.slots, key=lambda each: each.slot):
            record = busy.get(f"{node.name}/{slot.slot}")
            state, reason = _state(node, slot, held)
            found.append(
                answers.Device(
                    node=node.name,
                    slot=slot.slot,
                    device=slot.device,
                    state="measuring" if record else state,  # type: ignore[arg-type]
                    job=record.key.partition(".")[0] if record else "",
                    run_id=record.run if record else "",
                    queues=slot.classes,
                    store=slot.store,
                    farm_version=slot.version,
                    silent_s=node.silent_s,
                    reason=reason,
                )
            )
    return found


def _state(node: Node, slot: Slot, held: Sequence[Hold]) -> tuple[str, str]:
    """Return what a device without a job is, and why: of several reasons the one that lasts."""
    ours = {
        each.kind: each.note
        for each in held
        if each.node == node.name and each.slot in ("", slot.slot)
    }
    for kind in ("quarantine", "held", "paused"):
        if kind in ours:
            return kind, ours[kind]
    if slot.trouble:
        return "unfit", slot.trouble
    if "suspect" in ours:
        return "suspect", ours["suspect"]
    if node.spool.is_full:
        return "full", "its spool is full"
    return ("draining" if node.state == "draining" else "idle"), ""


def alerts(cases: Sequence[Case], held: Sequence[Hold]) -> list[str]:
    """Return a line for each class of which more devices broke than may be spared.

    It names what their cases have in common, which is where one should look first.
    """
    kept = {f"{each.node}/{each.slot}" for each in held if each.kind in ("held", "suspect")}
    lines = []
    for name in sorted({each.class_ for each in cases}):
        of_class = [each for each in cases if each.class_ == name]
        still = {f"{each.node}/{each.slot}" for each in of_class} & kept
        if not still:
            continue
        broke = len({(each.node, each.slot) for each in of_class})
        shared = ", ".join(_shared(of_class)) if len(of_class) > 1 else ""
        common = f"; they share {shared}" if shared else ""
        lines.append(
            f"{words.count(broke, 'device')} of {name} broke within a day, more than are taken out "
            f"at once: {', '.join(sorted(still))}{common}"
        )
    return lines


def _shared(cases: Sequence[Case]) -> list[str]:
    """Return what is the same in all cases."""
    found = []
    for name in ("cause", "job", "run", "driver"):
        values = {getattr(each, name) for each in cases}
        value = values.pop()
        if not values and value:
            found.append(f"{name} {value.partition('.')[0][:12] if name == 'job' else value}")
    return found


def history(events: Sequence[HealthEvent]) -> list[answers.HealthChange]:
    """Return the changes of a node's devices, the newest first."""
    return [
        answers.HealthChange(
            at=stamp(datetime.fromtimestamp(each.at_ms / 1000, UTC)),
            node=each.target.partition("/")[0],
            slot=each.target.partition("/")[2],
            kind=each.kind,
            note=each.note,
            by=each.by,  # type: ignore[arg-type]
        )
        for each in events
    ]


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
    found: Sequence[answers.Device],
    unserved: Mapping[str, int],
    waiting: Sequence[answers.Spool],
    alerted: Sequence[str] = (),
    changes: Sequence[answers.HealthChange] = (),
) -> answers.Nodes:
    """Return the devices as one JSON document."""
    return answers.Nodes(
        devices=list(found),
        unserved=dict(unserved),
        spools=list(waiting),
        alerts=list(alerted),
        history=list(changes),
    )


_TONES: Final[Mapping[str, Tone]] = {
    "measuring": "good",
    **dict.fromkeys(("draining", "paused", "suspect", "unfit"), "warn"),
    **dict.fromkeys(("full", "quarantine", "held"), "bad"),
}


def table(found: Sequence[answers.Device]) -> Table:
    """Return the devices for a person; a column says why, where one does not measure."""
    told = any(each.reason for each in found)
    columns = (
        Column("node"),
        Column("slot"),
        Column("device", cut=True),
        Column("state"),
        *([Column("why", cut=True)] if told else []),
        Column("job"),
        Column("queues", cut=True, spare=1),
    )
    rows = tuple(
        (
            Datum(each.node, each.node),
            Datum(each.slot, each.slot),
            Datum(each.device, each.device),
            Datum(each.state, each.state, _TONES.get(each.state, "")),
            *([Datum(each.reason or words.UNKNOWN, each.reason)] if told else []),
            Datum(f"{each.run_id}/{each.job[:8]}" if each.job else words.UNKNOWN, each.job),
            Datum(" ".join(each.queues), len(each.queues)),
        )
        for each in found
    )
    return Table("", columns, rows)


def history_table(found: Sequence[answers.HealthChange]) -> Table:
    """Return the changes of a node's devices for a person."""
    columns = (Column("when"), Column("slot"), Column("became"), Column("by"), Column("note"))
    rows = tuple(
        (
            Datum(each.at, each.at),
            Datum(each.slot or "all", each.slot),
            Datum(each.kind, each.kind, _TONES.get(each.kind, "")),
            Datum(each.by, each.by),
            Datum(each.note or words.UNKNOWN, each.note),
        )
        for each in found
    )
    return Table("what became of them", columns, rows)
