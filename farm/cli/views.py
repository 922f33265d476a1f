"""The verbs that look at runs and measure nothing: what would be measured, how a run stands."""

import shlex
from datetime import UTC, datetime
from pathlib import Path

import click

from farm.cli import options
from farm.cli.talk import Talk
from farm.errors import NoResult, Refused


@click.command()
@options.sweeps
@options.sets
@options.effort
@options.devices
@options.store
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="Show so many jobs."
)
@options.force
@click.option("--here", is_flag=True, default=True, help="Plan for this machine.")
@options.json
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
    as_json: bool,
) -> None:
    """Say what SWEEP… would measure here, what is measured already, and how long it may take."""
    from farm import planning, submit
    from farm.local import slots_here

    _ = here  # there is only this machine to plan for in this version
    talk = talk.with_json(as_json)
    chosen = talk.settings(store=store)
    asked = options.planned(sweeps, sets, talk=talk, effort=effort)
    where = talk.store(chosen.store.value)
    outlook = submit.outlook(
        asked,
        store=where,
        slots=slots_here(Path(chosen.state.value), devices),
        force=force,
        tags={},
        now=datetime.now(UTC),
    )
    found = planning.outline(outlook, where)
    console = talk.console()
    if as_json:
        console.document(planning.document(found))
        return
    console.show(*planning.blocks(found, limit=limit))
    if not outlook.manifest.jobs:
        raise NoResult("no job of this sweep can be measured here")
    flags = [("-S", each) for each in sets]
    flags += [("--effort", effort)] if effort else []
    flags += [("--devices", devices)] if devices != "all" else []
    flags += [("--store", store)] if store else []
    same = [word for flag in flags for word in flag] + ["--force"] * force
    console.next(shlex.join(["farm", "run", *sweeps, *same]))


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only jobs in this state.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Show so many runs or jobs.",
)
@options.store
@options.json
@click.pass_obj
def status(
    talk: Talk,
    run_id: str | None,
    states: tuple[str, ...],
    limit: int,
    store: str | None,
    as_json: bool,
) -> None:
    """List recent runs, or the jobs of one, as the store knows them."""
    from farm import runs, standing

    talk = talk.with_json(as_json)
    chosen = talk.settings(store=store)
    where, console = talk.store(chosen.store.value), talk.console()
    if run_id is None:
        if states:
            raise Refused("--state filters the jobs of a run", hint="name one: `farm status RUN`")
        found = standing.runs(where, limit=limit)
        document, table = standing.runs_document(found), standing.runs_table(found)
    else:
        expected = runs.find_run(where, run_id)
        jobs = standing.jobs(expected, where, states=states)
        document = standing.jobs_document(expected, jobs)
        table = standing.jobs_table(jobs, limit=limit)
    console.document(document) if as_json else console.show(*table)
