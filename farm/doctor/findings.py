"""What was looked at, how it stands, and what cures it: rows for a person, data for a program."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from farm.errors import OK, Bad, Refused, Unreachable
from farm.report import words
from farm.report.table import Column, Datum, Table, Tone

State = Literal["ok", "warn", "fail", "skipped"]

_SHOWN: Final[dict[State, tuple[str, Tone]]] = {
    "ok": ("✓ ok", "good"),
    "warn": ("! warning", "warn"),
    "fail": ("✗ failed", "bad"),
    "skipped": ("○ skipped", "quiet"),
}


class Finding(Struct, frozen=True):
    """One thing that was looked at.

    said: what was found, one line. cure: a command to paste where there is one, else what to do.
    code: what a command that needs this would end with; it counts for `fail` alone.
    """

    subject: str
    name: str
    state: State
    said: str
    cure: str = ""
    code: int = Bad.exit_code


class About(NamedTuple):
    """Makes the findings of one subject."""

    subject: str

    def ok(self, name: str, said: str) -> Finding:
        return Finding(self.subject, name, "ok", said)

    def skipped(self, name: str, why: str) -> Finding:
        return Finding(self.subject, name, "skipped", why)

    def warn(self, name: str, said: str, *, cure: str) -> Finding:
        return Finding(self.subject, name, "warn", said, cure)

    def fail(self, name: str, said: str, *, cure: str, code: int = Bad.exit_code) -> Finding:
        return Finding(self.subject, name, "fail", said, cure, code)


def exit_code(findings: Sequence[Finding]) -> int:
    """Return what the command ends with, by the table of exit codes of every command.

    0 nothing failed; warnings and skipped checks are answers. 2 the settings, or what they name,
    make no sense wherever one uses them. 1 something else here is bad. 4 broker, store,
    state folder or credentials could not be reached, and nothing else failed: then, and only then,
    trying again may be all it takes.
    """
    codes = {each.code for each in findings if each.state == "fail"}
    if Refused.exit_code in codes:
        return Refused.exit_code
    if codes - {Unreachable.exit_code}:
        return Bad.exit_code
    return Unreachable.exit_code if codes else OK


def blocks(findings: Sequence[Finding]) -> list[str | Table]:
    """Return one row for each finding and a line that counts them."""
    columns = (Column("subject"), Column("check"), Column("state"), Column("found", cut=True))
    rows = tuple(
        (
            Datum(each.subject),
            Datum(each.name),
            Datum(_SHOWN[each.state][0], tone=_SHOWN[each.state][1]),
            Datum(each.said),
        )
        for each in findings
    )
    counts = Counter(each.state for each in findings)
    shares = (
        words.count(counts["warn"], "warning"),
        f"{counts['fail']} failed",
        f"{counts['skipped']} skipped",
    )
    told = [f"{counts['ok']} ok", *(each for each in shares if not each.startswith("0 "))]
    return [Table("", columns, rows), " · ".join(told)]


def cures(findings: Sequence[Finding]) -> str:
    """Return what is wrong, whole, each with its cure on a line of its own, the failed first.

    Lines end where they end: a command that is broken in two cannot be pasted. "" if all is well.
    """
    wrong = [each for state in ("fail", "warn") for each in findings if each.state == state]
    return "".join(
        f"\n{each.subject}, {each.name}: {each.said}\n" + (f"  {each.cure}\n" if each.cure else "")
        for each in wrong
    )


def document(findings: Sequence[Finding]) -> dict[str, object]:
    """Return the findings as one JSON document."""
    counts = Counter(each.state for each in findings)
    fields = ("subject", "name", "state", "said", "cure")
    plain = [msgspec.structs.asdict(each) for each in findings]
    return {
        "schema": "farm.doctor/v1",
        "findings": [{field: each[field] for field in fields} for each in plain],
        **{state: counts[state] for state in ("ok", "warn", "fail")},
    }
