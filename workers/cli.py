"""`farm-worker`: serve this machine's devices, or use one of them once, without a farm.

Documents go to stdout, talk goes to stderr. The verbs import what they need themselves, so that
`farm-worker --help` is quick.
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farm.errors import BUG, INTERRUPTED, FarmError, Refused
from workers import talk

if TYPE_CHECKING:
    from farm.settings import Settings
    from workers.node import Served

_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_devices = click.option("--devices", default="all", show_default=True, metavar="SEL")
_device = click.option("--device", default="cpu", show_default=True, metavar="SEL")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_name = click.option("--name", default="", help="Name of this node.", envvar="FARM_NODE_NAME")
_state = click.option("--state-dir", default="", metavar="DIR", help="Where this node keeps state.")
_locks = click.option("--lock-dir", default="", metavar="DIR", help="Where device locks lie.")
_slots = click.option("--cpu-slots", default=1, show_default=True, metavar="N")


@click.group(cls=talk.Verbs, context_settings=_HELP)
@click.version_option(version("profiling-farm"), "-V", "--version")
def cli() -> None:
    """Measure on this machine: for a farm, or once by hand."""


@cli.command()
@_devices
@_name
@_state
@_locks
@_slots
@click.option("--drain", default="10m", show_default=True, help="Time for running jobs at the end.")
@_json
def start(
    devices: str,
    name: str,
    state_dir: str,
    lock_dir: str,
    cpu_slots: int,
    drain: str,
    as_json: bool,
) -> None:
    """Serve this machine's devices until stopped; SIGTERM lets running jobs end."""
    import logging

    from workers.agent import Agent
    from workers.node import Patience, offer, take

    logging.basicConfig(level=logging.INFO, format="%(asctime)s agent %(levelname)s %(message)s")
    logging.getLogger(__name__).info("starting")
    state, settings = _places(state_dir)
    if not settings.broker.value:
        raise Refused("no broker is named", hint="set FARM_BROKER, or `broker` in farm.toml")
    drain_s, ttl_s = _seconds(drain), _lease_s(os.environ.get("FARM_LEASE_S", ""))
    _check_store(settings.store.value)
    lifeline = 0 if os.environ.get("FARM_LIFELINE") == "stdin" else None
    served = take(
        offer(state, selector=devices, name=name, lock_dir=lock_dir, count=cpu_slots),
        wait=Patience(lifeline),
    )
    agent = Agent(
        served,
        broker_url=settings.broker.value,
        store=settings.store.value,
        state=state,
        spool=Path(os.environ.get("FARM_SPOOL") or state / "spool").absolute(),
        ttl_s=ttl_s,
        drain_s=drain_s,
        lifeline=lifeline,
    )
    agent.serve()
    if as_json:
        drained = {"schema": "farm.drained/v1", "node": served[0].slot.node}
        talk.document(json.dumps(drained).encode())


@cli.command()
@click.argument("job")
@_device
@click.option("--effort", type=click.Choice(["quick", "standard", "thorough"]), default="standard")
@click.option("-o", "--output", default="", metavar="FILE", help="Write the profile here.")
@click.option("--fail-on", type=click.Choice(["degraded", "never"]), default="never")
@_name
@_state
@_locks
@_json
def run(
    job: str,
    device: str,
    effort: str,
    output: str,
    fail_on: str,
    name: str,
    state_dir: str,
    lock_dir: str,
    as_json: bool,
) -> None:
    """Measure one JOB document (a file, or - for stdin) here, without broker or store."""
    from farm import schema
    from farm.writing import write
    from workers import hand
    from workers.host import Host
    from workers.station import Station

    def say(text: str) -> None:
        if not as_json:
            click.echo(text, err=True)

    asked = hand.order(_read(job), name=job, effort=effort)
    if output:
        write(Path(output), (), trial=True, makes_folder=False)
    state, settings = _places(state_dir)
    served = _one(state, device=device, name=name, lock_dir=lock_dir)
    station = Station(
        node=served.slot.node,
        worker=f"{served.slot.node}/{served.device.slot}#hand",
        device=served.device,
        card=served.card,
        environment=served.environment,
        flags=served.flags,
        cache=state / "cache",
        lock_dir=served.lock_dir,
        store=hand.store_of(settings.store.value),
        version=version("profiling-farm"),
        host=Host(),
    )
    profile = hand.measure(station, asked, say=say)
    data = schema.encode(profile)
    if output:
        write(Path(output), [data, b"\n"], makes_folder=False)
        say(f"profile written to {output}")
    else:
        talk.document(data)
    if isinstance(profile.failure, schema.Failure):
        failure = profile.failure
        say(f"{failure.kind} in phase {failure.phase}: {failure.message}")
    if code := hand.judge(profile, degraded=fail_on == "degraded"):
        raise click.exceptions.Exit(code)


@cli.command()
@_device
@_name
@_state
@_locks
@_json
def card(device: str, name: str, state_dir: str, lock_dir: str, as_json: bool) -> None:
    """Print the system card of a device: what its numbers depend on, nothing private."""
    from farm import schema

    _ = as_json
    state, _settings = _places(state_dir)
    served = _one(state, device=device, name=name, lock_dir=lock_dir)
    talk.document(schema.encode(served.card))


@cli.command()
@_devices
@_name
@_state
@_locks
@_slots
@_json
def devices(
    devices: str, name: str, state_dir: str, lock_dir: str, cpu_slots: int, as_json: bool
) -> None:
    """List the slots of this machine, the cores each leases, and what it takes."""
    import msgspec

    from workers.node import offer

    state, _settings = _places(state_dir)
    served = offer(state, selector=devices, name=name, lock_dir=lock_dir, count=cpu_slots)
    if as_json:
        rows = [msgspec.to_builtins(each.slot) for each in served]
        talk.document(json.dumps({"schema": "farm.devices/v1", "slots": rows}).encode())
        return
    for each in served:
        cores = ",".join(map(str, each.device.cpus))
        click.echo(
            f"{each.device.slot}  {each.device.name}  cores {cores}  {each.slot.system_class}"
        )


def main(words: list[str] | None = None) -> None:
    """Run a verb; every error we know is one message and its own exit code.

    words: in place of those of the process.
    """
    as_json = "--json" in (sys.argv[1:] if words is None else words)
    try:
        # Click hands the code of its Exit back instead of raising it; a verb returns nothing.
        sys.exit(cli.main(words, prog_name="farm-worker", standalone_mode=False) or 0)
    except click.ClickException as error:
        talk.complain(talk.refused(error), as_json, usage=talk.usage(error))
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except FarmError as error:
        talk.complain(error, as_json)
        sys.exit(error.exit_code)
    # Anything else is our bug; the traceback is the report, in the agent's log or on stderr.
    except Exception as error:
        import logging

        logging.basicConfig()
        logging.getLogger(__name__).exception("a bug in farm-worker")
        talk.complain(FarmError(f"this is a bug in farm-worker: {type(error).__name__}"), as_json)
        sys.exit(BUG)


def _check_store(url: str) -> None:
    """Raise a StoreError unless this store takes what a worker measures.

    One who cannot store refuses to serve: a 403 after an hour of measuring comes too late.
    """
    import hashlib

    from farm.store import blob_key, open_store

    store = open_store(url)
    store.probe()
    if "://" in url:  # a folder has one owner; a bucket may have roles
        data = b"a worker was here\n"
        key = blob_key("probe", hashlib.sha256(data).hexdigest(), "txt")
        store.put_new(key, data, media_type="text/plain")


def _places(state_dir: str) -> tuple[Path, "Settings"]:
    """Return the state folder of this node, and the settings."""
    from farm import settings
    from workers.node import default_state

    try:
        found = settings.load({}, env=os.environ, cwd=Path.cwd(), home=Path.home())
    except FileNotFoundError as error:
        raise Refused("the current folder is gone", hint="cd to another one") from error
    state = Path(state_dir) if state_dir else default_state()
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot make the state folder {str(state)!r}", why=str(error)) from error
    return state.absolute(), found


def _one(state: Path, *, device: str, name: str, lock_dir: str) -> "Served":
    from workers.node import offer

    return offer(state, selector=device, name=name, lock_dir=lock_dir, count=1)[0]


def _read(job: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if job == "-" else Path(job).read_bytes()
    except OSError as error:
        raise Refused(f"cannot read the job {job!r}", why=error.strerror or "") from error


def _seconds(word: str) -> float:
    from farm.effort import duration_s

    found = duration_s(word)
    if found is None:
        raise Refused(f"{word!r} is no duration", why="write 90s, 10m or 7d")
    return float(found)


def _lease_s(word: str) -> float:
    """Return the lease time that FARM_LEASE_S asks for, or the usual one."""
    from farm.ledger import TTL_S

    try:
        found = float(word or TTL_S)
    except ValueError as error:
        raise Refused(f"FARM_LEASE_S: {word!r} is no number of seconds") from error
    if not 0.5 <= found <= 3600:
        raise Refused(f"FARM_LEASE_S: {word!r} is out of range", why="0.5 to 3600 seconds")
    return found
