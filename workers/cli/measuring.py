"""The verbs that measure here, once, without a farm."""

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import click

from farm.errors import Refused
from workers import talk
from workers.cli import options
from workers.cli.places import one, places, station_of

_TRIES = 3


@click.command()
@click.argument("job")
@options.device
@click.option(
    "--effort",
    type=click.Choice(["quick", "standard", "thorough"]),
    default="standard",
    show_default=True,
    help="How long to try.",
)
@click.option("-o", "--output", default="", metavar="FILE", help="Write the profile here.")
@click.option(
    "--fail-on",
    type=click.Choice(["degraded", "never"]),
    default="never",
    show_default=True,
    help="degraded: end with 5 where the profile is not valid.",
)
@click.option("--profile-layers", is_flag=True, help="Append the layer table to a CSV as well.")
@click.option(
    "--profile-output",
    default="profile_layers.csv",
    show_default=True,
    metavar="CSV",
    help="That CSV.",
)
@options.gates_by_hand
@options.wait
@options.name
@options.state
@options.locks
@options.json
def run(
    job: str,
    device: str,
    effort: str,
    output: str,
    fail_on: str,
    profile_layers: bool,
    profile_output: str,
    gates: str,
    wait: str,
    name: str,
    state_dir: str,
    lock_dir: str,
    as_json: bool,
) -> None:
    """Measure one JOB document (a file, or - for stdin) here, without broker or store.

    A layer profiler slows a model down: never use it in production. Its shares count, no total.
    """
    import tempfile

    from farm import schema
    from farm.trace import files
    from farm.writing import write
    from workers import hand

    def say(text: str) -> None:
        if not as_json:
            click.echo(text, err=True)

    manner = options.manner(gates, wait)
    asked = hand.order(_read(job), name=job, effort=effort)
    if output:
        write(Path(output), (), trial=True, makes_folder=False)
    if profile_layers:
        files.check(Path(profile_output))
    state, settings = places(state_dir)
    served = one(state, device=device, name=name, lock_dir=lock_dir)
    store = hand.store_of(settings.store.value)
    station = station_of(state, served, store=store, manner=manner)
    with tempfile.TemporaryDirectory(prefix="farm-run-") as folder:
        work = Path(folder) / "work"
        profile = hand.measure(station, asked, say=say, folder=work)
        data = schema.encode(profile)
        if output:
            write(Path(output), [data, b"\n"], makes_folder=False)
            say(f"profile written to {output}")
        else:
            talk.document(data)
        if isinstance(profile.failure, schema.Failure):
            failure = profile.failure
            say(f"{failure.kind} in phase {failure.phase}: {failure.message}")
        elif profile_layers:  # last: a profile is not lost because it has no layers
            hand.append_layers(work, profile, Path(profile_output))
            say(f"layers appended to {profile_output}; a profiled pass: its shares count alone")
    if code := hand.judge(profile, degraded=fail_on == "degraded"):
        raise click.exceptions.Exit(code)


@click.command()
@click.argument("asked")
@options.name
@options.state
@options.locks
@options.json
def measure(asked: str, name: str, state_dir: str, lock_dir: str, as_json: bool) -> None:
    """Measure what one ASKED document asks for (a file, or - for stdin).

    It is of schema farm.asked/v1, as `farm profile` hands it over.
    """
    from farm import schema
    from workers import hand

    _ = as_json
    wanted = hand.asked(_read(asked), name=asked)
    _hold_lifeline(Path(wanted.folder).parent)
    state, _settings = places(state_dir)
    device = "cpu" if wanted.device.startswith("cuda") else wanted.device
    served = one(state, device=device, name=name, lock_dir=lock_dir)
    station = station_of(state, served, store=None)
    profile = hand.once(station, wanted, say=lambda text: click.echo(text, err=True))
    talk.document(schema.encode(profile))


@click.command()
@options.device
@options.name
@options.state
@options.locks
@options.json
def roofs(device: str, name: str, state_dir: str, lock_dir: str, as_json: bool) -> None:
    """Measure what a device can do at best: matrix products and streams through memory."""
    from farm import schema
    from workers import roofs

    state, _settings = places(state_dir)
    served = one(state, device=device, name=name, lock_dir=lock_dir)
    station = station_of(state, served, store=None)

    def say(text: str) -> None:
        if not as_json:
            click.echo(text, err=True)

    found = roofs.keep(state, roofs.measure(station, say))
    said = list(roofs.lines(found))
    if as_json:
        talk.document(schema.encode(found))
        return
    for line in said:
        click.echo(line)


def _read(job: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if job == "-" else Path(job).read_bytes()
    except OSError as error:
        raise Refused(f"cannot read the job {job!r}", why=error.strerror or "") from error


def _hold_lifeline(scratch: Path) -> None:
    """End with whoever asked, however that ends: the child goes with us, and so does the scratch.

    A child still writes meanwhile, so that the folder may not be empty at the first try.
    """
    fd = os.environ.get("FARM_LIFELINE_FD")
    if fd is None:
        return

    def wait() -> None:
        os.read(int(fd), 1)
        for _ in range(_TRIES):
            shutil.rmtree(scratch, ignore_errors=True)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
