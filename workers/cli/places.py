"""Where a node keeps its state, and the device that a verb uses by hand."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farm.errors import Refused

FAULTS: Final = "faults.json"

if TYPE_CHECKING:
    from farm.settings import Settings
    from farm.store import Store
    from workers.guard import Manner
    from workers.node import Served
    from workers.station import Station


def places(state_dir: str) -> tuple[Path, "Settings"]:
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


def offered(
    state: Path, *, selector: str, name: str, lock_dir: str, count: int = 1, fake: str = ""
) -> "list[Served]":
    """Return the devices that the selector names; the driver is asked only where one may be a GPU.

    fake: devices that stand in for those of this machine, under the faults that a file of the state
    folder tells.
    """
    from workers.gpu import Seen, look
    from workers.node import offer

    faults = str(state / FAULTS)
    is_cpu = selector.partition(":")[0] == "cpu"
    seen = look(fake=fake, faults=faults) if fake or not is_cpu else Seen()
    return offer(state, selector=selector, name=name, lock_dir=lock_dir, count=count, seen=seen)


def one(state: Path, *, device: str, name: str, lock_dir: str, fake: str = "") -> "Served":
    return offered(state, selector=device, name=name, lock_dir=lock_dir, fake=fake)[0]


def station_of(
    state: Path, served: "Served", *, store: "Store | None", manner: "Manner | None" = None
) -> "Station":
    """Return the station of a device that is used by hand; manner: of its gates, None for none.

    What its children leave becomes this process's own, so that it can be ended.
    """
    from workers import roofs, watchers
    from workers.cleanup import adopt_orphans
    from workers.gpu import Probe
    from workers.host import Host
    from workers.station import Station

    adopt_orphans()
    seen, guard = served.seen, None
    if manner is not None:
        has_probe = served.board is not None and manner.mode != "off"
        guard = watchers.guard(
            served.device,
            state,
            manner,
            board=served.board,
            simulated=served.simulated,
            probe=Probe(fake=seen.fake, faults=seen.faults) if has_probe else None,
            base_clock_hz=served.base_clock_hz,
        )
    return Station(
        node=served.slot.node,
        worker=f"{served.slot.node}/{served.device.slot}#hand",
        device=served.device,
        card=served.card,
        environment=served.environment,
        flags=served.flags,
        board=served.board,
        simulated=served.simulated,
        guard=guard,
        cache=state / "cache",
        lock_dir=served.lock_dir,
        store=store,
        version=version("profiling-farm"),
        host=Host(),
        roofs=roofs.known(state, served.card.system_id),
    )
