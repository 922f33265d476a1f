"""Every error this product raises on purpose, and the exit code each one ends a command with.

FarmError                     something to say: what happened, why, what to do next
├── Bad            exit 1     an answer exists and it is bad
├── Refused        exit 2     the request makes no sense wherever one runs it
├── NoResult       exit 3     the request is right and nothing comes of it
├── Unreachable    exit 4     broker, store or credentials; worth retrying
├── NoVerdict      exit 5     measured, and nothing can be concluded
├── TimedOut       exit 124   the caller's time-out passed; the run stays open
└── Stopped        exit 130   somebody pressed Ctrl-C; likewise

An exception that is none of these is our bug and ends a command with 70.
"""

import errno
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

OK: Final = 0
BUG: Final = 70
INTERRUPTED: Final = 130


class FarmError(Exception):
    """Say what happened, why, and what to do next; the caller decides how it is printed.

    what: one line, lower case, the offending value quoted, no full stop.
    why: where it stands and what would have been right, or "".
    hint: the next step, or "".
    """

    exit_code: int = BUG

    def __init__(self, what: str, *, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return self.what if not self.why else f"{self.what}: {self.why}"


class Bad(FarmError):
    """A result exists and it is bad: a failed job, damage in the store."""

    exit_code = 1


class Refused(FarmError):
    """The words are wrong wherever one says them: flag, sweep, setting, missing file."""

    exit_code = 2


class NoResult(FarmError):
    """The words are right and nothing comes of them: no such run, no device, nothing matches."""

    exit_code = 3


class Unreachable(FarmError):
    """Broker, store or credentials could not be reached; worth retrying."""

    exit_code = 4


class NoVerdict(FarmError):
    """Measured, and no verdict follows: incomparable, degraded, too few repeats."""

    exit_code = 5


class TimedOut(FarmError):
    """The caller's time-out passed; what was submitted stays open for `farm resume`."""

    exit_code = 124


class Stopped(FarmError):
    """Somebody wants us to stop; what was submitted stays open for `farm resume`."""

    exit_code = INTERRUPTED


# The kind of error that a command of ours ended with; a bug of ours has none.
BY_CODE: Final[Mapping[int, type[FarmError]]] = {
    each.exit_code: each
    for each in (Bad, Refused, NoResult, Unreachable, NoVerdict, TimedOut, Stopped)
}


# What a machine has run out of, and what helps.
_LACKS: Final[Mapping[int, tuple[str, str]]] = {
    errno.ENOSPC: ("no space is left", "free some, or set TMPDIR to a folder with more"),
    errno.EDQUOT: ("the quota is used up", "free some, or set TMPDIR to a folder with more"),
    errno.EMFILE: ("too many files are open", "`ulimit -n` allows more"),
    errno.ENFILE: ("too many files are open on this machine", ""),
}


def lacking(error: BaseException) -> NoResult | None:
    """Return what this machine has run out of, if that is what an error says: no bug of ours."""
    if isinstance(error, MemoryError):
        return NoResult("not enough memory", why=str(error))
    lack = _LACKS.get(error.errno or 0) if isinstance(error, OSError) else None
    if lack is None:
        return None
    what, hint = lack
    return NoResult(what, why=str(getattr(error, "filename", None) or ""), hint=hint)


def did_you_mean(word: str, known: list[str]) -> str:
    """Return a hint that names the nearest other word that is known, or "" when none is near."""
    close = get_close_matches(word, [each for each in known if each != word], n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else ""
