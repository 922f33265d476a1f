"""`farm-worker`: serve this machine's devices, or use one of them once, without a farm.

Documents go to stdout, talk goes to stderr. The verbs import what they need themselves, so that
`farm-worker --help` is quick.
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farm.errors import BUG, INTERRUPTED, FarmError, NoVerdict, Refused

if TYPE_CHECKING:
    from farm.schema import Order, Profile
    from farm.settings import Settings
    from farm.store import Store
    from workers.node import Served
    from workers.station import Station

_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_devices = click.option("--devices", default="all", show_default=True, metavar="SEL")
_device = click.option("--device", default="cpu", show_default=True, metavar="SEL")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_name = click.option("--name", default="", help="Name of this node.", envvar="FARM_NODE_NAME")
_state = click.option("--state-dir", default="", metavar="DIR", help="Where this node keeps state.")
_locks = click.option("--lock-dir", default="", metavar="DIR", help="Where device locks lie.")
_slots = click.option("--cpu-slots", default=1, show_default=True, metavar="N")


@click.group(context_settings=_HELP)
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

    from farm.ledger import TTL_S
    from workers.agent import Agent
    from workers.node import offer

    logging.basicConfig(level=logging.INFO, format="%(asctime)s agent %(levelname)s %(message)s")
    state, settings = _places(state_dir)
    if not settings.broker.value:
        raise Refused("no broker is named", hint="set FARM_BROKER, or `broker` in farm.toml")
    drain_s = _seconds(drain)
    served = offer(
        state, selector=devices, name=name, lock_dir=lock_dir, count=cpu_slots, take=True
    )
    agent = Agent(
        served,
        broker_url=settings.broker.value,
        store=settings.store.value,
        state=state,
        ttl_s=float(os.environ.get("FARM_LEASE_S", TTL_S)),
        drain_s=drain_s,
        lifeline=0 if os.environ.get("FARM_LIFELINE") == "stdin" else None,
    )
    agent.serve()
    if as_json:
        _print({"schema": "farm.drained/v1", "node": served[0].slot.node})


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
    from workers.host import Host
    from workers.station import Station

    _ = as_json  # the profile is JSON anyway
    order = _order(job, effort)
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
        store=_store_of(settings.store.value),
        version=version("profiling-farm"),
        host=Host(),
    )
    profile = _measure(station, order)
    data = schema.encode(profile) + b"\n"
    if output:
        partial = Path(output).with_name(f".{Path(output).name}.tmp")
        partial.write_bytes(data)
        partial.rename(output)
        click.echo(f"profile written to {output}", err=True)
    else:
        sys.stdout.buffer.write(data)
    _judge(profile, fail_on)


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
    sys.stdout.buffer.write(schema.encode(served.card) + b"\n")


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
    served = offer(
        state, selector=devices, name=name, lock_dir=lock_dir, count=cpu_slots, take=False
    )
    if as_json:
        rows = [msgspec.to_builtins(each.slot) for each in served]
        _print({"schema": "farm.devices/v1", "slots": rows})
        return
    for each in served:
        cores = ",".join(map(str, each.device.cpus))
        click.echo(
            f"{each.device.slot}  {each.device.name}  cores {cores}  {each.slot.system_class}"
        )


def main() -> None:
    """Run a verb; every error we know is one message and its own exit code."""
    as_json = "--json" in sys.argv
    try:
        # Click hands the code of its Exit back instead of raising it; a verb returns nothing.
        sys.exit(cli.main(standalone_mode=False) or 0)
    except click.ClickException as error:
        usage = error.ctx.get_usage() if isinstance(error, click.UsageError) and error.ctx else ""
        _complain(Refused(error.format_message(), hint=usage), as_json)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except FarmError as error:
        _complain(error, as_json)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    # Anything else is our bug; the traceback is the report, in the agent's log or on stderr.
    except Exception:
        import logging

        logging.basicConfig()
        logging.getLogger(__name__).exception("a bug in farm-worker")
        sys.exit(BUG)


def _places(state_dir: str) -> tuple[Path, "Settings"]:
    """Return the state folder of this node, and the settings."""
    from farm import settings
    from workers.node import default_state

    found = settings.load({}, env=os.environ, cwd=Path.cwd(), home=Path.home())
    state = Path(state_dir) if state_dir else default_state()
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot make the state folder {str(state)!r}", why=str(error)) from error
    return state.absolute(), found


def _one(state: Path, *, device: str, name: str, lock_dir: str) -> "Served":
    from workers.node import offer

    return offer(state, selector=device, name=name, lock_dir=lock_dir, count=1, take=False)[0]


def _order(job: str, effort: str) -> "Order":
    """Return what to measure: a job, or an order that says its effort itself."""
    from farm.effort import EFFORTS
    from farm.schema import Job, Order, decode

    try:
        data = sys.stdin.buffer.read() if job == "-" else Path(job).read_bytes()
    except OSError as error:
        raise Refused(f"cannot read the job {job!r}", why=error.strerror or "") from error
    try:
        asked = decode(data, Job)
    except FarmError as error:
        raise Refused(f"{job!r} is not a job", why=str(error)) from error
    return Order(job=asked, effort=EFFORTS[effort], repeat_set="base", label="")


def _store_of(url: str) -> "Store | None":
    from farm.store import open_store

    return open_store(url) if Path(url).is_dir() else None


def _measure(station: "Station", order: "Order") -> "Profile":
    import tempfile

    stop_r, stop_w = os.pipe()
    said: list[str] = []

    def show(repeat: int, phase: str, _iterations: int) -> None:
        line = f"repeat {repeat} of {order.effort.repeats}: {phase}"
        if said[-1:] != [line]:
            said.append(line)
            click.echo(line, err=True)

    try:
        with tempfile.TemporaryDirectory(prefix="farm-run-") as folder:
            return station.measure(
                order,
                run_id="by-hand",
                attempt=1,
                fence=0,
                queue_s=None,
                folder=Path(folder),
                stop_fd=stop_r,
                on_progress=show,
            )
    finally:
        os.close(stop_r)
        os.close(stop_w)


def _judge(profile: "Profile", fail_on: str) -> None:
    """End with the exit code that the profile earns; an answer such as `oom` is none of 1."""
    from farm.schema import ANSWERS, Failure, Quality

    failure, quality = profile.failure, profile.quality
    if isinstance(failure, Failure):
        click.echo(f"{failure.kind} in phase {failure.phase}: {failure.message}", err=True)
        if failure.kind not in ANSWERS:
            raise click.exceptions.Exit(1)
    if isinstance(quality, Quality) and fail_on == "degraded" and quality.validity != "valid":
        raise NoVerdict(f"the profile is {quality.validity}", why=", ".join(quality.flags))


def _seconds(word: str) -> float:
    from farm.effort import duration_s

    found = duration_s(word)
    if found is None:
        raise Refused(f"{word!r} is no duration", why="write 90s, 10m or 7d")
    return float(found)


def _print(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")


def _complain(error: FarmError, as_json: bool) -> None:
    """Say an error on stderr, as a line of JSON where JSON was asked for."""
    if as_json:
        document = {
            "schema": "farm.error/v1",
            "code": error.exit_code,
            "what": error.what,
            "why": error.why,
            "hint": error.hint,
        }
        click.echo(json.dumps(document), err=True)
        return
    click.echo(f"error: {error.what}", err=True)
    if error.why:
        click.echo(f"  {error.why}", err=True)
    if error.hint:
        click.echo(f"\nhint: {error.hint}", err=True)
