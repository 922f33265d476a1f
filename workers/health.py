"""What a device suffers from, kept in the node's state: a restart of anything is no cure.

It is cleared by a person, here or from the farm, or after a reboot by the device itself.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct, structs

from farm.ledger import Case, Slot

_KEPT: Final = 50  # ailments of one device, the newest


class Ailment(Struct, frozen=True, kw_only=True):
    """Why a device is out, or doubted. boot: a hash of the boot that it happened in.

    severity, cause, note: of the gate that saw it. job: the entry in hand, "" for none. kind: what
    the farm made of it, as `farm.ledger.Hold`, "" while it was not asked. cleared: by whom and why,
    "" while it lasts. at: as 2026-11-30T12:00:00Z.
    """

    severity: Literal["soft", "hard"]
    cause: str
    note: str
    at: str
    boot: str
    job: str = ""
    run: str = ""
    kind: str = ""
    cleared: str = ""


class Health:
    """The file of one device. number: of its slot, which is the device's for good."""

    def __init__(self, state: Path, number: str, *, boot: str = "") -> None:
        self._file = state / "health" / f"{number}.json"
        self._boot = boot

    def history(self) -> list[Ailment]:
        """Return what it suffered from, the newest last; none where nothing can be read."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=list[Ailment])
        except (OSError, msgspec.DecodeError):
            return []

    def ailment(self) -> Ailment | None:
        """Return what it suffers from now."""
        last = self.history()[-1:]
        return last[0] if last and not last[0].cleared else None

    @property
    def is_of_another_boot(self) -> bool:
        """Whether the machine was started anew since it fell ill."""
        now = self.ailment()
        return now is not None and bool(self._boot) and now.boot != self._boot

    def fall_ill(
        self,
        *,
        severity: Literal["soft", "hard"],
        cause: str,
        note: str,
        job: str = "",
        run: str = "",
        now: datetime | None = None,
    ) -> Ailment:
        """Note an ailment and return it; one of the same severity that lasts stays what it is."""
        known = self.ailment()
        if known is not None and (known.severity == severity or severity == "soft"):
            return known
        at = (now or datetime.now(UTC)).isoformat(timespec="seconds").replace("+00:00", "Z")
        made = Ailment(
            severity=severity, cause=cause, note=note, job=job, run=run, boot=self._boot, at=at
        )
        self._write([*self.history(), made])
        return made

    def judged(self, kind: str) -> None:
        """Note what the farm made of it."""
        self._change(kind=kind)

    def clear(self, why: str) -> None:
        """Note that it is over, and why; nothing where nothing lasts."""
        self._change(cleared=why or "cleared")

    def _change(self, **changes: str) -> None:
        found = self.history()
        if found and not found[-1].cleared:
            self._write([*found[:-1], structs.replace(found[-1], **changes)])

    def _write(self, found: list[Ailment]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(f".{os.getpid()}")
        partial.write_bytes(msgspec.json.encode(found[-_KEPT:]))
        partial.replace(self._file)


def case(slot: Slot, found: Ailment, *, driver: str) -> Case:
    """Return what the ledger is asked about an ailment."""
    return Case(
        node=slot.node,
        slot=slot.slot,
        class_=slot.system_class,
        severity=found.severity,
        cause=found.cause,
        job=found.job,
        run=found.run,
        driver=driver,
    )


def number_of(slot: Slot) -> str:
    """Return the number of a slot, which its own queue ends in."""
    return slot.classes[0].rpartition(".")[2]
