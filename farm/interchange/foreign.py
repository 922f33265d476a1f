"""A callable JSON as it lies in a file: ours, or the other tool's, put in our terms."""

import math
import statistics
from collections.abc import Mapping, Sequence
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
from farm.reading import short
from farm.stats import percentiles

_THEIRS: Final = "not_probed: the tool that wrote this does not say"
_NOTE: Final = "read from another tool's file; its percentiles were taken anew from its samples"
# What that tool writes where it knows nothing (B6).
_UNKNOWN: Final = ("", "unknown", "n/a", 0)
_NO_CPU_NAMES: Final = ("x86_64", "amd64", "i386", "aarch64", "arm64", "arm")
LIMIT_BYTES: Final = 256 << 20
# A femtosecond and thirty years: no call takes less or more, and no sum of such overflows.
_SHORTEST_MS, _LONGEST_MS = 1e-12, 1e12
_CHANGED: Final = "the file was changed after it was measured; profile the callable again"
# Relative: sums in another order differ in the last digits, an edit in the first.
_AGREES: Final = 1e-6


def read(path: Path) -> CallableProfile:
    """Return the callable JSON in a file.

    Raises Refused if there is no such file, and Bad if it holds anything else, is damaged, or has
    no sample: percentiles are never taken on trust.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error
    return of_bytes(data, name=str(path))


def of_bytes(data: bytes, *, name: str) -> CallableProfile:
    """Return the callable JSON that the bytes are; raises Bad as `read` does."""
    if len(data) > LIMIT_BYTES:
        raise Bad(f"{name}: larger than {LIMIT_BYTES >> 20} MiB", why="no callable JSON is")
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Bad(f"{name}: not JSON", why=str(error)) from error
    if not is_callable(plain):
        raise Bad(f"{name}: not a callable JSON", why="it lacks the keys of one")
    try:
        found = schema.decode(data, CallableProfile) if "schema" in plain else _foreign(plain)
        _check_times(found)
    except (Bad, Refused) as error:
        raise Bad(f"{name}: {error.what}", why=error.why) from error
    except msgspec.ValidationError as error:
        raise Bad(f"{name}: not a callable JSON", why=str(error)) from error
    return found


def _check_samples(samples: Sequence[float]) -> None:
    if not samples:
        raise Bad("no sample")
    odd = next((each for each in samples if not _SHORTEST_MS <= each <= _LONGEST_MS), None)
    if odd is not None:
        raise Bad(f"a sample of {odd:g} ms is no time of a call")


def _check_count(field: str, told: int, samples: Sequence[float]) -> None:
    if told != len(samples):
        what = f"its {field} is {short(told)}, and its samples are {len(samples)}"
        raise Bad(what, why=_CHANGED)


def _check_times(found: CallableProfile) -> None:
    """Raise Bad for figures of ours that the samples beside them do not give."""
    samples, told, detail = found.latency_samples_ms, found.latency, found.latency_detail
    _check_samples(samples)
    _check_count("measured_calls", found.measured_calls, samples)
    _check_count("latency_detail.n", detail.n, samples)
    medians = detail.process_p50_ms
    low, high = min(samples), max(samples)
    for field, value, again in (
        ("p50_ms", told.p50_ms, statistics.median(medians) if medians else 0.0),
        ("p95_ms", told.p95_ms, percentiles.percentile(samples, 95)),
        ("p99_ms", told.p99_ms, percentiles.percentile(samples, 99)),
        ("mean_ms", told.mean_ms, statistics.fmean(samples)),
        ("latency_detail.p90_ms", detail.p90_ms, percentiles.percentile(samples, 90)),
        ("latency_detail.min_ms", detail.min_ms, low),
        ("latency_detail.max_ms", detail.max_ms, high),
    ):
        if not math.isclose(value, again, rel_tol=_AGREES):
            what = f"its {field} is {value}, and its samples give {again:.6g}"
            raise Bad(what, why=_CHANGED)
    least, most = low * (1 - _AGREES), high * (1 + _AGREES)
    for is_wrong, what in (
        (
            not all(least <= each <= most for each in medians),
            "a median of its processes lies outside its samples",
        ),
        (len(medians) > len(samples), "it names more processes than samples"),
        (detail.of_blocks < 1, f"each of its samples stands for {short(detail.of_blocks)} calls"),
        (found.warmup_calls < 0, f"its warmup_calls are {short(found.warmup_calls)}"),
    ):
        if is_wrong:
            raise Bad(what, why=_CHANGED)


def _foreign(plain: Mapping[str, Any]) -> CallableProfile:
    samples = _as(plain["latency_samples_ms"], list[float])
    _check_samples(samples)
    if "measured_calls" in plain:
        _check_count("measured_calls", _as(plain["measured_calls"], int), samples)
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
