"""What a stored job is worth, without running it again: accuracy, latency and layer table.

Every check passes, fails, or cannot be made and says why; an unknown one never counts as passed.
The whole fails where one failed, and passes where each that was asked for passed.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import structs

from farm import accuracy, npz, schema
from farm.accuracy import Limits, OutputError
from farm.catalog.rows import Row
from farm.errors import OK, Bad, NoResult, NoVerdict, Refused
from farm.schema import Failure, Latency, Layers, LayerTable, Quality, Stored
from farm.store import Store
from farm.sweep import arrays
from farm.trace import shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

Status = Literal["PASS", "FAIL", "UNKNOWN"]
_OUTCOME: Final = "outcome"
_NOT_KEPT: Final = "the output was not kept"  # as a profile warns of it


class Check(Stored, frozen=True, kw_only=True):
    """One question about the job and its answer; detail: the numbers behind it.

    asked: the whole depends on it, because a flag asked for it or because it is the outcome.
    """

    name: str
    status: Status
    detail: str
    asked: bool = False


class Verified(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.verified/v1"):
    """The verdict on a stored job; layers: its captured table, None if it has none."""

    profile_id: str
    job_id: str
    label: str
    status: Status
    checks: list[Check]
    p50_ms: float | None
    p50_lo_ms: float | None
    p50_hi_ms: float | None
    throughput_items_per_s: float | None
    errors: list[OutputError]
    layers: LayerTable | None
    null_reasons: dict[str, str]


def verify(
    store: Store,
    row: Row,
    *,
    label: str,
    reference: Path | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    max_p50_ms: float | None = None,
) -> Verified:
    """Return the verdict on a profile from what the store holds of it.

    reference: an NPZ with outputs under the names of the job's. atol: absolute; unless given, that
    of the precision times the largest reference value. rtol: that of the precision unless given.
    Raises Refused if the reference cannot be read or holds anything but numbers, Bad if what the
    store holds is damaged.
    """
    profile = row.profile
    bounds = accuracy.limits(profile.job.workload.precision, atol=atol, rtol=rtol)
    expected = None if reference is None else _reference(reference)
    errors, near = _accuracy(store, row, expected, bounds)
    table, layers = _layers(store, row)
    checks = [_outcome(row), _repeatable(row), near, _latency(row, max_p50_ms), layers]
    latency = profile.latency if isinstance(profile.latency, Latency) else None
    flow = profile.throughput
    numbers: dict[str, float | None] = {
        "p50_ms": latency.p50_ms if latency else None,
        "p50_lo_ms": latency.p50_lo_ms if latency else None,
        "p50_hi_ms": latency.p50_hi_ms if latency else None,
        "throughput_items_per_s": (
            flow.throughput_items_per_s if isinstance(flow, schema.Throughput) else None
        ),
    }
    return Verified(
        profile_id=row.profile_id,
        job_id=profile.job_id,
        label=label,
        status=_verdict(checks),
        checks=checks,
        **numbers,
        errors=errors,
        layers=None if table is None else _bare(table),
        null_reasons=_reasons(row, numbers, errors, table, layers),
    )


def ending(found: Verified) -> int:
    """Return the exit code that says it: that of Bad for FAIL, and where it is unknown of NoVerdict
    if a flag asked for what cannot be told, else of NoResult, as there is nothing to judge.
    """
    if found.status != "UNKNOWN":
        return OK if found.status == "PASS" else Bad.exit_code
    open_ones = {each.name for each in found.checks if each.asked and each.status == "UNKNOWN"}
    return NoResult.exit_code if open_ones == {_OUTCOME} else NoVerdict.exit_code


# ── the checks ───────────────────────────────────────────────────────────────────────────────────


def _outcome(row: Row) -> Check:
    """Whether the job ended well and its figures may be believed.

    An answer, such as out of memory, is neither good nor bad (rule 11 of the decisions), nor is
    what never ran.
    """
    failure, quality = row.profile.failure, row.profile.quality
    status: Status = "UNKNOWN"
    if isinstance(failure, Failure):
        detail = f"{failure.kind} in phase {failure.phase}: {failure.message}"
        never_ran = row.profile.status in ("pruned", "cancelled")
        status = "UNKNOWN" if never_ran or failure.kind in schema.ANSWERS else "FAIL"
    elif isinstance(quality, Quality):
        flags = ", ".join(quality.flags) or "no flag"
        detail = f"{quality.validity}, {quality.stability}: {flags}"
        status = "FAIL" if quality.validity == "invalid" else "PASS"
    else:
        detail = f"it is {row.profile.status}, and says nothing of its quality"
    return Check(name=_OUTCOME, status=status, detail=detail, asked=True)


def _repeatable(row: Row) -> Check:
    """Whether every process computed the same output from the same input."""
    digests = [each.output_digest for each in row.profile.repeats]
    if len(digests) < 2 or None in digests:
        return Check(name="repeatable", status="UNKNOWN", detail="it needs two repeats' outputs")
    count = len(set(digests))
    if count == 1:
        detail = f"{len(digests)} processes, one output to the bit"
        return Check(name="repeatable", status="PASS", detail=detail)
    # Different bits may still be the same answer: a sum in another order. Accuracy tells.
    detail = f"{count} different outputs of {len(digests)} processes; give --reference"
    return Check(name="repeatable", status="UNKNOWN", detail=detail)


def _latency(row: Row, most_ms: float | None) -> Check:
    latency, quality = row.profile.latency, row.profile.quality
    status: Status = "UNKNOWN"
    if not isinstance(latency, Latency):
        detail = "it has none"
    else:
        between = ""
        if latency.p50_lo_ms is not None and latency.p50_hi_ms is not None:
            between = f" [{latency.p50_lo_ms:.4g}, {latency.p50_hi_ms:.4g}]"
        detail = f"p50 {latency.p50_ms:.4g} ms{between}"
        if most_ms is None:
            detail += "; no --max-p50-ms was given"
        elif isinstance(quality, Quality) and quality.validity == "invalid":
            detail += ", which is invalid"
        else:
            status = "PASS" if latency.p50_ms <= most_ms else "FAIL"
            detail += f", {'within' if status == 'PASS' else 'over'} {most_ms:g} ms"
    return Check(name="latency", status=status, detail=detail, asked=most_ms is not None)


def _layers(store: Store, row: Row) -> tuple[LayerTable | None, Check]:
    kept = row.profile.artifacts.get("layer_table")
    if kept is None:
        why = row.profile.null_reasons.get("layers", "it has none")
        return None, Check(name="layers", status="UNKNOWN", detail=why)
    table = schema.decode(store.get(kept.key, sha256=kept.sha256), LayerTable)
    told = row.profile.layers
    same = isinstance(told, Layers) and (told.rows, told.iterations) == (
        len(table.rows),
        table.iterations,
    )
    detail = f"{len(table.rows)} rows over {table.iterations} iterations, {table.clock} clock"
    if not same:
        return table, Check(name="layers", status="FAIL", detail=detail)
    top = max(range(len(table.rows)), key=lambda at: table.rows[at].share_pct, default=None)
    why = "" if top is None else shares.doubt(table, top)
    if top is not None and why:
        detail += f"; its largest row, {table.rows[top].layer}, is not reliable: {why}"
    return table, Check(name="layers", status="UNKNOWN" if why else "PASS", detail=detail)


def _accuracy(
    store: Store,
    row: Row,
    expected: "Mapping[str, NDArray[Any]] | None",
    bounds: Limits,
) -> tuple[list[OutputError], Check]:
    if expected is None:
        detail = "no --reference was given"
        return [], Check(name="accuracy", status="UNKNOWN", detail=detail)
    kept = row.profile.artifacts.get("output")
    if kept is None:
        told = [each for each in row.profile.warnings if each.startswith(_NOT_KEPT)]
        detail = told[0] if told else f"{_NOT_KEPT}: it failed, or is larger than 1 MiB"
        return [], Check(name="accuracy", status="UNKNOWN", detail=detail, asked=True)
    data = io.BytesIO(store.get(kept.key, sha256=kept.sha256))
    found = npz.read(data, called=repr(kept.key), raises=Bad)
    for name in (*expected, *found):
        if not _alike(found.get(name), expected.get(name)):
            detail = f"output {name!r} is not alike on both sides"
            return [], Check(name="accuracy", status="FAIL", detail=detail, asked=True)
    errors = [accuracy.distance(name, found[name], expected[name], bounds) for name in expected]
    status: Status = "PASS" if all(each.within for each in errors) else "FAIL"
    detail = accuracy.worst(errors, bounds)
    return errors, Check(name="accuracy", status=status, detail=detail, asked=True)


# ── parts ────────────────────────────────────────────────────────────────────────────────────────


def _verdict(checks: list[Check]) -> Status:
    if any(each.status == "FAIL" for each in checks):
        return "FAIL"
    return "PASS" if all(each.status == "PASS" for each in checks if each.asked) else "UNKNOWN"


def _reference(file: Path) -> "dict[str, NDArray[Any]]":
    found = arrays.load(file, name=str(file), may_be_empty=True)
    for name, each in found.items():
        if not accuracy.is_numeric(each):
            why = f"it is of type {each.dtype}, and has no distance from anything"
            raise Refused(f"array {name!r} of {str(file)!r} holds no numbers", why=why)
    return found


def _alike(found: "NDArray[Any] | None", expected: "NDArray[Any] | None") -> bool:
    """Whether both are there with one shape, and numbers."""
    if found is None or expected is None:
        return False
    return accuracy.is_numeric(found) and found.shape == expected.shape


def _bare(table: LayerTable) -> LayerTable:
    """Return the table without its reasons, which stand in those of the whole document."""
    return structs.replace(table, null_reasons={})


def _reasons(
    row: Row,
    numbers: Mapping[str, float | None],
    errors: list[OutputError],
    table: LayerTable | None,
    layers: Check,
) -> dict[str, str]:
    told = row.profile.null_reasons
    where = {"throughput_items_per_s": "throughput.throughput_items_per_s"}
    reasons = {
        name: told.get(where.get(name, f"latency.{name}"), "phase_failed")
        for name, value in numbers.items()
        if value is None
    }
    for at, error in enumerate(errors):
        missing = "not_applicable" if error.max_abs is not None else "error: not finite"
        for name in ("max_abs", "max_rel", "rmse", "cosine", "argmax_agreement"):
            if getattr(error, name) is None:
                reasons[f"errors.{at}.{name}"] = missing
    if table is None:
        why = told.get("layers", "not_probed")
        return reasons | {"layers": why if layers.status == "UNKNOWN" else "error"}
    return reasons | {f"layers.{path}": why for path, why in table.null_reasons.items()}
