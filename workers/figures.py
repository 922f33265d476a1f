"""From raw records to figures: statistics, flags and what they mean for a profile.

A flag is a named doubt. Its effect is `invalid` (never compared), `degraded` (never a baseline) or
a note; the worst effect of the repeats that count is the validity of the profile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farm.schema import (
    Latency,
    Percentile,
    Quality,
    Repeat,
    Throughput,
    validity,
)
from farm.stats import labels as labelled
from farm.stats import percentiles, processes, spread
from workers import disturbance
from workers.bench import LABEL_UNEXPLAINED
from workers.record import Record

Arrays = Mapping[str, NDArray[Any]]

_FIXED = (50, 90, 95, 99)  # percentiles with fields of their own
_WHY_NULL = {
    "first_ms": "not_requested",
    "compile_s": "not_applicable",
    "compile_iterations": "not_applicable",
    "recompiles": "not_applicable",
    "std_ms": "single_sample",
    "throughput_items_per_s": "phase_failed",
    "cpu_rss_peak_bytes": "not_supported",
    "drift_rel": "below_resolution",
    "lag1": "below_resolution",
    "output_digest": "not_applicable",
}
# What was not quiet, and what nobody could see.
_LOUD = frozenset(
    (
        *("busy_siblings", "contended", "device_fault", "foreign_gpu_process", "not_quiet"),
        *("suspect_device", "throttled"),
    )
)
_UNSEEN = frozenset(("contention_unknown", "gates_off", "sharing_unknown", "throttle_unknown"))


@dataclass(frozen=True)
class Taken:
    """One repeat that ended well: its record, its arrays, its figures and what it could not have.

    nulls: reason by field of the repeat. neighbours: who used the leased cores meanwhile.
    """

    record: Record
    arrays: Arrays
    repeat: Repeat
    nulls: dict[str, str]
    neighbours: tuple[str, ...] = ()

    @property
    def is_invalid(self) -> bool:
        return validity(self.repeat.flags) == "invalid"


def taken(record: Record, arrays: Arrays, *, batch: int, neighbours: tuple[str, ...]) -> Taken:
    """Return the figures of one repeat from its record and its sample arrays (ns)."""
    samples = np.asarray(arrays["latency_ns"], dtype=np.float64) / 1e6
    judged = partial(disturbance.of_pass, loaders=record.loaders, neighbours=neighbours)
    shares, doubts = judged(record.latency_edges)
    if record.throughput_edges is not None:  # a neighbour may come when the latency is done
        doubts += judged(record.throughput_edges)[1]
    values = _values(record, samples, batch) | _compiling(record) | shares
    reasons = _WHY_NULL | dict.fromkeys(shares, "not_supported")
    if "throughput" in record.reasons:
        reasons["throughput_items_per_s"] = record.reasons["throughput"]
    flags = [
        *record.flags,
        *doubts,
        *(["drifting"] if spread.is_drifting(samples) else []),
        *(["bimodal"] if spread.bimodal(samples) else []),
    ]
    assert record.warmup is not None
    repeat = Repeat(
        index=record.index,
        started_at=record.started_at,
        import_s=record.import_s,
        load_s=record.load_s,
        warmup_iterations=record.warmup.iterations,
        warmup_s=record.warmup.seconds,
        warmup_stop=record.warmup.stop,
        n=len(samples),
        n_eff=percentiles.published_n(samples, 50),
        mean_ms=float(samples.mean()),
        min_ms=float(samples.min()),
        max_ms=float(samples.max()),
        p50_ms=percentiles.percentile(samples, 50),
        p90_ms=percentiles.percentile(samples, 90),
        p95_ms=percentiles.percentile(samples, 95),
        p99_ms=percentiles.percentile(samples, 99),
        outlier_share=spread.outlier_share(samples),
        flags=sorted(set(flags)),
        phases=record.phases,
        **values,
    )
    nulls = {name: reasons[name] for name, value in values.items() if value is None}
    return Taken(record, arrays, repeat, nulls, neighbours)


def counted(repeats: Sequence[Taken]) -> list[Taken]:
    """Return the repeats a headline uses: those not invalid, or all when every one is."""
    return [each for each in repeats if not each.is_invalid] or list(repeats)


def latency(
    repeats: Sequence[Taken], *, batch: int, asked: Sequence[float] = ()
) -> tuple[Latency, dict[str, str]]:
    """Return the latency block over repeats, and the reasons of its nulls by field.

    asked: percentiles, of which those without a field of their own come as a list.

    The headline is the median of process medians, its interval over processes; other percentiles
    are of the pooled samples (`measurement.md` §7).
    """
    per_process = [_samples_ms(each) for each in repeats]
    pooled = np.concatenate(per_process)
    labels = np.concatenate([np.asarray(t.arrays["label_bits"]) for t in repeats])
    clean = labelled.clean(pooled, (labels & ~np.uint8(LABEL_UNEXPLAINED)) != 0)
    fields, nulls = _headline([each.repeat.p50_ms for each in repeats])
    fields["std_ms"] = spread.std(pooled)
    fields["clean_p50_ms"] = clean.p50
    for name, why in (("std_ms", "single_sample"), ("clean_p50_ms", "below_resolution")):
        if fields[name] is None:
            nulls[name] = why
    for q in _FIXED[1:]:
        found, reasons = _percentile(per_process, q)
        fields |= {f"p{q}_{name}": value for name, value in found.items()}
        nulls |= {f"p{q}_{name}": reason for name, reason in reasons.items()}
    fields["p50_item_ms"] = fields["p50_ms"] / batch
    fields["percentiles"], reasons = _further(per_process, [q for q in asked if q not in _FIXED])
    nulls |= reasons
    block = Latency(
        n=len(pooled),
        n_eff=sum(each.repeat.n_eff for each in repeats),
        mean_ms=float(pooled.mean()),
        mad_ms=spread.mad(pooled),
        iqr_rel=spread.iqr_rel(pooled),
        min_ms=float(pooled.min()),
        max_ms=float(pooled.max()),
        timer_floor_ns=max(each.record.timer_floor_ns for each in repeats),
        of_blocks=max(each.record.of_blocks for each in repeats),
        clean_share=clean.share,
        **fields,
    )
    return block, nulls


def _percentile(
    per_process: Sequence[NDArray[np.float64]], q: float
) -> tuple[dict[str, Any], dict[str, str]]:
    point = processes.pooled(per_process, q)
    found = {"ms": point.value, "lo_ms": point.lo, "hi_ms": point.hi, "reliable": point.reliable}
    return found, dict.fromkeys(("lo_ms", "hi_ms"), point.reason) if point.lo is None else {}


def _further(
    per_process: Sequence[NDArray[np.float64]], asked: Sequence[float]
) -> tuple[list[Percentile], dict[str, str]]:
    made: list[Percentile] = []
    nulls: dict[str, str] = {}
    for index, q in enumerate(asked):
        found, why = _percentile(per_process, q)
        made.append(Percentile(q=q, value_ms=found.pop("ms"), **found))
        nulls |= {f"percentiles.{index}.{name}": reason for name, reason in why.items()}
    return made, nulls


def throughput(repeats: Sequence[Taken]) -> tuple[Throughput, dict[str, str]]:
    """Return the throughput block: the median over repeats of the pass of its own."""
    values = [t.repeat.throughput_items_per_s for t in repeats]
    known = [each for each in values if each is not None]
    method = repeats[0].record.throughput_method  # the same device for all of them
    windows = [t.record.throughput_window_s for t in repeats if t.record.throughput_window_s]
    if not known:
        names = ("throughput_items_per_s", "lo", "hi", "window_s")
        empty = Throughput(
            throughput_items_per_s=None, lo=None, hi=None, window_s=None, method=method
        )
        why = repeats[0].nulls.get("throughput_items_per_s", "phase_failed")
        return empty, dict.fromkeys(names, why)
    head = processes.headline(known)
    block = Throughput(
        throughput_items_per_s=head.value,
        lo=head.lo,
        hi=head.hi,
        window_s=float(np.median(windows)),
        method=method,
    )
    return block, {} if head.lo is not None else {"lo": head.reason, "hi": head.reason}


def quality(
    repeats: Sequence[Taken], block: Latency, *, wanted: int, slot_flags: Sequence[str]
) -> Quality:
    """Return the doubts of a whole profile, from the repeats that its headline uses."""
    flags = {flag for each in repeats for flag in each.repeat.flags} | set(slot_flags)
    if sum(not each.is_invalid for each in repeats) < wanted:
        flags.add("repeats_missing")
    if block.proc_cv is not None and block.proc_cv > processes.DISAGREE:
        flags.add("processes_disagree")
    waits = [each.repeat.wait_share for each in repeats]
    quiet = "true" if _LOUD.isdisjoint(flags) else "false"
    if quiet == "true" and (not _UNSEEN.isdisjoint(flags) or None in waits):
        quiet = "unknown"
    drifts = [spread.drift(_samples_ms(each)) for each in repeats]
    return Quality(
        validity=validity(sorted(flags)),
        stability=processes.stability(
            iqr_rel=max(spread.iqr_rel(_samples_ms(each)) for each in repeats),
            drift=max((each for each in drifts if each is not None), key=abs, default=None),
            proc_cv=block.proc_cv,
            caused_share=1.0 - block.clean_share,
            bimodal="bimodal" in flags,
            n=block.n,
            repeats=len(repeats),
        ),
        quiet=quiet,  # type: ignore[arg-type]
        flags=sorted(flags),
        neighbours=sorted(
            {who for t in repeats if "contended" in t.repeat.flags for who in t.neighbours}
        ),
    )


def _values(record: Record, samples: NDArray[np.float64], batch: int) -> dict[str, Any]:
    """Return the fields of a repeat that may have no value."""
    return {
        "first_ms": record.first_ms,
        "std_ms": spread.std(samples),
        "throughput_items_per_s": _items_per_s(record, batch),
        "cpu_rss_peak_bytes": record.memory.rss_peak_bytes if record.memory else None,
        "drift_rel": spread.drift_rel(samples),
        "lag1": spread.lag1(samples),
        "output_digest": record.output_digest or None,
    }


def _compiling(record: Record) -> dict[str, Any]:
    found = record.compiling
    return {
        "compile_s": found.seconds if found else None,
        "compile_iterations": found.iterations if found else None,
        "recompiles": found.recompiles if found else None,
    }


def _headline(medians: list[float]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what process medians (ms) say together, and why a part of it is null."""
    head = processes.headline(medians)
    logs = np.log(np.asarray(medians))
    fields: dict[str, Any] = {
        "proc_cv": processes.proc_cv(medians),
        "log_mean": float(logs.mean()),
        "log_std": spread.std(logs),
        "p50_ms": head.value,
        "p50_lo_ms": head.lo,
        "p50_hi_ms": head.hi,
        "p50_reliable": head.lo is not None,
    }
    reasons = {"p50_lo_ms": head.reason, "p50_hi_ms": head.reason}
    reasons |= {"proc_cv": "single_repeat", "log_std": "single_repeat"}
    return fields, {name: why for name, why in reasons.items() if fields[name] is None}


def _samples_ms(one: Taken) -> NDArray[np.float64]:
    return np.asarray(one.arrays["latency_ns"], dtype=np.float64) / 1e6


def _items_per_s(record: Record, batch: int) -> float | None:
    count, window = record.throughput_iterations, record.throughput_window_s
    return batch * count / window if count and window else None
