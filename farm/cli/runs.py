"""The verbs that measure: a sweep from its beginning, or what a run still lacks."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farm.cli import options
from farm.cli.talk import Talk, check_place, write_whole
from farm.errors import NoResult, Stopped, Unreachable

if TYPE_CHECKING:
    from farm.console import Console
    from farm.schema import Manifest
    from farm.store import Store
    from farm.submit import Outlook


@click.command()
@options.sweeps
@options.sets
@click.option("-t", "--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Mark the run.")
@options.devices
@options.store
@options.effort
@options.force
@click.option("-o", "--output", metavar="FILE", help="The page.  [.farm/reports/RUN.html]")
@click.option("--no-report", is_flag=True, help="Write no page.")
@options.timeout
@options.json
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
    plan = options.planned(sweeps, sets, talk=talk, effort=effort)
    marks = options.tags(tags)
    limit = options.duration(timeout)
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
@options.devices
@options.store
@click.option("-o", "--output", metavar="FILE", help="The page.  [.farm/reports/RUN.html]")
@click.option("--no-report", is_flag=True, help="Write no page.")
@click.option("--dry-run", is_flag=True, help="Say what is missing, measure nothing.")
@options.timeout
@options.json
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
    from farm import planning, runs, submit

    talk = talk.with_json(as_json)
    chosen = talk.settings(store=store)
    console, where = talk.console(), talk.store(chosen.store.value)
    limit = options.duration(timeout)
    expected = runs.find_run(where, run_id)
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
    from farm.following import follow

    try:
        with console.progress() as progress:
            follow(here, expected, store=store, timeout_s=timeout_s, show=progress.update)
    except KeyboardInterrupt as error:
        hint = f"`farm resume {expected.run_id}` measures what is missing"
        raise Stopped("interrupted", hint=hint) from error
    except Unreachable as error:
        hint = f"`farm resume {expected.run_id}` measures what is missing"
        raise Unreachable(error.what, why=error.why, hint=hint) from error


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
