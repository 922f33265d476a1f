"""Which of the profiles that are there a model of a roster is judged by, and why that one."""

from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from farm.roster.expected import Expected
from farm.roster.reports import Report, at

# From good to bad; a file that says nothing of it may be good, but is no better than doubtful.
_RANKS: Final = {"valid": 0, "degraded": 1, "": 1, "invalid": 2}
_FAILED: Final = 3


class Chosen(NamedTuple):
    """report: None if there is none, then trouble says why. note: of how many it was taken."""

    report: Report | None
    trouble: str = ""
    note: str = ""


def find(wanted: Expected, reports: Sequence[Report], *, claimed: Collection[str]) -> Chosen:
    """Return the profile of a model; one in its own file comes first.

    Of several with the same precision and batch, a valid one comes before a degraded one, before an
    invalid one, before a failed one, and then the newest. claimed: names of files that belong to a
    model of the roster, and so to no other one.
    """
    named = [each for each in reports if PurePath(each.where).name == wanted.lies_in]
    for each in named:
        if each.identity != wanted.known_as:
            said = each.identity or "nothing"
            return Chosen(None, f"{each.where} is of {said!r}, expected {wanted.known_as!r}")
    found = named or [
        each
        for each in reports
        if not wanted.file
        and PurePath(each.where).name not in claimed
        and each.identity == wanted.known_as
        and _fits(wanted, each)
    ]
    if not found:
        return Chosen(None, f"no profile of {wanted.known_as!r}, and no file {wanted.lies_in}")
    if len({_which(each) for each in found}) > 1:
        which = ", ".join(each.where for each in found[:4])
        return Chosen(None, f"{len(found)} profiles match ({which}); say precision, batch or file")
    return _best(found)


def _fits(wanted: Expected, report: Report) -> bool:
    precision, batch = report.said["precision"], report.said["batch"]
    return wanted.precision in ("", precision) and wanted.batch in (0, batch)


def _which(report: Report) -> tuple[str, str]:
    return repr(report.said["precision"]), repr(report.said["batch"])


def _best(found: Sequence[Report]) -> Chosen:
    by_age = sorted(found, key=lambda each: each.began, reverse=True)
    best, newest = min(by_age, key=_rank), by_age[0]
    if len(found) == 1:
        return Chosen(best)
    note = f"profile {_told(best)}, taken of {len(found)} that match"
    if best is not newest:
        note += f"; the newest is {_told(newest)}"
    return Chosen(best, note=note)


def _rank(report: Report) -> int:
    if not isinstance(at(report.plain, "latency"), dict):
        return _FAILED
    return _RANKS.get(str(report.said["validity"] or ""), _FAILED)


def _told(report: Report) -> str:
    """Return its name, device, time and validity, as far as it says them."""
    failed = not isinstance(at(report.plain, "latency"), dict)
    parts = (report.said["device"], report.began, "failed" if failed else report.said["validity"])
    return f"{report.where} ({', '.join(str(each) for each in parts if each)})"
