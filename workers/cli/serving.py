"""The verbs of a node: serve its devices, list them, print their cards."""

import json
import os
from pathlib import Path

import click

from farm.errors import Refused
from workers import talk
from workers.cli import options
from workers.cli.places import offered, one, places


@click.command()
@options.devices
@options.name
@options.state
@options.locks
@options.slots
@click.option("--drain", default="10m", show_default=True, help="Time for running jobs at the end.")
@options.gates
@options.wait
@options.fake
@options.json
def start(
    devices: str,
    name: str,
    state_dir: str,
    lock_dir: str,
    cpu_slots: int,
    drain: str,
    gates: str,
    wait: str,
    fake: str,
    as_json: bool,
) -> None:
    """Serve this machine's devices until stopped; SIGTERM lets running jobs end."""
    import logging

    from workers.agent import Agent
    from workers.node import Patience, take

    logging.basicConfig(level=logging.INFO, format="%(asctime)s agent %(levelname)s %(message)s")
    logging.getLogger(__name__).info("starting")
    state, settings = places(state_dir)
    if not settings.broker.value:
        raise Refused("no broker is named", hint="set FARM_BROKER, or `broker` in farm.toml")
    manner = options.manner(gates, wait)
    drain_s, ttl_s = _seconds(drain), _lease_s(os.environ.get("FARM_LEASE_S", ""))
    _check_store(settings.store.value)
    lifeline = 0 if os.environ.get("FARM_LIFELINE") == "stdin" else None
    served = take(
        offered(state, selector=devices, name=name, lock_dir=lock_dir, count=cpu_slots, fake=fake),
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
        manner=manner,
    )
    agent.serve()
    if as_json:
        drained = {"schema": "farm.drained/v1", "node": served[0].slot.node}
        talk.document(json.dumps(drained).encode())


@click.command()
@options.device
@options.name
@options.state
@options.locks
@options.fake
@options.json
def card(device: str, name: str, state_dir: str, lock_dir: str, fake: str, as_json: bool) -> None:
    """Print the system card of a device: what its numbers depend on, nothing private."""
    from farm import schema

    _ = as_json
    state, _settings = places(state_dir)
    served = one(state, device=device, name=name, lock_dir=lock_dir, fake=fake)
    talk.document(schema.encode(served.card))


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
