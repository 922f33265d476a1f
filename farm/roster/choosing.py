"""Which of the profiles that are there a model of a roster is judged by, and why that one."""

from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from farm.roster.expected import Expected
from farm.roster.reports import Report

# From good to bad; a file that says nothing of it may be good, but is no better than doubtful.
_RANKS: Final = {"valid": 0, "degraded": 1, "": 1, "invalid": 2}
_FAILED: Final = 3


class Chosen(NamedTuple):
    """report: None if there is none, then trouble says why. note: of how many it was taken.

    missing: nothing is there that could be of this model, rather than something else in its place.
    """

    report: Report | None
    trouble: str = ""
    note: str = ""
    missing: bool = False


def find(wanted: Expected, reports: Sequence[Report], *, claimed: Collection[str]) -> Chosen:
    """Return the profile of a model; one in its own file comes first.

    Wherever it lies, it has the precision and the batch that the roster names. Of several with the
    same precision and batch, a valid one comes before a degraded one, before an invalid one, before
    a failed one, and then the newest. claimed: names of files that belong to a model of the roster,
    and so to no other one.
    """
    named = [each for each in reports if PurePath(each.where).name == wanted.lies_in]
    for each in named:
        if each.identity != wanted.known_as:
            said = each.identity or "nothing"
            return Chosen(None, f"{each.where} is of {said!r}, expected {wanted.known_as!r}")
    fitting = [each for each in named if _fits(wanted, each)]
    if named and not fitting:
        return Chosen(None, f"{named[0].where} {_unfit(wanted, named[0])}")
    found = fitting or [
        each
        for each in reports
        if not wanted.file
        and PurePath(each.where).name not in claimed
        and each.identity == wanted.known_as
        and _fits(wanted, each)
    ]
    if not found:
        what = f"no profile of {wanted.known_as!r}, and no file {wanted.lies_in}"
        return Chosen(None, what, missing=True)
    if len({_which(each) for each in found}) > 1:
        which = ", ".join(each.where for each in found[:4])
        return Chosen(None, f"{len(found)} profiles match ({which}); say precision, batch or file")
    return _best(found)


def _fits(wanted: Expected, report: Report) -> bool:
    precision, batch = report.said["precision"], report.said["batch"]
    return wanted.precision in ("", precision) and wanted.batch in (0, batch)


def _unfit(wanted: Expected, report: Report) -> str:
    """Return what a report says and what was expected instead, of each that differs."""
    parts = []
    for name in ("precision", "batch"):
        expected, said = getattr(wanted, name), report.said[name]
        if expected not in ("", 0, said):
            has = f"says no {name}" if said is None else f"has {name} {repr(said)[:40]}"
            parts.append(f"{has}, expected {expected!r}")
    return "; ".join(parts)


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
    if report.failed:
        return _FAILED
    return _RANKS.get(str(report.said["validity"] or ""), _FAILED)


def _told(report: Report) -> str:
    """Return its name, device, time and validity, as far as it says them."""
    ended = "failed" if report.failed else report.said["validity"]
    parts = (report.said["device"], report.began, ended)
    return f"{report.where} ({', '.join(str(each) for each in parts if each)})"
