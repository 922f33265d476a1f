"""Who watches the device of a slot, as its worker or a hand is told."""

from pathlib import Path
from typing import Final

from farm.gates import gates
from farm.schema import Device
from workers.control import Setup
from workers.gpu import Board, Probe
from workers.guard import Guard, Manner, Watcher
from workers.host import Host
from workers.host_sentry import HostSentry, Outlook

OWN: Final = "gates.yaml"  # of an operator's, in the state folder


def guarded(setup: Setup) -> Guard:
    """Return who watches the device of a slot."""
    return guard(
        setup.device,
        Path(setup.state),
        setup.manner,
        board=setup.board,
        simulated=setup.simulated,
        probe=Probe(fake=setup.fake, faults=setup.faults) if setup.board is not None else None,
        base_clock_hz=setup.base_clock_hz,
    )


def guard(
    device: Device,
    state: Path,
    manner: Manner,
    *,
    board: Board | None,
    simulated: bool,
    probe: Probe | None,
    base_clock_hz: float | None = None,
) -> Guard:
    """Return who watches a device: its GPU and its host, or its host alone.

    Simulated hardware counts as verified. Raises Refused for a gates file that makes no sense.
    """
    own = state / OWN
    table = gates(own if own.exists() else None, enforced=simulated)
    outlook = Outlook(Host(), device.cpus, state)
    if manner.mode != "off":
        outlook.keep()
    watcher: Watcher = HostSentry(outlook, gates=table)
    if board is not None and probe is not None:
        from workers.sentry import Sentry  # which brings numpy along

        watcher = Sentry(
            probe, board, gates=table, host=Host(), outlook=outlook, base_clock_hz=base_clock_hz
        )
    return Guard(watcher, manner)
