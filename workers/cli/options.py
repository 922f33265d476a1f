"""The flags that several verbs share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farm.errors import Refused

if TYPE_CHECKING:
    from workers.guard import Manner

Verb = TypeVar("Verb", bound=Callable[..., Any])

devices = click.option("--devices", default="all", show_default=True, metavar="SEL")
device = click.option(
    "--device", default="cpu", show_default=True, metavar="SEL", help="Which slot: cpu, cpu:0, …"
)
fake = click.option(
    "--fake", default="", metavar="NxDEVICE", help="Simulated devices in place of these: 8xH100."
)
json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
name = click.option("--name", default="", help="Name of this node.", envvar="FARM_NODE_NAME")
state = click.option("--state-dir", default="", metavar="DIR", help="Where this node keeps state.")
locks = click.option("--lock-dir", default="", metavar="DIR", help="Where device locks lie.")
slots = click.option("--cpu-slots", default=1, show_default=True, metavar="N")


def _gates(default: str, strict: str) -> "Callable[[Verb], Verb]":
    return click.option(
        "--gates",
        type=click.Choice(["strict", "warn", "off"]),
        default=default,
        show_default=True,
        envvar="FARM_GATES",
        help=f"Where something is not quiet: strict {strict}, warn measures with a mark.",
    )


gates = _gates("strict", "waits")
gates_by_hand = _gates("warn", "measures nothing")
wait = click.option(
    "--wait",
    default="10s",
    show_default=True,
    metavar="TIME",
    help="How long warn waits for quiet.",
)


def manner(gates: str, wait: str) -> "Manner":
    """Return how gates are taken; raises Refused for a time that is none."""
    from farm.effort import duration_s
    from workers.guard import Manner

    found = duration_s(wait)
    if found is None:
        raise Refused(f"--wait {wait!r} is no duration", why="write 90s, 10m or 7d")
    return Manner(mode=gates, wait_s=float(found))  # type: ignore[arg-type]
