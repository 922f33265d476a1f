"""Measuring here and now: a farm for the length of a command, a run followed, its report."""

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farm.cli.talk import Talk, write_whole
from farm.errors import Bad, NoResult, Stopped, Unreachable

if TYPE_CHECKING:
    from farm.console import Console
    from farm.ledger import Slot
    from farm.local import Here
    from farm.report.record import Report
    from farm.schema import Job, Manifest
    from farm.settings import Settings
    from farm.store import Store
    from farm.submit import Outlook
    from farm.sweep import Plan

Chosen = Callable[["Sequence[Slot]"], "Sequence[Job]"]


def farm(
    chosen: "Settings", devices: str, console: "Console", *, patience_s: float | None
) -> "AbstractContextManager[Here]":
    """Return the farm of this command: embedded broker, this machine's devices."""
    from farm.local import farm_here

    return farm_here(
        state=Path(chosen.state.value),
        store=chosen.store.value,
        devices=devices,
        environ=os.environ,
        say=console.say,
        patience_s=patience_s,
    )


def answered(
    settings: "Settings",
    plan: "Plan",
    store: "Store",
    devices: str,
    looked: Callable[["Sequence[Slot]"], "Outlook"],
) -> "Outlook | None":
    """Return the outlook of a plan if every job of it is measured on this machine already.

    Its slots are asked for only where the store has a profile of each job.
    """
    from farm.catalog import rows
    from farm.local import slots_here

    wanted = {each.job.job_id for each in plan.jobs}
    if {row.profile.job_id for row in rows.read(store, job_ids=wanted).rows} != wanted:
        return None
    outlook = looked(slots_here(Path(settings.state.value), devices))
    return outlook if len(outlook.manifest.reused) == len(plan.jobs) else None


def page(chosen: "Settings", run_id: str, *, output: str | None, wanted: bool) -> Path | None:
    """Return where the page of a run is written, None if nobody wants one."""
    if not wanted:
        return None
    return Path(output or Path(chosen.state.value) / "reports" / f"{run_id}.html")


def follow(
    here: "Here",
    expected: "Manifest",
    jobs: "Sequence[Job]",
    store: "Store",
    *,
    console: "Console",
    ends: float,
) -> None:
    """Measure these jobs of a run; whatever stops it, the message says how to come back.

    ends: when its time is up, on the monotonic clock.
    """
    from farm.following import follow as followed

    timeout_s = None if ends == math.inf else max(0.0, ends - time.monotonic())

    hint = f"`farm resume {expected.run_id}` measures what is missing"
    try:
        with console.progress() as progress:
            followed(here, expected, jobs, store=store, timeout_s=timeout_s, show=progress.update)
    except KeyboardInterrupt as error:
        raise Stopped("interrupted", hint=hint) from error
    except Unreachable as error:
        raise Unreachable(error.what, why=error.why, hint=hint) from error


def measure_again(
    talk: Talk,
    settings: "Settings",
    wanted: "Sequence[tuple[Manifest, Chosen]]",
    *,
    devices: str,
    output: str | None,
    no_report: bool,
    timeout_s: float | None,
) -> None:
    """Measure the chosen jobs of runs that exist, one run after the other, and report each."""
    from farm import planning, queues

    console, where = talk.console(), talk.store(settings.store.value)
    where.probe()
    ends = time.monotonic() + timeout_s if timeout_s is not None else math.inf
    alone, codes = len(wanted) == 1, []
    measured = []
    with farm(settings, devices, console, patience_s=timeout_s) as here:
        for expected, choose in wanted:
            jobs = chosen(choose, here.slots, expected, talk=talk, alone=alone)
            if jobs is None:
                codes.append(Bad.exit_code)
                continue
            served = queues.takeable(jobs, here.slots)
            if jobs or alone:
                for line in planning.owed(expected, jobs, served):
                    console.say(line)
            if jobs and not served:
                codes.append(_nobody(expected, jobs, console=console, alone=alone))
            elif served:
                follow(here, expected, served, where, console=console, ends=ends)
            if served or alone:  # of many runs those that changed
                measured.append(expected)
    for expected in measured:
        path = page(settings, expected.run_id, output=output, wanted=not no_report)
        codes.append(conclude(talk, where, expected, path))
    end(*codes)


def chosen(
    choose: Chosen, slots: "Sequence[Slot]", expected: "Manifest", *, talk: Talk, alone: bool
) -> "Sequence[Job] | None":
    """Return the jobs of a run that are chosen, None where its documents are damaged.

    alone: raises Bad then; of several runs one that is broken must not hold up the others.
    """
    try:
        return choose(slots)
    except Bad as error:
        if alone:
            raise
        talk.console().warn(f"{expected.run_id} is left out: {error}")
        return None


def conclude(talk: Talk, store: "Store", expected: "Manifest", page: Path | None) -> int:
    """Show the report, write its page, and return the exit code that the cells earn."""
    from farm import schema
    from farm.report import html, making, text

    console = talk.console()
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
    return earned(report)


def earned(report: "Report") -> int:
    """Return the exit code of a run: 1 if something failed, 3 if something is missing."""
    from farm.report import record

    if record.bad(report):
        return 1
    return 0 if report.complete else NoResult.exit_code


def end(*codes: int) -> None:
    """End with the worst of the codes: a bad answer before a missing one; go on if all are 0."""
    if worst := next((each for each in (Bad.exit_code, NoResult.exit_code) if each in codes), 0):
        raise click.exceptions.Exit(worst)


def _nobody(expected: "Manifest", jobs: "Sequence[Job]", *, console: "Console", alone: bool) -> int:
    """Say that no device here takes any of the jobs; raise it if it was all that was asked."""
    from farm import queues

    error = NoResult(
        f"no device here takes what is missing in {expected.run_id}",
        why=", ".join(sorted({queues.job_class(each) for each in jobs})),
        hint="resume it on a machine that has one",
    )
    if alone:
        raise error
    console.warn(str(error))
    return error.exit_code
