"""A roster against the profiles that are there: a table of what is sound, and every problem."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

import msgspec

from farm import commas
from farm.interchange.document import RosterValidation
from farm.report import words
from farm.roster import soundness
from farm.roster.choosing import find
from farm.roster.expected import Expected, Roster
from farm.roster.reports import Report, at

FIELDS: Final = (
    *("task", "model", "identity", "device", "precision", "batch", "unit"),
    *("parameters", "flops_per_item", "flops_status", "p50_ms", "p95_ms", "p99_ms", "mean_ms"),
    *("n", "memory_mib", "validity", "inputs", "source", "note"),
)
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


class _Allowed(NamedTuple):
    """What keeps its row, with a note, instead of being an error."""

    incomplete_flops: bool
    invalid: bool


def aggregate(
    roster: Roster,
    reports: Sequence[Report],
    *,
    allow_incomplete_flops: bool = False,
    allow_invalid: bool = False,
) -> Aggregate:
    """Return the table of a roster and its validation; any error makes it a FAIL (S1.40, S1.53).

    A row has an error, and is left out, if its profile is missing, failed, of another model,
    precision or batch, or no sound document, if its output was not finite, if its parameters or
    times are no positive finite numbers, or if a percentile exceeds a higher one. FLOPs that are
    unknown or counted in part are an error too, and so are invalid figures, unless they are
    allowed: then the row stays, with a note, as a degraded one does. All rows of a task must have
    had the same inputs (S1.42). That an optional model is missing is a note.
    """
    allowed = _Allowed(allow_incomplete_flops, allow_invalid)
    rows: list[Row] = []
    notes: list[str] = []
    count = 0
    errors = [f"{each.where}: {each.trouble}" for each in reports if each.trouble]
    sound = [each for each in reports if not each.trouble]
    claimed = {each.lies_in for each in roster.models}
    for each in sorted(roster.models, key=lambda each: (each.task, each.model)):
        chosen = find(each, sound, claimed=claimed)
        if chosen.report is None:
            missing = notes if each.optional and chosen.missing else errors
            missing.append(f"{each.model}: {chosen.trouble}")
            continue
        count += 1
        found = _checked(each, chosen.report, allowed, chosen=chosen.note)
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


def _checked(wanted: Expected, report: Report, allowed: _Allowed, *, chosen: str) -> _Checked:
    """Return the row of a report; chosen: the note on why it is this one, or ""."""
    plain = report.plain
    errors: list[str] = []
    notes = [chosen] if chosen else []
    if report.failed:
        return _Checked(None, [report.failed], notes)
    row: Row = dict.fromkeys(FIELDS)
    for name in _TIMES:
        row[name] = _positive(plain, f"latency.{name}", errors)
    cost, why = _cost(wanted, plain, errors)
    row |= cost
    if why:
        (notes if allowed.incomplete_flops else errors).append(why)
    for name, value in report.said.items():
        row[name] = value if isinstance(value, str) or _is_number(value) else None
    row["memory_mib"] = _memory(row["memory_mib"], in_bytes=not report.is_callable)
    flags = at(plain, "flags" if report.is_callable else "quality.flags")
    if isinstance(flags, list) and _NONFINITE in flags:
        errors.append("its output was not finite")
    if row["validity"] not in ("valid", None):
        said = ", ".join(map(str, flags)) if isinstance(flags, list) else ""
        bad = row["validity"] == "invalid" and not allowed.invalid
        (errors if bad else notes).append(f"{row['validity']}: {said}")
    if not errors:
        fault = soundness.fault(report)
        errors += [fault] if fault else soundness.disorder(row)
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
    status = at(plain, "cost.flops_status")
    coverage = at(plain, "cost.flops_coverage")
    row["flops_status"] = status if isinstance(status, str) else None
    if at(plain, "cost.flops_per_item") is None:
        return row, f"FLOPs unknown ({status or 'not counted'})"
    row["flops_per_item"] = _positive(plain, "cost.flops_per_item", errors)
    covered = coverage if _is_number(coverage) else None
    if status != "measured" or (covered is not None and covered < 1):
        said = f", {words.share(covered)} % of the calls" if covered is not None else ""
        return row, f"FLOPs incomplete ({status}{said})"
    return row, ""


def _memory(value: object, *, in_bytes: bool) -> float | None:
    """Return a peak in MiB; None where it is no positive number."""
    if not _is_number(value) or value <= 0:
        return None
    return value / 2**20 if in_bytes else value


def _is_number(value: object) -> TypeGuard[int | float]:
    """Tell if a value is a finite number: JSON's whole numbers can be larger than any float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _positive(
    plain: Mapping[str, Any], path: str, errors: list[str], *, whole: bool = False
) -> float | int | None:
    """Return a number, or None with an error that says what stands in its place."""
    value = at(plain, path)
    kinds = (int,) if whole else (int, float)
    if value is None:
        errors.append(f"{path} is missing")
    elif isinstance(value, bool) or not isinstance(value, kinds):
        errors.append(f"{path} is {str(value)[:40]!r}, no {'whole ' if whole else ''}number")
    elif not _is_number(value) or value <= 0:
        errors.append(f"{path} is {str(value)[:40]}, not positive and finite")
    else:
        return value
    return None


def _inputs(plain: Mapping[str, Any], *, is_callable: bool) -> str | None:
    """Return what tells equal inputs: a digest, or else the specification they were drawn from."""
    path = "inputs_sha256" if is_callable else "job.workload.inputs.digest"
    digest = at(plain, path)
    if isinstance(digest, str):
        return digest
    spec = at(plain, "inputs" if is_callable else "job.workload.inputs")
    return msgspec.json.encode(spec).decode() if spec else None


def _mixed(rows: Sequence[Row]) -> list[str]:
    """Return an error for each task whose rows had different inputs."""
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
