"""Devices that people pause and that gates take out of the fleet, and the history of both."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from farm.ledger.records import Case, HealthEvent, Hold
from farm.ledger.scripted import Scripted
from farm.ledger.wire import reaching

_SIGNS: Final = {
    "paused": "pause",
    "unpaused": "pause",
    "quarantine": "health",
    "cleared": "health",
}


class Holds(Scripted):
    """The part of the ledger that says who may measure; raises as `Views` does."""

    def quarantine(self, case: Case, *, note: str) -> str:
        """Ask to take a device out; return what was done: `quarantine`, `held` or `suspect`.

        At most one in ten of a class goes within an hour, and never its last one: beyond that a
        soft case serves on as a suspect, and a hard one claims nothing without being counted out
        (`node.md` §9). A job around which three devices broke within ten minutes is poisoned: it
        ends as DEAD where it is next handed back.
        """
        told = {**msgspec.to_builtins(case), "note": note}
        return str(self._call("quarantine", told))

    def hold(
        self,
        target: str,
        kind: Literal["paused", "unpaused", "quarantine", "cleared"],
        *,
        note: str,
        by: Literal["node", "person"] = "person",
    ) -> None:
        """Pause, quarantine or clear NODE or NODE/SLOT; what was cleared waits for its node."""
        told = {"target": target, "about": _SIGNS[kind], "kind": kind, "note": note, "by": by}
        self._call("hold", told)

    def settle(self, target: str) -> None:
        """Say that the node has heard that a device is cleared."""
        self._call("settle", {"target": target})

    def holds(self) -> list[Hold]:
        """Return all that is held, by node and slot."""
        with reaching():
            found: Any = self._redis.hgetall("farm:hold")
        rows = [(*str(name).rsplit("|", 1), str(value)) for name, value in found.items()]
        return sorted(
            (
                _hold(target, msgspec.json.decode(value, type=dict[str, Any]))
                for target, _, value in rows
            ),
            key=lambda each: (each.node, each.slot, each.kind),
        )

    def cases(self) -> list[Case]:
        """Return what gates reported within a day, the oldest first."""
        with reaching():
            rows: Sequence[Any] = self._redis.zrange("farm:cases", 0, -1)
        return [msgspec.convert(msgspec.json.decode(each), Case, strict=False) for each in rows]

    def health(self, node: str, *, count: int = 20) -> list[HealthEvent]:
        """Return the last changes of what was held of a node, the newest first."""
        with reaching():
            rows: Any = self._redis.xrevrange("farm:health", count=1000)
        found = [
            HealthEvent(at_ms=float(str(id_).partition("-")[0]), **fields)
            for id_, fields in rows
            if str(fields["target"]).partition("/")[0] == node
        ]
        return found[:count]


def held_of(answer: Any) -> list[Hold]:
    """Return what the script says to a node of its holds."""
    return [_hold(each["target"], each["hold"]) for each in answer or []]


def _hold(target: str, told: dict[str, Any]) -> Hold:
    node, _, slot = target.partition("/")
    at = told.pop("at")
    return msgspec.convert({**told, "node": node, "slot": slot, "at_ms": at}, Hold, strict=False)
