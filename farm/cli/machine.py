"""The verbs that keep a farm: up and down on this machine, a scheduler of its own."""

import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farm.cli import options
from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.errors import NoResult, Refused, Unreachable

if TYPE_CHECKING:
    from farm.background import Up
    from farm.scheduler import Done
    from farm.settings import Settings


@verb(examples=("farm up", "farm up --devices cpu:0", "farm submit sweep.yaml --watch"))
@options.devices
@options.store
@click.option("--foreground", is_flag=True, help="Stay, for a service manager.")
@click.pass_obj
def up(talk: Talk, devices: str, store: str | None, foreground: bool) -> None:
    """Serve this machine's devices in the background.

    Starts a broker, a scheduler and an agent; where a broker is named, that one is used.
    """
    from farm import background

    chosen = talk.settings(store=store)
    state, console = Path(chosen.state.value).absolute(), talk.console()
    where = talk.store(chosen.store.value)
    where.probe()
    if foreground:
        _keep(talk, chosen, devices)
        return
    record, is_new = background.found(state), False
    if record is None:
        words = ["--devices", devices]
        environ = {**os.environ, "FARM_STORE": chosen.store.value, "FARM_STATE": str(state)}
        if chosen.broker.value:
            environ["FARM_BROKER"] = chosen.broker.value
        record, is_new = background.start(words, state=state, environ=environ, say=console.say)
    if not is_new:
        _check_same(record, chosen, devices)
    _tell_up(talk, chosen, record, is_new=is_new)


@verb(examples=("farm down", "farm down --now"))
@click.option("--now", is_flag=True, help="Give jobs in hand back instead of ending them.")
@click.pass_obj
def down(talk: Talk, now: bool) -> None:
    """End what `farm up` started.

    Jobs in hand end first; queued ones go on with the next `farm up`.
    """
    from farm import answers, background, reaching
    from farm.report.words import count

    chosen, console = talk.settings(), talk.console()
    record = background.found(Path(chosen.state.value))
    if record is None:
        ended = background.end_leftover(Path(chosen.state.value))
        raise NoResult(
            f"no farm is up in {chosen.state.value!r}",
            why="a broker that one had left behind is ended" if ended else "",
            hint="`farm up` starts one",
        )
    queued = 0
    with suppress(Unreachable):  # a farm whose broker is gone must end as well
        farm = reaching.find(chosen)
        queued = sum(farm.ledger.ready().values()) if farm else 0
    background.stop(record, now=now, say=console.say)
    if talk.as_json:
        console.document(answers.Down(queued=queued))
        return
    left = f"; {count(queued, 'queued job')} kept for the next `farm up`" if queued else ""
    console.show(f"the farm of {chosen.state.value} is down{left}")


@verb(examples=("FARM_BROKER=redis://broker:6379/0 farm scheduler",))
@options.store
@click.pass_obj
def scheduler(talk: Talk, store: str | None) -> None:
    """Look after submitted runs until stopped.

    What a run lacks at its end is sent again; what was given up is written down. `farm up` has one
    of its own; of several, one leads.
    """
    from farm import broker, reaching
    from farm.compaction import Compaction, starter
    from farm.scheduler import Scheduler

    chosen = talk.settings(store=store)
    where = talk.store(chosen.store.value)
    where.probe()
    farm = reaching.need(chosen)
    takes_in = Compaction(starter(chosen.store.value, os.environ))
    mine = Scheduler(farm.ledger, broker.connect(farm.url), where, compaction=takes_in)
    talk.console().say(f"scheduling for {farm.where}")
    try:
        while True:
            for each in mine.step():
                _tell_done(talk, each)
            time.sleep(1.0)
    finally:
        mine.end()


def _keep(talk: Talk, chosen: "Settings", devices: str) -> None:
    """Be the farm until a signal comes."""
    from farm import background
    from farm.runs import stamp

    background.keep(
        state=Path(chosen.state.value).absolute(),
        store_url=chosen.store.value,
        store=talk.store(chosen.store.value),
        broker_url=chosen.broker.value,
        devices=devices,
        environ=os.environ,
        say=talk.console().say,
        did=lambda each: _tell_done(talk, each),
        at=lambda: stamp(datetime.now(UTC)),
    )


def _check_same(record: "Up", chosen: "Settings", devices: str) -> None:
    """Raise Refused if the farm that is up is not the one that is asked for."""
    from farm.settings import shown
    from farm.store import place

    asked = (
        ("keeps its profiles in", record.store, place(chosen.store.value)),
        ("uses the broker", record.broker or "of its own", shown(chosen.broker.value)),
        ("serves the devices", record.devices, devices if devices != "all" else ""),
    )
    for what, there, wanted in asked:
        if wanted and wanted != there:
            raise Refused(
                f"the farm that is up {what} {there!r}",
                why=f"asked for {wanted!r}",
                hint="`farm down` ends it",
            )


def _tell_up(talk: Talk, chosen: "Settings", record: "Up", *, is_new: bool) -> None:
    from farm import answers

    console = talk.console()
    if talk.as_json:
        console.document(
            answers.Up(
                started=is_new,
                pid=record.pid,
                broker=record.broker,
                store=record.store,
                state=chosen.state.value,
                devices=record.slots,
            )
        )
        return
    console.show(
        f"the farm of {chosen.state.value} {'is' if is_new else 'was'} up: "
        f"{', '.join(record.slots)}; profiles go to {record.store}"
    )
    console.next("farm submit SWEEP --watch")


def _tell_done(talk: Talk, done: "Done") -> None:
    from farm import answers
    from farm.report.words import count

    console = talk.console()
    if talk.as_json:
        console.document(answers.Scheduled(**done._asdict()))
        return
    why = f": {done.why}" if done.why else ""
    console.say(f"{done.run_id}: {done.event}, {count(done.jobs, 'job')}{why}")
