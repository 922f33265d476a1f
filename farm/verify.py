"""What a stored job is worth, without running it again: accuracy, latency and layer table.

Every check passes, fails, or cannot be made and says why; an unknown one never counts as passed.
The whole passes where none failed and at least one passed.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from zipfile import BadZipFile

import numpy as np
from msgspec import structs

from farm import schema
from farm.catalog.rows import Row
from farm.errors import Bad
from farm.schema import Failure, Latency, Layers, LayerTable, Quality, Stored
from farm.store import Store
from farm.sweep import arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

Status = Literal["PASS", "FAIL", "UNKNOWN"]

# How far outputs of a precision may lie from a reference that was computed in fp32 or wider:
# (absolute, relative). A few hundred units in the last place of a number near 1.
TOLERANCES: Final[Mapping[str, tuple[float, float]]] = {
    "fp32": (1e-5, 1e-4),
    "unspecified": (1e-5, 1e-4),
    "fp16": (2e-2, 2e-2),
    "bf16": (1e-1, 1e-1),
}


class Check(Stored, frozen=True, kw_only=True):
    """One question about the job and its answer; detail: the numbers behind it."""

    name: str
    status: Status
    detail: str


class OutputError(Stored, frozen=True, kw_only=True):
    """How far one output lies from its reference; argmax_agreement: along the last axis.

    A distance is null where a number on either side is not finite, and nothing is within then.
    Source: numpy's `isclose`, |a − b| ≤ atol + rtol·|b|, decides `within`.
    """

    output: str
    items: int
    max_abs: float | None
    max_rel: float | None
    rmse: float | None
    cosine: float | None
    argmax_agreement: float | None
    within: bool


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

    reference: an NPZ with outputs under the names of the job's. atol, rtol: those of the precision
    unless given. Raises Refused if the reference cannot be read.
    """
    profile = row.profile
    usual = TOLERANCES[profile.job.workload.precision]
    limits = (usual[0] if atol is None else atol, usual[1] if rtol is None else rtol)
    expected = None
    if reference is not None:
        expected = arrays.load(reference, name=str(reference), may_be_empty=True)
    errors, accuracy = _accuracy(store, row, expected, limits)
    table, layers = _layers(store, row)
    checks = [_outcome(row), _repeatable(row), accuracy, _latency(row, max_p50_ms), layers]
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
    made = Verified(
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
    return made


# ── the checks ───────────────────────────────────────────────────────────────────────────────────


def _outcome(row: Row) -> Check:
    """Whether the job ended well and its figures may be believed."""
    failure, quality = row.profile.failure, row.profile.quality
    if isinstance(failure, Failure):
        said = f"{failure.kind} in phase {failure.phase}: {failure.message}"
        return Check(name="outcome", status="FAIL", detail=said)
    if not isinstance(quality, Quality):
        return Check(name="outcome", status="UNKNOWN", detail="it says nothing of its quality")
    flags = ", ".join(quality.flags) or "no flag"
    bad = quality.validity == "invalid"
    detail = f"{quality.validity}, {quality.stability}: {flags}"
    return Check(name="outcome", status="FAIL" if bad else "PASS", detail=detail)


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
    if not isinstance(latency, Latency):
        return Check(name="latency", status="UNKNOWN", detail="it has none")
    between = ""
    if latency.p50_lo_ms is not None and latency.p50_hi_ms is not None:
        between = f" [{latency.p50_lo_ms:.4g}, {latency.p50_hi_ms:.4g}]"
    shown = f"p50 {latency.p50_ms:.4g} ms{between}"
    if most_ms is None:
        return Check(name="latency", status="UNKNOWN", detail=f"{shown}; no --max-p50-ms was given")
    if isinstance(quality, Quality) and quality.validity == "invalid":
        return Check(name="latency", status="UNKNOWN", detail=f"{shown}, which is invalid")
    good = latency.p50_ms <= most_ms
    detail = f"{shown}, {'within' if good else 'over'} {most_ms:g} ms"
    return Check(name="latency", status="PASS" if good else "FAIL", detail=detail)


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
    return table, Check(name="layers", status="PASS" if same else "FAIL", detail=detail)


def _accuracy(
    store: Store,
    row: Row,
    expected: "Mapping[str, NDArray[Any]] | None",
    limits: tuple[float, float],
) -> tuple[list[OutputError], Check]:
    if expected is None:
        detail = "no --reference was given"
        return [], Check(name="accuracy", status="UNKNOWN", detail=detail)
    kept = row.profile.artifacts.get("output")
    if kept is None:
        detail = "its output was not kept: it failed, or is larger than 1 MiB"
        return [], Check(name="accuracy", status="UNKNOWN", detail=detail)
    found = _opened(kept.key, store.get(kept.key, sha256=kept.sha256))
    for name in (*expected, *found):
        if name not in found or name not in expected or found[name].shape != expected[name].shape:
            detail = f"output {name!r} is not alike on both sides"
            return [], Check(name="accuracy", status="FAIL", detail=detail)
    errors = [_error(name, found[name], expected[name], limits) for name in expected]
    good = all(each.within for each in errors)
    known = [each.max_abs for each in errors if each.max_abs is not None]
    worst = f"{max(known):.3g}" if known and len(known) == len(errors) else "not finite"
    detail = f"largest difference {worst}, atol {limits[0]:g}, rtol {limits[1]:g}"
    return errors, Check(name="accuracy", status="PASS" if good else "FAIL", detail=detail)


def _error(
    name: str, found: "NDArray[Any]", expected: "NDArray[Any]", limits: tuple[float, float]
) -> OutputError:
    a, b = found.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    with np.errstate(all="ignore"):  # what is not finite is told as such
        off = np.abs(a - b)
        size = float(np.linalg.norm(a) * np.linalg.norm(b))
        along = float(a @ b)
    nonzero = b != 0
    agreement = None
    if expected.ndim >= 2 and expected.shape[-1] > 1:
        agreement = float(np.mean(found.argmax(axis=-1) == expected.argmax(axis=-1)))
    return OutputError(
        output=name,
        items=a.size,
        max_abs=_finite(off.max(initial=0.0)),
        max_rel=_finite((off[nonzero] / np.abs(b[nonzero])).max()) if nonzero.any() else None,
        rmse=_finite(np.sqrt(np.mean(off**2))) if a.size else 0.0,
        cosine=_finite(along / size) if size > 0 else None,
        argmax_agreement=agreement,
        within=bool(np.all(off <= limits[0] + limits[1] * np.abs(b))),
    )


# ── parts ────────────────────────────────────────────────────────────────────────────────────────


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _verdict(checks: list[Check]) -> Status:
    said = {each.status for each in checks}
    return "FAIL" if "FAIL" in said else "PASS" if "PASS" in said else "UNKNOWN"


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


def _opened(name: str, data: bytes) -> "dict[str, NDArray[Any]]":
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return {each: file[each] for each in file.files}
    except (BadZipFile, EOFError, OSError, ValueError, AttributeError) as error:
        raise Bad(f"{name!r} is no NPZ of arrays", why=str(error)[:200]) from error
