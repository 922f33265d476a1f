"""The state of a slot's device over time: what its gates found, what the farm made of it, the end.

The file of its ailments is this node's truth and survives a restart; the ledger knows how many of a
class may be spared. Each is told what only the other knows, whichever was lost.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from farm.errors import Unreachable
from farm.ledger import Claim, Ledger
from workers.control import Judged, Setup
from workers.gates import Finding, Unfit
from workers.guard import Guard
from workers.health import Ailment, Health, case, number_of
from workers.host import Host, boot_of
from workers.station import Station

log = logging.getLogger(__name__)

_LOOK_AGAIN_S: Final = 5.0  # at a device that is not fit


class Ward:
    """Watches over one device between jobs; the guard does within them, None where nobody does."""

    def __init__(
        self,
        setup: Setup,
        ledger: Ledger,
        guard: Guard | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slot, self._ledger, self._guard, self._clock = setup.slot, ledger, guard, clock
        self._driver = setup.card.stable.drivers.nvidia or ""
        self._health = Health(Path(setup.state), number_of(setup.slot), boot=boot_of(Host()))
        self._target = f"{setup.slot.node}/{setup.slot.slot}"
        self._trouble, self._look_at = "", 0.0
        self._take_in()

    @property
    def is_suspect(self) -> bool:
        """Whether it serves on though it should not: what it measures then is in doubt."""
        now = self._health.ailment()
        return now is not None and now.kind == "suspect"

    def doubted(self, station: Station) -> Station:
        """Return the station as it is to measure now: of a suspect, under a doubt."""
        if not self.is_suspect:
            return station
        return replace(station, flags=(*station.flags, "suspect_device"))

    def trouble(self) -> str:
        """Return why nothing may be measured on it now, "" if it may; seldom while it may not."""
        if self._clock() >= self._look_at:
            self._trouble = self._looked()
            self._look_at = self._clock() + _LOOK_AGAIN_S if self._trouble else 0.0
        return self._trouble

    def report(self, fault: Finding, *, job: str = "", run: str = "") -> None:
        """Note a fault of the device, and ask the farm what is to become of it.

        Raises Unreachable; the farm is asked again then.
        """
        found = self._health.fall_ill(
            severity="hard" if fault.severity == "hard" else "soft",
            cause=fault.id,
            note=f"{fault.id}: {fault.reason}",
            job=job,
            run=run,
        )
        self._ask(found)

    def look_back(self, claim: Claim) -> None:
        """Report what became clear while a job ran whose result counts all the same."""
        fault = self._guard.watcher.fault if self._guard is not None else None
        if fault is not None:
            with suppress(Unreachable):
                self.report(fault, job=claim.key, run=claim.run)

    def hear(self, said: Judged) -> None:
        """Take what the farm holds of the device; raises Unreachable."""
        now = self._health.ailment()
        if said.kind == "cleared":
            log.warning("%s: cleared, %s", self._target, said.note)
            self._health.clear(said.note)
            self._forgive()
            self._ledger.settle(self._target)
        elif now is None and said.by == "node":  # cleared here, which the farm does not know
            why = next((each.cleared for each in self._health.history()[-1:]), "")
            if why:
                self._forgive()
                self._ledger.hold(self._target, "cleared", note=why, by="node")
        elif now is not None and said.kind != now.kind and said.by != "person":
            self._health.judged(said.kind)  # "": the farm has lost it, and is asked again
            self._take_in()

    def _looked(self) -> str:
        now = self._health.ailment()
        if now is not None and not now.kind:
            with suppress(Unreachable):
                self._ask(now)
            now = self._health.ailment()
        if now is not None and now.kind != "suspect":
            return f"{now.kind or 'quarantine'}: {now.note}"
        if self._guard is None:
            return ""
        try:
            self._guard.check()
        except Unfit as error:
            log.warning("not fit: %s", error)
            if error.fault is not None:
                with suppress(Unreachable):
                    self.report(error.fault)
            return str(error)
        return ""

    def _ask(self, found: Ailment) -> None:
        if found.kind:
            return
        kind = self._ledger.quarantine(
            case(self._slot, found, driver=self._driver), note=found.note
        )
        log.warning("%s: %s, %s", self._target, kind, found.note)
        self._health.judged(kind)
        self._take_in()

    def _take_in(self) -> None:
        self._look_at = 0.0
        if self._guard is not None:
            self._guard.watcher.is_suspect = self.is_suspect

    def _forgive(self) -> None:
        if self._guard is not None:
            self._guard.watcher.forgive()
        self._take_in()
