"""The verbs that look and change nothing: what would be measured, and how runs stand."""

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farm.cli import completing, options
from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.cli.waiting import unserved_of, warn_of
from farm.errors import NoResult, Refused, Unreachable

if TYPE_CHECKING:
    from farm import answers
    from farm.ledger import Record, Slot
    from farm.reaching import Farm
    from farm.settings import Settings
    from farm.store import Store


@verb(examples=("farm plan sweep.yaml", "farm plan sweep.yaml -S batch=1,8 --here --json"))
@options.sweeps
@options.sets
@options.effort
@options.devices
@options.store
@options.limit("jobs")
@options.force
@click.option("--here", is_flag=True, help="Plan for this machine, though a farm runs.")
@click.pass_obj
def plan(
    talk: Talk,
    sweeps: tuple[str, ...],
    sets: tuple[str, ...],
    effort: str | None,
    devices: str,
    store: str | None,
    limit: int,
    force: bool,
    here: bool,
) -> None:
    """Say what SWEEP… would measure, where, and how long it takes.

    On the farm if one is up or named, else on this machine.
    """
    from farm import planning, reaching, submit
    from farm.local import slots_here

    chosen = talk.settings(store=store)
    asked = options.planned(sweeps, sets, talk=talk, effort=effort)
    where = talk.store(chosen.store.value)
    farm = None if here else reaching.find(chosen)
    slots = farm.slots() if farm else _this_machine(slots_here(Path(chosen.state.value), devices))
    outlook = submit.outlook(
        asked,
        store=where,
        slots=slots,
        force=force,
        tags={},
        now=datetime.now(UTC),
        waits=farm is not None,
    )
    jobs = [each.job for each in asked.jobs]
    found = planning.outline(outlook, where, jobs=jobs, slots=slots)
    console = talk.console()
    if talk.as_json:
        console.document(planning.document(found))
        return
    console.show(*planning.blocks(found, limit=limit))
    if not outlook.manifest.jobs:
        raise NoResult("no job of this sweep can be measured here")
    flags = [("-S", each) for each in sets]
    flags += [("--effort", effort)] if effort else []
    flags += [("--devices", devices)] if devices != "all" and farm is None else []
    flags += [("--store", store)] if store else []
    same = [word for flag in flags for word in flag] + ["--force"] * force
    console.next(shlex.join(["farm", "submit" if farm else "run", *sweeps, *same]))


@verb(examples=("farm status", "farm status @last --state failed --state dead"))
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=completing.run)
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only jobs in this state.")
@options.limit("runs or jobs")
@options.store
@click.pass_obj
def status(
    talk: Talk, run_id: str | None, states: tuple[str, ...], limit: int, store: str | None
) -> None:
    """List recent runs, or the jobs of RUN."""
    from farm import fleet

    if states and run_id is None:
        raise Refused("--state filters the jobs of a run", hint="name one: `farm status RUN`")
    chosen = talk.settings(store=store)
    farm = _farm_to_look_at(talk, chosen)
    unserved = unserved_of(farm)
    spools = fleet.spools(farm.ledger.nodes()) if farm else []
    try:
        where = talk.store(chosen.store.value)
        if run_id is None:
            _show_runs(talk, where, farm, limit=limit, unserved=unserved, spools=spools)
        else:
            _show_jobs(talk, where, farm, run_id, states=states, limit=limit, spools=spools)
    finally:  # also where the store is away: then most of all
        if not talk.as_json:
            warn_of(talk.console(), unserved, spools)


def _show_runs(
    talk: Talk,
    where: "Store",
    farm: "Farm | None",
    *,
    limit: int,
    unserved: dict[str, int],
    spools: "Sequence[answers.Spool]",
) -> None:
    from farm import runs, standing

    console = talk.console()
    known = runs.read(where)
    for error in known.damaged.values():
        console.warn(str(error))
    listed = standing.runs(known.runs[:limit], where, live=_live(farm))
    if talk.as_json:
        console.document(standing.runs_document(listed, unserved, spools))
    else:
        console.show(*standing.runs_table(listed))


def _show_jobs(
    talk: Talk,
    where: "Store",
    farm: "Farm | None",
    run_id: str,
    *,
    states: tuple[str, ...],
    limit: int,
    spools: "Sequence[answers.Spool]",
) -> None:
    from farm import runs, standing

    console = talk.console()
    expected = runs.find_run(where, run_id)
    live = farm.ledger.entries(expected.run_id) if farm else []
    jobs = standing.jobs(expected, where, states=states, live=live)
    if talk.as_json:
        console.document(standing.jobs_document(expected, jobs, spools))
    else:
        console.show(*standing.jobs_table(jobs, limit=limit))


def _this_machine(slots: "Sequence[Slot]") -> "Sequence[Slot]":
    """Return the slots under a name that a person knows: a node gets its own when it serves."""
    from msgspec.structs import replace

    return [replace(each, node="this machine") for each in slots]


def _farm_to_look_at(talk: Talk, chosen: "Settings") -> "Farm | None":
    """Return the farm, or None where it is away: the store answers as well."""
    from farm import reaching

    try:
        return reaching.find(chosen, passing=True)
    except Unreachable as error:
        talk.console().warn(f"{error.what}; what follows is what the store knows")
        return None


def _live(farm: "Farm | None") -> "Callable[[str], Sequence[Record]]":
    """Return what tells the entries of a run; of one that has ended nothing need be read."""
    if farm is None:
        return lambda _run: ()
    ledger = farm.ledger

    def records(run_id: str) -> "Sequence[Record]":
        from farm.ledger import ENDS

        counts = ledger.counts(run_id)
        return ledger.entries(run_id) if any(each not in ENDS for each in counts) else ()

    return records
