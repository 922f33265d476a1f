"""The figures of a cost report: the three kinds of evidence, each under its own key."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import UNSET

from farm import hardware
from farm.costs import sentences
from farm.costs.record import CostPacked, CostReport, CostTaken, CostTraining
from farm.hardware import GPUSpec, changes
from farm.hardware.changes import Part
from farm.schema import Bounds, Cost, Estimate, Hotspot, Latency, LayerTable, Memory, Profile
from farm.trace import shares

_MOST: Final = 5
_COST: Final = "cost."
Reasons = dict[str, str]


def report(
    profile: Profile,
    table: LayerTable | None,
    specs: Sequence[GPUSpec],
    *,
    given_ms: float | None = None,
) -> CostReport:
    """Return what a profile with a cost says of its model, beside the peaks of devices.

    table: of its layers, None without one. given_ms: a latency from elsewhere, of the device in
    specs if that is one; a measured one of the profile is used else. The profile has a cost.
    """
    cost, workload = profile.cost, profile.job.workload
    assert isinstance(cost, Cost), "a report is made of a cost"
    reasons = {path: why for path, why in profile.null_reasons.items() if path.startswith(_COST)}
    work = _work(cost, reasons)
    dtype = _dtype(workload.precision, cost)
    estimates = _estimates(work, specs, dtype=dtype, reasons=reasons)
    if given_ms is None:
        taken = _measured(profile, reasons)
    else:
        taken = _given(given_ms, estimates, work, cost=cost, reasons=reasons)
    parts = _parts(table)
    candidates = changes.candidates(parts, precision=dtype)
    limit = _limit(taken, estimates)
    seen = candidates if parts else None
    if table is None:
        missing = profile.null_reasons.get("layers", "not_probed")
        reasons |= dict.fromkeys(("hotspots", "candidates"), missing)
    return CostReport(
        model=workload.model.name,
        precision=workload.precision,
        batch=workload.batch,
        item=workload.item,
        cost=cost,
        training=_training(cost, reasons),
        packed=_packed(cost, reasons),
        estimates=estimates,
        taken=taken or UNSET,
        hotspots=None if table is None else [_spot(each) for each in parts[:_MOST]],
        candidates=None if table is None else [_spot(each) for each in candidates],
        quantisation_rule=changes.quantisation_rule("time"),
        answers=[
            sentences.bound(estimates, taken),
            sentences.layer(table),
            sentences.quantisation(cost, seen, dtype=dtype, bound=limit, specs=specs),
            sentences.caching(cost),
        ],
        null_reasons=reasons,
    )


def _dtype(precision: str, cost: Cost) -> str:
    """Return the word of the peak that counts: that of most weights where none was declared."""
    held = cost.param_dtypes or {}
    if precision != "unspecified" or not held:
        return "fp32" if precision == "unspecified" else precision
    return max(held, key=lambda word: held[word])


# ── the three kinds of evidence ──────────────────────────────────────────────────────────────────


def _work(cost: Cost, reasons: Mapping[str, str]) -> hardware.Work:
    moved = cost.bytes_lower_bound_per_batch
    why = {
        "flops": reasons.get("cost.flops_per_batch", ""),
        "moved_bytes": reasons.get("cost.bytes_lower_bound_per_batch", ""),
    }
    return hardware.Work(
        flops=cost.flops_per_batch,
        moved_bytes=moved,
        reasons={name: each for name, each in why.items() if each},
    )


def _estimates(
    work: hardware.Work, specs: Sequence[GPUSpec], *, dtype: str, reasons: Reasons
) -> list[Estimate]:
    """Return the rooflines, the quickest first and those with a gap last; notes their reasons."""
    found = [hardware.estimate(work, spec, dtype=dtype) for spec in specs]
    found.sort(key=lambda e: (e[0].roofline_ms is None, e[0].roofline_ms or 0.0, e[0].spec))
    for at, (_, why) in enumerate(found):
        reasons |= {f"estimates.{at}.{name}": each for name, each in why.items()}
    return [each for each, _ in found]


def _measured(profile: Profile, reasons: Reasons) -> CostTaken | None:
    latency, memory = profile.latency, profile.memory
    if not isinstance(latency, Latency):
        return None
    estimate = profile.estimate if isinstance(profile.estimate, Estimate) else None
    bounds = profile.bounds if isinstance(profile.bounds, Bounds) else None
    peak = memory.cpu_rss_peak_bytes if isinstance(memory, Memory) else None
    told = profile.null_reasons
    nulls = {
        "lo_ms": told.get("latency.p50_lo_ms", "not_probed"),
        "hi_ms": told.get("latency.p50_hi_ms", "not_probed"),
        "peak_memory_bytes": told.get("memory.cpu_rss_peak_bytes", "not_probed"),
        "estimate": told.get("estimate", "not_probed"),
        "bounds": told.get("bounds", "not_probed"),
    }
    taken = CostTaken(
        source="measured",
        p50_ms=latency.p50_ms,
        lo_ms=latency.p50_lo_ms,
        hi_ms=latency.p50_hi_ms,
        n=latency.n,
        device=profile.execution.device.name,
        peak_memory_bytes=peak,
        flags=profile.quality.flags if profile.quality is not UNSET else [],
        estimate=estimate,
        bounds=bounds,
    )
    reasons |= {f"taken.{name}": why for name, why in nulls.items() if getattr(taken, name) is None}
    for block in ("estimate", "bounds"):
        reasons |= {f"taken.{p}": why for p, why in told.items() if p.startswith(f"{block}.")}
    return taken


def _given(
    p50_ms: float,
    estimates: Sequence[Estimate],
    work: hardware.Work,
    *,
    cost: Cost,
    reasons: Reasons,
) -> CostTaken:
    """Return a latency that somebody knows from elsewhere; with one device, held against it."""
    parts = (cost.params_unique_bytes, cost.buffers_bytes, cost.activation_peak_bytes)
    known = [each for each in parts if each is not None]
    peak = sum(known) if len(known) == len(parts) else None
    alone = estimates[0] if len(estimates) == 1 else None
    unknown = "not_requested: one --spec says on which device that was"
    nulls = dict.fromkeys(("lo_ms", "hi_ms", "n"), "not_applicable: it was not measured here")
    if peak is None:
        nulls["peak_memory_bytes"] = reasons.get("cost.activation_peak_bytes", "not_probed")
    bounds = None
    if alone is None:
        nulls |= dict.fromkeys(("estimate", "bounds"), unknown)
    else:
        times = hardware.Times(p50_ms=p50_ms, on_gpu=True, peak_memory_bytes=peak)
        first = "estimates.0."
        why = {p.removeprefix(first): w for p, w in reasons.items() if p.startswith(first)}
        bounds, told = hardware.bounds(work, alone, times, reasons=why)
        nulls |= {f"estimate.{name}": each for name, each in why.items()}
        nulls |= {f"bounds.{name}": each for name, each in told.items()}
    reasons |= {f"taken.{name}": why for name, why in nulls.items()}
    return CostTaken(
        source="given",
        p50_ms=p50_ms,
        lo_ms=None,
        hi_ms=None,
        n=None,
        device=alone.spec if alone is not None else "",
        peak_memory_bytes=peak,
        flags=[],
        estimate=alone,
        bounds=bounds,
    )


def _training(cost: Cost, reasons: Reasons) -> CostTraining:
    flops, held = cost.flops_per_batch, cost.params_unique_bytes
    gradient = None
    if held is not None and cost.params_total is not None and cost.params_trainable is not None:
        gradient = held * cost.params_trainable // cost.params_total if cost.params_total else 0
    if flops is None:
        why = reasons.get("cost.flops_per_batch", "not_supported")
        reasons["training.backward_flops_per_batch"] = why
    if gradient is None:
        why = reasons.get("cost.params_unique_bytes", "not_supported")
        reasons |= dict.fromkeys(("training.gradient_bytes", "training.optimiser_bytes"), why)
    return CostTraining(
        not_measured=True,
        backward_flops_per_batch=None if flops is None else changes.backward_flops(flops),
        gradient_bytes=gradient,
        optimiser_bytes=None if gradient is None else changes.optimiser_bytes(gradient),
    )


def _packed(cost: Cost, reasons: Reasons) -> CostPacked:
    total, held = cost.params_total, cost.params_unique_bytes
    if total is None:
        why = reasons.get("cost.params_total", "not_supported")
        reasons["packed.modelled_int8_bytes"] = why
    if held is None:
        reasons["packed.actual_bytes"] = reasons.get("cost.params_unique_bytes", "not_supported")
    return CostPacked(
        modelled_int8_bytes=None if total is None else changes.modelled_bytes(total, "int8"),
        actual_bytes=held,
    )


def _parts(table: LayerTable | None) -> list[Part]:
    """Return the layers by their share of the time by medians, the largest first."""
    ranked = [] if table is None else shares.by_median(table)
    return [Part(row.layer, row.type, pct) for row, pct in ranked]


def _spot(part: Part) -> Hotspot:
    return Hotspot(layer=part.layer, type=part.type, share_pct=part.share_pct)


def _limit(taken: CostTaken | None, estimates: Sequence[Estimate]) -> str | None:
    """Return what limits it: as measured, else what the roofline says of most devices.

    A measurement that is not to be believed decides nothing, and neither do devices that are evenly
    split: then it is None.
    """
    bounds = None if taken is None or taken.not_to_be_believed else taken.bounds
    if bounds is not None and bounds.measured_bound is not None:
        return bounds.measured_bound
    said = Counter(each.roofline_bound for each in estimates if each.roofline_bound is not None)
    most = [side for side, n in said.items() if n == max(said.values())]
    return most[0] if len(most) == 1 else None
