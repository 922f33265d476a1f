"""The verbs that measure, and those that say how a run stands."""

import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farm.cli.talk import Talk, check_place, current_folder, write_whole
from farm.errors import NoResult, Refused, Stopped

if TYPE_CHECKING:
    from farm.console import Console
    from farm.schema import Manifest
    from farm.store import Store
    from farm.submit import Outlook
    from farm.sweep import Plan

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_set = click.option(
    "-S", "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Override part of a sweep."
)
_effort = click.option("--effort", type=click.Choice(["quick", "standard", "thorough"]))
_devices = click.option("--devices", default="all", show_default=True, metavar="SEL")
_store = click.option("--store", metavar="DIR", help="Where profiles are kept.  [.farm/store]")
_timeout = click.option("--timeout", metavar="D", help="Give up waiting after 90s, 10m, …")
_force = click.option("--force", is_flag=True, help="Measure again what has a profile.")
_sweeps = click.argument("sweeps", nargs=-1, required=True, metavar="SWEEP…")


@click.command()
@_sweeps
@_set
@click.option("-t", "--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Mark the run.")
@_devices
@_store
@_effort
@_force
@click.option("-o", "--output", metavar="FILE", help="The page.  [.farm/reports/RUN.html]")
@click.option("--no-report", is_flag=True, help="Write no page.")
@_timeout
@_json
@click.pass_obj
def run(
    talk: Talk,
    sweeps: tuple[str, ...],
    sets: tuple[str, ...],
    tags: tuple[str, ...],
    devices: str,
    store: str | None,
    effort: str | None,
    force: bool,
    output: str | None,
    no_report: bool,
    timeout: str | None,
    as_json: bool,
) -> None:
    """Measure SWEEP… here and now, with this machine's devices, and write a report."""
    from farm import submit

    talk = talk.with_json(as_json)
    chosen = talk.settings(store=store)
    plan = _planned(sweeps, sets, talk=talk, effort=effort)
    marks = _tags(tags)
    limit = _duration(timeout)
    console, where = talk.console(), talk.store(chosen.store.value)
    where.probe()
    state = Path(chosen.state.value)
    if output and not no_report:
        check_place(Path(output))
    with _farm(state, chosen.store.value, devices, console) as here:
        outlook = submit.outlook(
            plan, store=where, slots=here.slots, force=force, tags=marks, now=datetime.now(UTC)
        )
        expected = outlook.manifest
        if not expected.jobs:
            why = "; ".join(dict.fromkeys(each.reason for each in expected.skipped))
            raise NoResult("no job of this sweep can be measured here", why=why)
        _announce(console, outlook, force=force)
        submit.publish(plan, expected, where)
        _follow(here, expected, where, console=console, timeout_s=limit)
    page = None if no_report else Path(output or state / "reports" / f"{expected.run_id}.html")
    _conclude(talk, console, where, expected, page=page)


@click.command()
@click.argument("run_id", metavar="RUN")
@_devices
@_store
@click.option("-o", "--output", metavar="FILE", help="The page.  [.farm/reports/RUN.html]")
@click.option("--no-report", is_flag=True, help="Write no page.")
@click.option("--dry-run", is_flag=True, help="Say what is missing, measure nothing.")
@_timeout
@_json
@click.pass_obj
def resume(
    talk: Talk,
    run_id: str,
    devices: str,
    store: str | None,
    output: str | None,
    no_report: bool,
    dry_run: bool,
    timeout: str | None,
    as_json: bool,
) -> None:
    """Measure exactly what RUN expects and the store lacks."""
    from farm import planning, submit

    talk = talk.with_json(as_json)
    chosen = talk.settings(store=store)
    console, where = talk.console(), talk.store(chosen.store.value)
    limit = _duration(timeout)
    expected = submit.find_run(where, run_id)
    state = Path(chosen.state.value)
    if output and not no_report:
        check_place(Path(output))
    if dry_run:
        from farm.local import slots_here

        lacking = submit.missing(expected, where, slots_here(state, devices))
        _dry(talk, console, expected, [each.job_id for each in lacking])
        return
    where.probe()
    with _farm(state, chosen.store.value, devices, console) as here:
        lacking = submit.missing(expected, where, here.slots)
        served = submit.takeable(lacking, here.slots)
        for line in planning.owed(expected, lacking, served):
            console.say(line)
        if served:
            _follow(here, expected, where, console=console, timeout_s=limit)
        elif lacking:
            raise NoResult(
                f"no device here takes what is missing in {expected.run_id}",
                why=", ".join(sorted({submit.job_class(each) for each in lacking})),
                hint="resume it on a machine that has one",
            )
    page = None if no_report else Path(output or state / "reports" / f"{expected.run_id}.html")
    _conclude(talk, console, where, expected, page=page)


@click.command()
@_sweeps
@_set
@_effort
@_devices
@_store
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="Show so many jobs."
)
@_force
@click.option("--here", is_flag=True, default=True, help="Plan for this machine.")
@_json
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
    asked = _planned(sweeps, sets, talk=talk, effort=effort)
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
@_store
@_json
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
    from farm import standing, submit

    talk = talk.with_json(as_json)
    chosen = talk.settings(store=store)
    where, console = talk.store(chosen.store.value), talk.console()
    if run_id is None:
        if states:
            raise Refused("--state filters the jobs of a run", hint="name one: `farm status RUN`")
        found = standing.runs(where, limit=limit)
        document, table = standing.runs_document(found), standing.runs_table(found)
    else:
        expected = submit.find_run(where, run_id)
        jobs = standing.jobs(expected, where, states=states)
        document = standing.jobs_document(expected, jobs)
        table = standing.jobs_table(jobs, limit=limit)
    console.document(document) if as_json else console.show(*table)


def _planned(
    sweeps: Sequence[str], sets: Sequence[str], *, talk: Talk, effort: str | None
) -> "Plan":
    """Return the plan; a flag beats what the sweep says, and that beats the settings."""
    from farm.sweep import expand, load

    said = [*sets, f"measure.effort={effort}"] if effort else list(sets)
    return expand(
        load(list(sweeps), said, root=current_folder()), effort=talk.settings().effort.value
    )


def _farm(state: Path, store: str, devices: str, console: "Console") -> Any:
    from farm.local import farm_here

    return farm_here(state=state, store=store, devices=devices, environ=os.environ, say=console.say)


def _announce(console: "Console", outlook: "Outlook", *, force: bool) -> None:
    """Say what will be measured, what is not and why: nothing is left out silently."""
    from farm import planning

    for line in planning.announcement(outlook, force=force):
        console.say(line)


def _follow(
    here: Any, expected: "Manifest", store: "Store", *, console: "Console", timeout_s: float | None
) -> None:
    from farm.local import follow

    try:
        with console.progress() as progress:
            follow(here, expected, store=store, timeout_s=timeout_s, show=progress.update)
    except KeyboardInterrupt as error:
        hint = f"`farm resume {expected.run_id}` measures what is missing"
        raise Stopped("interrupted", hint=hint) from error


def _conclude(
    talk: Talk, console: "Console", store: "Store", expected: "Manifest", *, page: Path | None
) -> None:
    """Show the report, write its page, and end with the code that the cells earn."""
    from farm import schema
    from farm.report import html, making, record, text

    report = making.made(store, expected, now=datetime.now(UTC))
    if page is not None:
        write_whole(page, html.page(report))
    if talk.as_json:
        console.document(schema.encode(report))
    else:
        console.show(*text.blocks(report))
    if page is not None and not talk.as_json:
        console.say(f"report: {page}")
        console.next(f"farm profiles show {expected.run_id}/LABEL")
        console.data(f"{page}\n")
    if record.bad(report):
        raise click.exceptions.Exit(1)
    if not report.complete:
        raise click.exceptions.Exit(NoResult.exit_code)


def _dry(talk: Talk, console: "Console", expected: "Manifest", missing: list[str]) -> None:
    from farm.sweep import label_text

    if talk.as_json:
        found = {"schema": "farm.missing/v1", "run_id": expected.run_id, "job_ids": missing}
        console.document(found)
        return
    labels = {each.job_id: label_text(each.labels) for each in expected.jobs}
    if missing:
        console.show(*[labels[each] for each in missing])
    else:
        console.say(f"nothing is missing in {expected.run_id}")


def _tags(words: Sequence[str]) -> dict[str, str]:
    found = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not (key and sign):
            raise Refused(f"tag {word!r} is not KEY=VALUE", hint="for example -t driver=new")
        found[key] = value
    return found


def _duration(word: str | None) -> float | None:
    from farm.effort import duration_s

    if word is None:
        return None
    seconds = duration_s(word)
    if seconds is None:
        raise Refused(f"--timeout {word!r} is no duration", why="write 90s, 10m or 7d")
    return float(seconds)
