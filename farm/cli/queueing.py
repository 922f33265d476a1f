"""The verbs that put work into the queue of a running farm, and take it out again."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from farm.cli import completing, here, options
from farm.cli import watch as watching
from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.errors import Bad, NoResult

if TYPE_CHECKING:
    from farm.ledger import Slot
    from farm.reaching import Farm
    from farm.schema import Job, Manifest
    from farm.store import Store
    from farm.submit import Outlook, Priority

ASK_ABOVE: Final = 200  # jobs; so many take hours of a small farm


@verb(
    examples=(
        "farm submit sweep.yaml -t branch=main",
        "farm submit sweep.yaml -S device=node:gpu-03 --priority high --watch",
    )
)
@options.sweeps
@options.sets
@options.tag
@options.effort
@click.option(
    "--priority",
    type=click.Choice(["low", "normal", "high"]),
    default="normal",
    show_default=True,
    help="Which runs go first.",
)
@options.force
@options.store
@options.watch
@options.timeout
@options.yes
@click.pass_obj
def submit(
    talk: Talk,
    sweeps: tuple[str, ...],
    sets: tuple[str, ...],
    marks: tuple[str, ...],
    effort: str | None,
    priority: "Priority",
    force: bool,
    store: str | None,
    watch: bool,
    timeout: str | None,
    yes: bool,
) -> None:
    """Send SWEEP… to the farm and print the run's id.

    What was measured already under the system of a live device is reused, and said.
    """
    from farm import queues, reaching
    from farm import submit as work

    chosen = talk.settings(store=store)
    plan = options.planned(sweeps, sets, talk=talk, effort=effort)
    tags, limit = options.tags(marks), options.duration(timeout)
    farm, where = reaching.need(chosen), talk.store(chosen.store.value)
    where.probe()
    slots = farm.slots()
    outlook = work.outlook(
        plan,
        store=where,
        slots=slots,
        force=force,
        tags=tags,
        now=datetime.now(UTC),
        waits=True,
        priority=priority,
    )
    expected = outlook.manifest
    announce(talk, outlook, force=force)
    _same_store(talk, slots, chosen.store.value)
    answered = {each.job_id for each in expected.reused}
    expects = {each.job_id for each in expected.jobs} - answered
    jobs = [each.job for each in plan.jobs if each.job.job_id in expects]
    if len(jobs) > ASK_ABOVE:
        talk.agree(f"{len(jobs)} jobs to measure", yes=yes, otherwise="nothing was submitted")
    work.publish(plan, expected, where)
    sent = work.enqueue(expected, jobs, farm.ledger)
    farm.ring(farm.ledger.tick().tickets)
    _tell_submitted(talk, expected, sent, unserved=queues.unserved(jobs, slots), quiet=watch)
    if watch:
        here.end(watching.shown(talk, farm, where, expected, timeout_s=limit))


@verb(
    examples=(
        "farm cancel r-7f3a91",
        "farm cancel r-7f3a91 --running",
        "farm cancel r-7f3a91/vit_tiny/fp32/b8/cpu",
    )
)
@click.argument("names", nargs=-1, required=True, metavar="RUN|JOB…", shell_complete=completing.run)
@click.option("--running", is_flag=True, help="Also end what is being measured now.")
@options.store
@options.yes
@click.pass_obj
def cancel(talk: Talk, names: tuple[str, ...], running: bool, store: str | None, yes: bool) -> None:
    """Take the jobs of RUN, or one JOB, out of the queue.

    What runs goes on and counts, unless --running ends it; a job that another run wants goes on
    for that one.
    """
    from farm import reaching

    chosen = talk.settings(store=store)
    where = talk.store(chosen.store.value)
    farm = reaching.need(chosen, passing=True)
    wanted = _meant(farm, where, names)
    records = farm.ledger.records([key for keys in wanted.values() for key in keys])
    states = Counter(each.state for each in records)
    if (running and states["RUNNING"]) or states["READY"] > ASK_ABOVE:
        ends = f" and ends {states['RUNNING']} under way" if running else ""
        talk.agree(
            f"this cancels {states['READY'] + states['BACKOFF']} queued jobs{ends}",
            yes=yes,
            otherwise="nothing was cancelled",
        )
    for run_id, keys in wanted.items():
        _tell_cancelled(talk, run_id, Counter(farm.ledger.cancel(run_id, keys, running=running)))


def announce(talk: Talk, outlook: "Outlook", *, force: bool) -> None:
    """Say what will be measured, what is not and why: nothing is left out silently."""
    from farm import planning

    for line in planning.announcement(outlook, force=force):
        talk.console().say(line)


def send_again(
    talk: Talk,
    farm: "Farm",
    store: "Store",
    wanted: "Sequence[tuple[Manifest, Callable[[Sequence[Slot]], Sequence[Job]]]]",
    *,
    word: str,
    watch: bool,
    timeout_s: float | None,
) -> None:
    """Put the chosen jobs of runs that exist into the queue; word: what they are, for people."""
    from farm import answers, queues
    from farm import submit as work

    slots, console = farm.slots(), talk.console()
    codes: list[int] = []
    for expected, choose in wanted:
        jobs = here.chosen(choose, slots, expected, talk=talk, alone=len(wanted) == 1)
        if jobs is None:
            codes.append(Bad.exit_code)
            continue
        sent = work.enqueue(expected, jobs, farm.ledger)
        unserved = queues.unserved(jobs, slots)
        if talk.as_json:
            console.document(
                answers.Requeued(
                    run_id=expected.run_id,
                    job_ids=[each.job_id for each in jobs],
                    new=sent["new"],
                    shared=sent["shared"],
                    unserved=unserved,
                )
            )
            continue
        flight = f", {sent['shared']} of them in flight already" if sent["shared"] else ""
        console.say(f"{expected.run_id}: {len(jobs)} of {len(expected.jobs)} {word}{flight}")
        for line in queues.unserved_lines(unserved):
            console.warn(line)
    farm.ring(farm.ledger.tick().tickets)
    if watch:
        codes += [
            watching.shown(talk, farm, store, each, timeout_s=timeout_s) for each, _ in wanted
        ]
    here.end(*codes)


def _tell_submitted(
    talk: Talk, expected: "Manifest", sent: dict[str, int], *, unserved: dict[str, int], quiet: bool
) -> None:
    from farm import answers, queues

    console = talk.console()
    for line in queues.unserved_lines(unserved):
        console.warn(line)
    if talk.as_json:
        console.document(
            answers.Submitted(
                run_id=expected.run_id,
                name=expected.name,
                jobs=len(expected.jobs),
                new=sent["new"],
                shared=sent["shared"],
                reused=len(expected.reused),
                skipped=len(expected.skipped),
                unserved=unserved,
            )
        )
        return
    if sent["shared"]:
        console.say(f"{sent['shared']} of them in flight already for another run")
    console.data(f"{expected.run_id}\n")
    if not quiet:
        console.next(f"farm watch {expected.run_id}")


def _same_store(talk: Talk, slots: "Sequence[Slot]", store: str) -> None:
    """Warn if a node keeps its profiles where we will not look for them."""
    from farm.store import place

    ours = place(store)
    others = sorted({each.store for each in slots if each.store} - {ours})
    if others:
        talk.console().warn(
            f"nodes of this farm keep their profiles in {', '.join(others)}, not in {ours}: "
            "what they measure will not be found here"
        )


def _meant(farm: "Farm", store: "Store", names: Sequence[str]) -> dict[str, list[str]]:
    """Return the entries that the words name, by run."""
    from farm.errors import Refused
    from farm.finding import find_job
    from farm.runs import find_run

    meant: dict[str, list[str]] = {}
    for name in names:
        if "/" in name:
            job = find_job(store, name)
            meant.setdefault(job.manifest.run_id, []).append(job.key)
            continue
        try:
            run_id = find_run(store, name).run_id
            meant.setdefault(run_id, []).extend(farm.ledger.keys(run_id))
        except NoResult as error:
            try:
                job = find_job(store, name)
            except (NoResult, Refused):
                raise error from None
            meant.setdefault(job.manifest.run_id, []).append(job.key)
    return {run_id: list(dict.fromkeys(keys)) for run_id, keys in meant.items()}


def _tell_cancelled(talk: Talk, run_id: str, found: "Counter[str]") -> None:
    from farm import answers
    from farm.report.words import count

    ended = found.total() - sum(found[each] for each in ("cancelled", "asked", "running", "shared"))
    console = talk.console()
    if talk.as_json:
        console.document(
            answers.Cancelled(
                run_id=run_id,
                cancelled=found["cancelled"],
                asked=found["asked"],
                running=found["running"],
                shared=found["shared"],
                ended=ended,
            )
        )
        return
    said = [f"cancelled {count(found['cancelled'], 'queued job')} of {run_id}"]
    said += [f"{count(found['asked'], 'running job')} told to end"] if found["asked"] else []
    said += [f"{count(found['running'], 'running job')} left alone"] if found["running"] else []
    said += [f"{found['shared']} left to another run"] if found["shared"] else []
    said += [f"{ended} had ended"] if ended else []
    console.show("; ".join(said))
    if found["running"]:
        console.next(f"farm cancel {run_id} --running")
