"""What gates look at, and what they find."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

Verdict = Literal["ok", "skipped", "unknown", "degraded", "defer", "quarantine"]
Phase = Literal["static", "before", "window", "after"]
Severity = Literal["", "soft", "hard", "job"]

RISING: Final[tuple[Verdict, ...]] = (
    *("skipped", "ok", "unknown", "degraded", "defer", "quarantine"),
)


class Finding(Struct, frozen=True, kw_only=True):
    """One gate at one moment. reason: what was seen, "" where nothing is to be said.

    severity: of a quarantine, or `job` where the evidence blames the job. enforced: whether the
    verdict has an effect; a gate on trial only says what it saw.
    """

    id: str
    phase: Phase
    verdict: Verdict
    reason: str = ""
    severity: Severity = ""
    enforced: bool = True


class Unfit(Exception):
    """A device is not to be measured on now; nothing was. findings: what its gates saw."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        bad = [each for each in findings if forbids(each)]
        super().__init__("; ".join(f"{each.id}: {each.reason}" for each in bad))
        self.findings = list(findings)

    @property
    def fault(self) -> Finding | None:
        """The worst fault of the device itself among them."""
        return worst_fault(self.findings)


def forbids(found: Finding) -> bool:
    """Whether nothing is to be measured because of it."""
    return found.enforced and found.verdict in ("defer", "quarantine")


def is_doubt(found: Finding) -> bool:
    """Whether what is measured all the same is in doubt."""
    return found.enforced and found.verdict in ("degraded", "unknown")


def worst_fault(found: Sequence[Finding]) -> Finding | None:
    """Return the first fault of a device, a hard one before a soft one."""
    bad = [each for each in found if forbids(each) and each.severity in ("soft", "hard")]
    return min(bad, key=lambda each: each.severity != "hard", default=None)


class Baseline(Struct, frozen=True, kw_only=True):
    """The quietest that a device was since this boot, with no process on it; None: not seen yet."""

    used_bytes: int | None = None
    idle_c: int | None = None


class HostState(Struct, frozen=True, kw_only=True):
    """The host over the last seconds; None where it does not tell.

    busy_share: of the leased cores, used by others. some_share: of the time in which something
    waited for a core. available_bytes: of memory; need_bytes: what the job will take. free_share:
    of the disk that holds the state. is_settling: nothing is known yet, as our own work has just
    ended there.
    """

    busy_share: float | None = None
    some_share: float | None = None
    is_settling: bool = False
    available_bytes: int | None = None
    need_bytes: int = 0
    free_share: float | None = None
    clocksource: str | None = None
