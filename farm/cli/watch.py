"""The verbs that look on: a run as it goes, and what a job prints."""

import math
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from farm.cli import completing, here, options
from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.errors import NoResult, Refused, Stopped

if TYPE_CHECKING:
    from farm.console import RunState
    from farm.finding import Named
    from farm.reaching import Farm
    from farm.schema import Manifest
    from farm.store import Store
    from farm.watching import Watch

LOOK_S: Final = 2.0
_FIRST_LINES_S: Final = 3.0  # a running job answers within a beat of its slot worker
_ASK_S: Final = 5.0
_NO_SCHEDULER_S: Final = 10.0
_CLOSING_S: Final = 60.0  # a scheduler that cannot read the run never closes it


@verb(examples=("farm watch", "farm watch r-7f3a91 --timeout 30m", "farm watch --json | jq ."))
@click.argument("run_id", metavar="[RUN]", default="@last", shell_complete=completing.run)
@click.option(
    "-i",
    "--interval",
    type=click.FloatRange(0.2, 3600),
    default=LOOK_S,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--compact", is_flag=True, help="One line, no jobs.")
@options.store
@options.timeout
@click.pass_obj
def watch(
    talk: Talk,
    run_id: str,
    interval: float,
    compact: bool,
    store: str | None,
    timeout: str | None,
) -> None:
    """Show how RUN goes until it ends.

    It ends with the exit code that the run earns; leaving stops nothing. With --json a line for
    each job that moves.
    """
    from farm import reaching
    from farm.runs import find_run

    if math.isnan(interval):
        raise Refused("--interval nan is no number of seconds")
    chosen = talk.settings(store=store)
    where, limit = talk.store(chosen.store.value), options.duration(timeout)
    expected = find_run(where, run_id)
    farm = reaching.find(chosen, passing=True)
    here.end(
        shown(talk, farm, where, expected, timeout_s=limit, interval_s=interval, compact=compact)
    )


def shown(
    talk: Talk,
    farm: "Farm | None",
    store: "Store",
    expected: "Manifest",
    *,
    timeout_s: float | None,
    interval_s: float = LOOK_S,
    compact: bool = False,
) -> int:
    """Show a run until it ends and return the exit code that it earns; farm: None if none runs."""
    from dataclasses import replace

    from farm.following import look_on
    from farm.runs import moment
    from farm.watching import Watch

    console = talk.console()
    if farm is not None:
        age_s = (datetime.now(UTC) - moment(expected.submitted_at)).total_seconds()
        began = time.monotonic() - max(0.0, age_s)
        view = Watch(expected, ledger=farm.ledger, store=store, began=began)
        is_over = view.is_ended and expected.run_id not in farm.ledger.open_runs()
        if view.is_known and not is_over:
            try:
                with console.progress() as progress:

                    def show(state: "RunState") -> None:
                        progress.update(replace(state, lines=()) if compact else state)

                    look_on(
                        view,
                        is_closed=_closing(farm, expected),
                        slots=len(farm.slots()),
                        interval_s=interval_s,
                        timeout_s=timeout_s,
                        show=show,
                        changed=_lines(talk, view, expected) if talk.as_json else _ignore,
                    )
            except KeyboardInterrupt as error:
                hint = f"it goes on; `farm watch {expected.run_id}` comes back to it"
                raise Stopped("stopped watching", hint=hint) from error
    return _ended(talk, store, expected)


def _ended(talk: Talk, store: "Store", expected: "Manifest") -> int:
    from farm import answers
    from farm.report import making, record, words
    from farm.runs import stamp

    report = making.made(store, expected, now=datetime.now(UTC))
    code = here.earned(report)
    console = talk.console()
    if talk.as_json:
        console.document(
            answers.Watched(
                event="finished",
                run_id=expected.run_id,
                at=stamp(datetime.now(UTC)),
                counts=report.counts,
                exit_code=code,
            )
        )
        return code
    counts = " · ".join(f"{each.number} {each.text}" for each in record.tally(report))
    console.show(f"{words.visible(expected.name)}  {expected.run_id}   ended: {counts}")
    missing = report.counts.get("missing", 0)
    console.next(f"farm {'resume' if missing else 'report'} {expected.run_id}")
    return code


def _closing(farm: "Farm", expected: "Manifest") -> Callable[[], bool]:
    """Return what tells whether nobody will send jobs of this run again.

    A scheduler closes a run that ended. Where none leads, nobody does; one that is started again
    gets some time to come back.
    """
    ledger = farm.ledger
    led = time.monotonic() if ledger.leader("scheduler") else -math.inf
    ended = math.inf

    def is_closed() -> bool:
        nonlocal led, ended
        if expected.run_id not in ledger.open_runs():
            return True
        now = time.monotonic()
        ended = min(ended, now)
        led = now if ledger.leader("scheduler") else led
        return now - led > _NO_SCHEDULER_S or now - ended > _CLOSING_S

    return is_closed


def _ignore(_keys: list[str]) -> None:
    return


def _lines(talk: Talk, view: "Watch", expected: "Manifest") -> Callable[[list[str]], None]:
    """Return what prints a line of JSON for each job that moved, and one with the counts."""
    from farm import answers
    from farm.runs import stamp

    console = talk.console()

    def tell(keys: list[str]) -> None:
        at, counts = stamp(datetime.now(UTC)), view.counts()
        for key in dict.fromkeys(keys):
            moved = view.moved(key)
            console.document(
                answers.Watched(
                    event="job",
                    run_id=expected.run_id,
                    at=at,
                    counts=counts,
                    job_id=moved.job_id,
                    label=moved.label,
                    state=moved.line.state,
                    node=moved.line.node,
                    device=moved.line.device,
                    p50_ms=moved.line.p50_ms,
                    note=moved.line.note,
                )
            )
        if not keys:
            console.document(
                answers.Watched(event="counts", run_id=expected.run_id, at=at, counts=counts)
            )

    return tell


# ── what a job prints ────────────────────────────────────────────────────────────────────────────


@verb(examples=("farm logs r-7f3a91/vit_tiny/fp32/b8/cpu", "farm logs 75c5113d -f"))
@click.argument("job", shell_complete=completing.profile)
@click.option("-f", "--follow", is_flag=True, help="Stay until the job ends.")
@click.option(
    "--tail", type=click.IntRange(1), default=200, show_default=True, help="So many last lines."
)
@options.store
@click.pass_obj
def logs(talk: Talk, job: str, follow: bool, tail: int, store: str | None) -> None:
    """Show what JOB printed, or prints now.

    JOB is RUN/LABEL, or the id of a job or its beginning.
    """
    from farm import answers, reaching
    from farm.finding import find_job

    chosen = talk.settings(store=store)
    where, console = talk.store(chosen.store.value), talk.console()
    named = find_job(where, job)
    farm = reaching.find(chosen, passing=True)
    count = 0
    for line in _printed(farm, where, named, follow=follow, tail=tail, say=console.say):
        count += 1
        if talk.as_json:
            console.document(answers.LogLine(job_id=named.job_id, line=line))
        else:
            console.data(f"{line}\n")
    if not count:
        console.say(f"{named.label} printed nothing")


def _printed(
    farm: "Farm | None",
    store: "Store",
    named: "Named",
    *,
    follow: bool,
    tail: int,
    say: Callable[[str], None],
) -> Iterator[str]:
    """Yield the lines of a job: of the attempt under way if there is one, else of its profile."""
    state = _state(farm, named)
    if follow and farm is not None and state in ("READY", "BACKOFF"):
        say(f"{named.label} waits for a device")
        while (state := _state(farm, named)) in ("READY", "BACKOFF"):
            time.sleep(0.5)
    if farm is not None and state == "RUNNING":
        yield from _live(farm, named, follow=follow, tail=tail)
        return
    if state in ("READY", "BACKOFF"):
        raise NoResult(f"{named.label} is queued", hint="`farm logs … -f` waits for it")
    yield from _stored(store, named)[-tail:]


def _state(farm: "Farm | None", named: "Named") -> str:
    found = farm.ledger.records([named.key]) if farm is not None else []
    return found[0].state if found else ""


def _live(farm: "Farm", named: "Named", *, follow: bool, tail: int) -> Iterator[str]:
    """Yield what a running job prints; without `follow` what it has printed so far."""
    ledger = farm.ledger
    after, asked, began, first = "0-0", 0.0, time.monotonic(), True
    while True:
        now = time.monotonic()
        running = _state(farm, named) == "RUNNING"
        if running and now - asked > _ASK_S:
            asked = now
            ledger.ask_log(named.key)
        found = ledger.log(named.key, after=after, block_s=0.5)
        lines = [line for _, line in found]
        yield from lines[-tail:] if first else lines
        first = first and not lines
        after = found[-1][0] if found else after
        if not found and (not running or (not follow and (not first or _late(began)))):
            return


def _late(began: float) -> bool:
    return time.monotonic() - began > _FIRST_LINES_S


def _stored(store: "Store", named: "Named") -> list[str]:
    from farm import profiles as shelf

    row = shelf.find(store, f"{named.manifest.run_id}/{named.label}")
    lines = shelf.value(store, row, "log").text.splitlines()
    # Each process has a heading, also one that printed nothing.
    return lines if any(each and not each.startswith("── ") for each in lines) else []
