"""A roster against the profiles that are there: a table of what is sound, and every problem."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import msgspec

from farm import commas
from farm.interchange.document import RosterValidation
from farm.roster.expected import Expected, Roster
from farm.roster.reports import Report

FIELDS: Final = (
    *("task", "model", "identity", "device", "precision", "batch", "unit"),
    *("parameters", "flops_per_item", "flops_status", "p50_ms", "p95_ms", "p99_ms", "mean_ms"),
    *("n", "memory_mib", "validity", "inputs", "source", "note"),
)
# Where a profile of ours, and where a callable JSON holds what the table shows.
_IN_PROFILE: Final[Mapping[str, str]] = {
    "device": "execution.device.slot",
    "precision": "job.workload.precision",
    "batch": "job.workload.batch",
    "unit": "job.workload.item",
    "n": "latency.n",
    "memory_mib": "memory.cpu_rss_peak_lifetime_bytes",
    "validity": "quality.validity",
}
_IN_CALLABLE: Final[Mapping[str, str]] = {
    "device": "device",
    "precision": "system_card.precision",
    "batch": "system_card.batch_size",
    "unit": "unit",
    "n": "measured_calls",
    "memory_mib": "memory.cpu_process_lifetime_peak_mb",
    "validity": "latency_detail.validity",
}
_TIMES: Final = ("p50_ms", "p95_ms", "p99_ms", "mean_ms")
_NONFINITE: Final = "nonfinite_output"

Row = dict[str, str | int | float | None]


class Aggregate(NamedTuple):
    """The sound rows by task and model, and what there is to say of all of them."""

    rows: list[Row]
    validation: RosterValidation


class _Checked(NamedTuple):
    row: Row | None
    errors: list[str]
    notes: list[str]


def aggregate(
    roster: Roster, reports: Sequence[Report], *, allow_incomplete_flops: bool = False
) -> Aggregate:
    """Return the table of a roster and its validation; any error makes it a FAIL (S1.40, S1.53).

    A row has an error, and is left out, if its profile is missing, failed, of another model, if
    its output was not finite, or if its parameters or times are no positive finite numbers. FLOPs
    that are unknown or counted in part are an error too, unless they are allowed: then the row
    stays, with a note. All rows of a task must have had the same inputs (S1.42).
    """
    rows: list[Row] = []
    notes: list[str] = []
    count = 0
    errors = [f"{each.where}: {each.trouble}" for each in reports if each.trouble]
    sound = [each for each in reports if not each.trouble]
    claimed = {each.lies_in for each in roster.models}
    for each in sorted(roster.models, key=lambda each: (each.task, each.model)):
        held, trouble = _find(each, sound, claimed=claimed)
        if held is None:
            (notes if each.optional else errors).append(f"{each.model}: {trouble}")
            continue
        count += 1
        found = _checked(each, held, allow=allow_incomplete_flops)
        errors += [f"{each.model}: {what}" for what in found.errors]
        notes += [f"{each.model}: {what}" for what in found.notes]
        rows += [found.row] if found.row is not None else []
    errors += _mixed(rows)
    validation = RosterValidation(
        roster=roster.name,
        expected_models=len(roster.models),
        profiles_found=count,
        headline_fields=list(FIELDS),
        errors=errors,
        notes=notes,
        status="FAIL" if errors else "PASS",
    )
    return Aggregate(rows, validation)


def comma_separated(rows: Iterable[Row]) -> str:
    """Return the rows as CSV, an unknown value an empty cell; no cell is a formula."""
    lines = [commas.line(FIELDS)]
    lines += [commas.line(_cell(row[name]) for name in FIELDS) for row in rows]
    return "".join(lines)


def _cell(value: str | int | float | None) -> str:
    if value is None:
        return ""
    return commas.defused(value) if isinstance(value, str) else repr(value)


def _find(
    wanted: Expected, reports: Sequence[Report], *, claimed: Collection[str]
) -> tuple[Report | None, str]:
    """Return the profile of a model, or None and why; one in its own file comes first.

    claimed: names of files that belong to a model of the roster, and so to no other one.
    """
    named = [each for each in reports if PurePath(each.where).name == wanted.lies_in]
    if named:
        held = named[0]
        if len(named) > 1:
            return None, f"several files are called {wanted.lies_in}"
        if held.identity != wanted.known_as:
            said = held.identity or "nothing"
            return None, f"{held.where} is of {said!r}, expected {wanted.known_as!r}"
        return held, ""
    found = [
        each
        for each in reports
        if not wanted.file
        and PurePath(each.where).name not in claimed
        and each.identity == wanted.known_as
        and _fits(wanted, each)
    ]
    if not found:
        return None, f"no profile of {wanted.known_as!r}, and no file {wanted.lies_in}"
    if len(found) > 1:
        which = ", ".join(each.where for each in found[:4])
        return None, f"{len(found)} profiles match ({which}); say precision, batch or file"
    return found[0], ""


def _fits(wanted: Expected, report: Report) -> bool:
    paths = _IN_CALLABLE if report.is_callable else _IN_PROFILE
    precision, batch = (_at(report.plain, paths[name]) for name in ("precision", "batch"))
    return wanted.precision in ("", precision) and wanted.batch in (0, batch)


def _checked(wanted: Expected, report: Report, *, allow: bool) -> _Checked:
    plain = report.plain
    errors: list[str] = []
    notes: list[str] = []
    failure = _at(plain, "failure.kind")
    if not isinstance(_at(plain, "latency"), dict):
        return _Checked(None, [f"failed: {failure}" if failure else "has no latency"], [])
    row: Row = dict.fromkeys(FIELDS)
    for name in _TIMES:
        row[name] = _positive(plain, f"latency.{name}", errors)
    cost, why = _cost(wanted, plain, errors)
    row |= cost
    if why:
        (notes if allow else errors).append(why)
    for name, path in (_IN_CALLABLE if report.is_callable else _IN_PROFILE).items():
        value = _at(plain, path)
        row[name] = value if isinstance(value, str | int | float) else None
    if not report.is_callable and isinstance(row["memory_mib"], int):
        row["memory_mib"] = row["memory_mib"] / 2**20
    flags = _at(plain, "flags" if report.is_callable else "quality.flags")
    if isinstance(flags, list) and _NONFINITE in flags:
        errors.append("its output was not finite")
    if row["validity"] not in ("valid", None):
        said = ", ".join(map(str, flags)) if isinstance(flags, list) else ""
        notes.append(f"{row['validity']}: {said}")
    row |= {
        "task": wanted.task,
        "model": wanted.model,
        "identity": wanted.known_as,
        "inputs": _inputs(plain, is_callable=report.is_callable),
        "source": report.where,
        "note": "; ".join(notes) or None,
    }
    return _Checked(None if errors else row, errors, notes)


def _cost(wanted: Expected, plain: Mapping[str, Any], errors: list[str]) -> tuple[Row, str]:
    """Return parameters and FLOPs, and what is incomplete about the FLOPs."""
    if wanted.cost == "none":
        return {}, ""
    row: Row = {"parameters": _positive(plain, "cost.params_total", errors, whole=True)}
    status = _at(plain, "cost.flops_status")
    coverage = _at(plain, "cost.flops_coverage")
    row["flops_status"] = status if isinstance(status, str) else None
    if _at(plain, "cost.flops_per_item") is None:
        return row, f"FLOPs unknown ({status or 'not counted'})"
    row["flops_per_item"] = _positive(plain, "cost.flops_per_item", errors)
    partial = isinstance(coverage, float) and coverage < 1
    if status != "measured" or partial:
        said = f", {100 * coverage:.0f} % of the calls" if isinstance(coverage, float) else ""
        return row, f"FLOPs incomplete ({status}{said})"
    return row, ""


def _positive(
    plain: Mapping[str, Any], path: str, errors: list[str], *, whole: bool = False
) -> float | int | None:
    """Return a number, or None with an error that says what stands in its place."""
    value = _at(plain, path)
    kinds = (int,) if whole else (int, float)
    if value is None:
        errors.append(f"{path} is missing")
    elif isinstance(value, bool) or not isinstance(value, kinds):
        errors.append(f"{path} is {str(value)[:40]!r}, no {'whole ' if whole else ''}number")
    elif not math.isfinite(value) or value <= 0:
        errors.append(f"{path} is {value}, not positive and finite")
    else:
        return value
    return None


def _inputs(plain: Mapping[str, Any], *, is_callable: bool) -> str | None:
    """Return what tells equal inputs: a digest, or else the specification they were drawn from."""
    path = "inputs_sha256" if is_callable else "job.workload.inputs.digest"
    digest = _at(plain, path)
    if isinstance(digest, str):
        return digest
    spec = _at(plain, "inputs" if is_callable else "job.workload.inputs")
    return msgspec.json.encode(spec).decode() if spec else None


def _mixed(rows: Sequence[Row]) -> list[str]:
    """Return an error for each task whose rows had different inputs or units."""
    found = []
    for task in dict.fromkeys(row["task"] for row in rows):
        seen: dict[object, list[str]] = {}
        for row in rows:
            if row["task"] == task:
                seen.setdefault(row["inputs"], []).append(str(row["model"]))
        if len(seen) > 1:
            sides = " and ".join(", ".join(each) for each in seen.values())
            found.append(f"task {task}: {sides} had different inputs, so they do not compare")
    return found


def _at(plain: object, path: str) -> Any:
    for key in path.split("."):
        plain = plain.get(key) if isinstance(plain, dict) else None
    return plain
