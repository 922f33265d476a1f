"""A callable JSON as it lies in a file: ours, or the other tool's, put in our terms."""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from farm import schema
from farm.errors import Bad, Refused
from farm.interchange.document import (
    Array,
    CallableProfile,
    Peaks,
    Provenance,
    SystemCard,
    is_callable,
    realtime_budget,
)
from farm.interchange.figures import figures
from farm.stats import percentiles

_THEIRS: Final = "not_probed: the tool that wrote this does not say"
_NOTE: Final = "read from another tool's file; its percentiles were taken anew from its samples"
# What that tool writes where it knows nothing (B6).
_UNKNOWN: Final = ("", "unknown", "n/a", 0)
_NO_CPU_NAMES: Final = ("x86_64", "amd64", "i386", "aarch64", "arm64", "arm")
_LIMIT_BYTES: Final = 256 << 20
# Relative: sums in another order differ in the last digits, an edit in the first.
_AGREES: Final = 1e-6


def read(path: Path) -> CallableProfile:
    """Return the callable JSON in a file.

    Raises Refused if there is no such file, and Bad if it holds anything else, is damaged, or has
    no sample: percentiles are never taken on trust.
    """
    try:
        if path.stat().st_size > _LIMIT_BYTES:
            raise Bad(f"{path}: larger than {_LIMIT_BYTES >> 20} MiB", why="no callable JSON is")
        data = path.read_bytes()
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error
    return of_bytes(data, name=str(path))


def of_bytes(data: bytes, *, name: str) -> CallableProfile:
    """Return the callable JSON that the bytes are; raises Bad as `read` does."""
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Bad(f"{name}: not JSON", why=str(error)) from error
    if not is_callable(plain):
        raise Bad(f"{name}: not a callable JSON", why="it lacks the keys of one")
    try:
        found = schema.decode(data, CallableProfile) if "schema" in plain else _foreign(plain)
    except (Bad, Refused) as error:
        raise Bad(f"{name}: {error.what}", why=error.why) from error
    except msgspec.ValidationError as error:
        raise Bad(f"{name}: not a callable JSON", why=str(error)) from error
    _check_times(found, name)
    return found


def _check_times(found: CallableProfile, name: str) -> None:
    samples = found.latency_samples_ms
    if not samples:
        raise Bad(f"{name}: no sample")
    if not all(each > 0 and math.isfinite(each) for each in samples):
        raise Bad(f"{name}: a sample is no positive number of ms")
    told = found.latency
    process_medians = found.latency_detail.process_p50_ms
    for field, value, again in (
        ("p50_ms", told.p50_ms, statistics.median(process_medians) if process_medians else 0.0),
        ("p95_ms", told.p95_ms, percentiles.percentile(samples, 95)),
        ("p99_ms", told.p99_ms, percentiles.percentile(samples, 99)),
        ("mean_ms", told.mean_ms, statistics.fmean(samples)),
    ):
        if not math.isclose(value, again, rel_tol=_AGREES):
            raise Bad(
                f"{name}: its {field} is {value}, and its samples give {again:.6g}",
                why="the file was changed after it was measured; profile the callable again",
            )
    low, high = min(samples), max(samples)
    if not all(
        low <= each * (1 + _AGREES) and each <= high * (1 + _AGREES) for each in process_medians
    ):
        raise Bad(
            f"{name}: a median of its processes lies outside its samples",
            why="the file was changed after it was measured; profile the callable again",
        )


def _foreign(plain: Mapping[str, Any]) -> CallableProfile:
    samples = _as(plain["latency_samples_ms"], list[float])
    if not samples or min(samples) <= 0:
        raise Bad("no sample" if not samples else "a sample is no positive number of ms")
    taken = figures([samples], why_unknown=_THEIRS)
    nulls = {f"latency_detail.{path}": why for path, why in taken.reasons.items()}
    nulls |= dict.fromkeys(("card", "profile_id", "cost"), _THEIRS)
    digest = _text(plain.get("inputs_sha256"))
    if digest is None:
        nulls["inputs_sha256"] = _THEIRS
    notes = plain.get("notes", [])
    return CallableProfile(
        timing_scope=_as(plain["timing_scope"], str),
        device=_text(plain.get("device")) or "cpu",
        unit=_text(plain.get("unit")) or "request",
        warmup_calls=_as(plain.get("warmup_calls", 0), int),
        measured_calls=len(samples),
        inputs=_as(plain.get("inputs", {}), dict[str, Array]),
        latency=taken.latency,
        latency_samples_ms=samples,
        memory=_memory(_part(plain, "memory"), nulls),
        system_card=_system(_part(plain, "system_card"), nulls),
        notes=[*([notes] if isinstance(notes, str) else _as(notes, list[str])), _NOTE],
        model_callable=_as(plain["model_callable"], str),
        inputs_sha256=digest,
        latency_detail=taken.detail,
        realtime_budget=realtime_budget(taken.latency.p50_ms),
        flags=[],
        null_reasons=nulls,
        card=None,
        profile_id=None,
        tags={},
        provenance=_nothing(nulls),
        cost=None,
    )


def _memory(plain: Mapping[str, Any], nulls: dict[str, str]) -> Peaks:
    host = plain.get("cpu_process_lifetime_peak_mb")
    cuda = plain.get("cuda_peak_allocated_mb_by_visible_device")
    for name, value in (
        ("cpu_process_lifetime_peak_mb", host),
        ("cuda_peak_allocated_mb_by_visible_device", cuda or None),
    ):
        if value is None:
            nulls[f"memory.{name}"] = _THEIRS
    return Peaks(
        cpu_process_lifetime_peak_mb=_as(host, float | None),
        cuda_peak_allocated_mb_by_visible_device=_as(cuda or None, dict[str, float | None] | None),
    )


def _system(plain: Mapping[str, Any], nulls: dict[str, str]) -> SystemCard:
    """Return its card; an empty text, a zero, a GPU without a name stand for what is unknown."""
    found = {name: plain.get(name) for name in SystemCard.__struct_fields__}
    for name, value in found.items():
        if value in _UNKNOWN or (isinstance(value, str) and value.lower() in _UNKNOWN):
            found[name] = None
    if str(found["cpu_name"]).lower() in _NO_CPU_NAMES:
        found["cpu_name"] = None
    if found["gpu_name"] is None:
        found |= {"gpu_count": None, "gpu_memory_gb": None}
    nulls |= {f"system_card.{name}": _THEIRS for name, value in found.items() if value is None}
    card: SystemCard = _as(found, SystemCard)
    return card


def _nothing(nulls: dict[str, str]) -> Provenance:
    names = [each for each in Provenance.__struct_fields__ if each != "precision_observed"]
    nulls |= {f"provenance.{name}": _THEIRS for name in names}
    nothing: dict[str, Any] = dict.fromkeys(names)
    return Provenance(precision_observed={}, **nothing)


def _part(plain: Mapping[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = _as(plain.get(name) or {}, dict[str, Any])
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _as(value: object, kind: Any) -> Any:
    """Return plain data as one of the types of a field; the field's own type is checked with it."""
    return msgspec.convert(value, kind, strict=True)
