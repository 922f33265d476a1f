"""What gates look at, and what they find."""

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


class Baseline(Struct, frozen=True, kw_only=True):
    """The quietest that a device was since this boot, with no process on it; None: not seen yet."""

    used_bytes: int | None = None
    idle_c: int | None = None


class HostState(Struct, frozen=True, kw_only=True):
    """The host over the last seconds; None where it does not tell.

    busy_share: of the leased cores, used by others. some_share: of the time in which something
    waited for a core. available_bytes: of memory; need_bytes: what the job will take. free_share:
    of the disk that holds the state.
    """

    busy_share: float | None = None
    some_share: float | None = None
    available_bytes: int | None = None
    need_bytes: int = 0
    free_share: float | None = None
    clocksource: str | None = None
