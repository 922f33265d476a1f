"""The farm that a command talks to: the broker that the settings name, or that of this folder."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from farm import background, broker, embedded
from farm.errors import Unreachable
from farm.ledger import Ledger
from farm.settings import Settings, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farm.ledger import Slot


class Farm(NamedTuple):
    """A farm that answers. where: how a person would name it."""

    ledger: Ledger
    url: str
    where: str

    def ring(self, tickets: "Mapping[str, int]") -> None:
        """Send tickets for work that is ready."""
        broker.send_tickets(broker.connect(self.url), tickets)

    def slots(self) -> "list[Slot]":
        return self.ledger.slots()


def find(settings: Settings, *, passing: bool = False) -> Farm | None:
    """Return the farm of these settings, None if no broker is named and none runs here.

    passing: the farm of a `farm run` in this folder will do as well, for one who only looks on or
    cancels. Raises Unreachable if a broker is named and does not answer.
    """
    named = settings.broker
    if named.value:
        return _answering(named.value, f"{shown(named.value)} ({named.origin})")
    state = Path(settings.state.value)
    if not (passing or background.found(state)):
        return None
    server = embedded.running(state)
    return _answering(server.url, f"the farm of {state}") if server is not None else None


def need(settings: Settings, *, passing: bool = False) -> Farm:
    """Return the farm of these settings; raise Unreachable if there is none."""
    found = find(settings, passing=passing)
    if found is None and not passing and (other := find(settings, passing=True)) is not None:
        other.ledger.close()
        raise Unreachable(
            "no farm is running here that takes work",
            why="a `farm run` is going on in this folder, and its farm ends with it",
            hint="`farm up` starts one that stays",
        )
    if found is None:
        raise Unreachable(
            "no farm is running here",
            why=f"no broker is named, and nothing is up in {settings.state.value!r}",
            hint="`farm up` starts one on this machine; FARM_BROKER names another",
        )
    return found


def _answering(url: str, where: str) -> Farm:
    ledger = Ledger(url)
    try:
        ledger.server()
    except Unreachable as error:
        raise Unreachable(
            error.what, why=f"{error.why}\n{where}".strip(), hint="`farm doctor` looks closer"
        ) from error
    return Farm(ledger, url, where)
