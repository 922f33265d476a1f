"""The verbs that measure: a sweep from its beginning, what a run still lacks, what failed."""

import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farm.cli import completing, here, options, queueing
from farm.cli.group import verb
from farm.cli.talk import Talk, check_place
from farm.errors import Bad, NoResult, Refused

if TYPE_CHECKING:
    from farm.ledger import Slot
    from farm.schema import Manifest
    from farm.settings import Settings
    from farm.store import Store
    from farm.submit import Outlook


@verb(
    examples=(
        "farm run configs/sweeps/quickstart.yaml",
        "farm run sweep.yaml -S batch=8 -S precision=bf16 --effort quick",
    )
)
@options.sweeps
@options.sets
@options.tag
@options.devices
@options.store
@options.effort
@options.force
@options.output
@options.no_report
@options.timeout
@options.yes
@click.pass_obj
def run(
    talk: Talk,
    sweeps: tuple[str, ...],
    sets: tuple[str, ...],
    marks: tuple[str, ...],
    devices: str,
    store: str | None,
    effort: str | None,
    force: bool,
    output: str | None,
    no_report: bool,
    timeout: str | None,
    yes: bool,
) -> None:
    """Measure SWEEP… here and now, and write a report.

    It needs no server: a broker and the workers of this machine start with it and end with it.
    """
    from farm import submit

    chosen = talk.settings(store=store)
    plan = options.planned(sweeps, sets, talk=talk, effort=effort)
    tags, limit = options.tags(marks), options.duration(timeout)
    console, where = talk.console(), talk.store(chosen.store.value)
    where.probe()
    if output and not no_report:
        check_place(Path(output))

    def looked(slots: "Sequence[Slot]") -> "Outlook":
        return submit.outlook(
            plan, store=where, slots=slots, force=force, tags=tags, now=datetime.now(UTC)
        )

    def published(outlook: "Outlook") -> "Manifest":
        if not outlook.manifest.jobs:
            why = "; ".join(dict.fromkeys(each.reason for each in outlook.manifest.skipped))
            raise NoResult("no job of this sweep can be measured here", why=why)
        queueing.announce(talk, outlook, force=force)
        left = len(outlook.manifest.jobs) - len(outlook.manifest.reused)
        if left > queueing.ASK_ABOVE and talk.is_attended:
            talk.agree(f"{left} jobs to measure here", yes=yes, otherwise="nothing was measured")
        submit.publish(plan, outlook.manifest, where)
        return outlook.manifest

    answered = None if force else here.answered(chosen, plan, where, devices, looked)
    if answered is not None:  # nothing is to be measured, so no device is waited for
        expected = published(answered)
    else:
        ends = time.monotonic() + limit if limit is not None else math.inf
        with here.farm(chosen, devices, console, patience_s=limit) as farm:
            expected = published(looked(farm.slots))
            lacking = submit.missing(expected, where, farm.slots)
            here.follow(farm, expected, lacking, where, console=console, ends=ends)
    page = here.page(chosen, expected.run_id, output=output, wanted=not no_report)
    if code := here.conclude(talk, where, expected, page):
        raise click.exceptions.Exit(code)


@verb(examples=("farm resume", "farm resume r-7f3a91 --dry-run", "farm resume @all"))
@click.argument("run_id", metavar="[RUN|@all]", default="@last", shell_complete=completing.run)
@options.devices
@options.store
@options.output
@options.no_report
@click.option("--dry-run", is_flag=True, help="Say what is missing, measure nothing.")
@options.watch
@options.timeout
@click.pass_obj
def resume(
    talk: Talk,
    run_id: str,
    devices: str,
    store: str | None,
    output: str | None,
    no_report: bool,
    dry_run: bool,
    watch: bool,
    timeout: str | None,
) -> None:
    """Measure exactly what RUN still lacks.

    On the farm if one is up or named, else here and now. @all: every run of the store.
    """
    from farm import submit

    chosen = talk.settings(store=store)
    where = talk.store(chosen.store.value)
    wanted = _runs(talk, where, run_id)
    if dry_run:
        _dry(talk, chosen, where, wanted, devices)
        return

    _send_or_measure(
        talk,
        chosen,
        [(each, partial(submit.missing, each, where)) for each in wanted],
        word="missing",
        devices=devices,
        output=output,
        no_report=no_report,
        watch=watch,
        timeout_s=options.duration(timeout),
    )


@verb(examples=("farm retry", "farm retry r-7f3a91 --all"))
@click.argument("run_id", metavar="[RUN]", default="@last", shell_complete=completing.run)
@click.option("--all", "every", is_flag=True, help="Every failed job, whatever its cause.")
@options.devices
@options.store
@options.output
@options.no_report
@options.watch
@options.timeout
@click.pass_obj
def retry(
    talk: Talk,
    run_id: str,
    every: bool,
    devices: str,
    store: str | None,
    output: str | None,
    no_report: bool,
    watch: bool,
    timeout: str | None,
) -> None:
    """Try again what was disturbed in RUN, or failed by a cause that may pass.

    Such as a time-out, a crash, a lost worker; a model that raises, or does not fit, does so again.
    On the farm if one is up or named, else here and now.
    """
    from farm import retrying
    from farm.runs import find_run

    chosen = talk.settings(store=store)
    where = talk.store(chosen.store.value)
    expected = find_run(where, run_id)
    jobs = retrying.worth_it(expected, where, every=every)
    if not jobs:
        raise NoResult(
            f"nothing in {expected.run_id} is worth another try",
            hint=f"`farm resume {expected.run_id}` measures what is missing"
            if every
            else "--all retries every failed job",
        )
    _send_or_measure(
        talk,
        chosen,
        [(expected, lambda _: jobs)],
        word="to retry",
        devices=devices,
        output=output,
        no_report=no_report,
        watch=watch,
        timeout_s=options.duration(timeout),
    )


def _send_or_measure(
    talk: Talk,
    settings: "Settings",
    wanted: "Sequence[tuple[Manifest, here.Chosen]]",
    *,
    word: str,
    devices: str,
    output: str | None,
    no_report: bool,
    watch: bool,
    timeout_s: float | None,
) -> None:
    """Put the chosen jobs of runs that exist into the queue of the farm, or measure them here."""
    from farm import reaching

    if output and not no_report:
        if len(wanted) > 1:
            raise Refused("-o names one page, and every run has its own", hint="leave it out")
        check_place(Path(output))
    farm = reaching.find(settings)
    if farm is not None:
        where = talk.store(settings.store.value)
        queueing.send_again(talk, farm, where, wanted, word=word, watch=watch, timeout_s=timeout_s)
        return
    here.measure_again(
        talk,
        settings,
        wanted,
        devices=devices,
        output=output,
        no_report=no_report,
        timeout_s=timeout_s,
    )


def _runs(talk: Talk, store: "Store", run_id: str) -> "list[Manifest]":
    from farm import runs

    if run_id != "@all":
        return [runs.find_run(store, run_id)]
    known = runs.read(store)
    for error in known.damaged.values():
        talk.console().warn(str(error))
    if not known.runs:
        raise NoResult("no run in this store yet", hint="farm run configs/sweeps/quickstart.yaml")
    return known.runs


def _dry(
    talk: Talk,
    chosen: "Settings",
    store: "Store",
    wanted: "Sequence[Manifest]",
    devices: str,
) -> None:
    """Say what is missing, on the farm if there is one, else on this machine."""
    from farm import answers, reaching, submit
    from farm.local import slots_here
    from farm.sweep import label_text

    farm, console = reaching.find(chosen), talk.console()
    slots = farm.slots() if farm else slots_here(Path(chosen.state.value), devices)
    alone, codes = len(wanted) == 1, []
    for expected in wanted:
        jobs = here.chosen(
            partial(submit.missing, expected, store), slots, expected, talk=talk, alone=alone
        )
        if jobs is None:
            codes.append(Bad.exit_code)
            continue
        lacking = [each.job_id for each in jobs]
        if talk.as_json:
            console.document(answers.Missing(run_id=expected.run_id, job_ids=lacking))
            continue
        labels = {each.job_id: label_text(each.labels) for each in expected.jobs}
        mark = f"{expected.run_id}/" if len(wanted) > 1 else ""
        console.show(*[f"{mark}{labels[each]}" for each in lacking])
        if not lacking:
            console.say(f"nothing is missing in {expected.run_id}")
    here.end(*codes)
