"""The four questions that a cost report answers, each in a sentence that names its evidence."""

from collections.abc import Sequence
from typing import Final

from farm.costs.record import CostSaid, CostTaken
from farm.hardware import GPUSpec, changes
from farm.hardware.changes import Part
from farm.report import words
from farm.schema import Bounds, Cost, Estimate, LayerRow, LayerTable
from farm.trace import layers as layer_tables
from farm.trace import shares

_LIMITS: Final = {
    "compute": "compute limits it",
    "memory": "memory limits it",
    "balanced": "compute and memory limit it alike",
    "overhead": "overhead limits it, which no roof explains",
    "launch": "kernel launches limit it",
    "transfer": "transfers between host and device limit it",
}
_ELSEWHERE: Final = ("overhead", "launch", "transfer")
_WORTH: Final = 0.05  # of the bytes: less is not worth a change


def bound(estimates: Sequence[Estimate], taken: CostTaken | None) -> CostSaid:
    """Return what limits the model: as measured, by the roofline, and by the rule of thumb.

    The words of the three stand side by side and are never mixed (C10).
    """
    said = []
    bounds = taken.bounds if taken is not None else None
    if taken is not None and bounds is not None:
        wrong = taken.not_to_be_believed
        source = f"measured, but not to be believed ({', '.join(wrong)})" if wrong else taken.source
        said += [f"{source}: {each}" for each in _by_time(bounds)]
    said += _by_roofline(estimates)
    if bounds is not None and bounds.heuristic_bound is not None:
        said.append(f"by the rule of thumb, which is no bandwidth: {bounds.heuristic_bound}")
    return CostSaid(question="bound", said="; ".join(said) or "no peak of any device is known")


def _by_time(bounds: Bounds) -> list[str]:
    used = [
        f"{words.percent(share)} % of peak {name}"
        for share, name in ((bounds.mfu, "FLOP/s"), (bounds.mbu, "bandwidth"))
        if share is not None
    ]
    if bounds.roof_violation:
        return ["it was quicker than its peaks allow, so one of the numbers is wrong"]
    if bounds.measured_bound is None:
        return [", ".join(used)] if used else []
    return [", ".join([_LIMITS[bounds.measured_bound], *used])]


def _by_roofline(estimates: Sequence[Estimate]) -> list[str]:
    known = [each for each in estimates if each.roofline_bound is not None]
    if len(known) == 1:
        one = known[0]
        intensity = words.number(one.arithmetic_intensity_flop_per_byte)
        ridge = words.number(one.ridge_flop_per_byte)
        where = f"{intensity} FLOP/byte, ridge at {ridge}"
        return [f"by the roofline of {one.spec}, not measured: {one.roofline_bound} ({where})"]
    counts = {
        side: sum(each.roofline_bound == side for each in known) for side in ("compute", "memory")
    }
    sides = [f"{side} on {n} of {len(known)} devices" for side, n in counts.items() if n]
    return [f"by the roofline, not measured: {', '.join(sides)}"] if sides else []


def layer(table: LayerTable | None) -> CostSaid:
    """Return which layer dominates, its share of the time by medians, of the FLOPs, of the peak."""
    if table is None or not table.rows:
        return CostSaid(question="layer", said="no layer was timed")
    top, pct = shares.by_median(table)[0]
    told = [f"{top.layer} ({top.type}) takes {words.percent(pct / 100)} % of the time"]
    if top.pct_of_peak is not None:
        told[0] += f" at {words.percent(top.pct_of_peak / 100)} % of peak"
    if (share := _of_flops(top, table)) is not None:
        told.append(f"and does {words.percent(share)} % of the FLOPs")
    if table.perturbation is not None:
        cost = layer_tables.overhead(table.perturbation)
        told.append(f"(profiled {cost.factor:.2f} times as long as clean: {cost.word} overhead)")
    return CostSaid(question="layer", said=" ".join(told))


def _of_flops(row: LayerRow, table: LayerTable) -> float | None:
    total = sum(each.flops_per_batch or 0 for each in table.rows)
    return None if not total or row.flops_per_batch is None else row.flops_per_batch / total


def quantisation(
    cost: Cost,
    candidates: Sequence[Part] | None,
    *,
    dtype: str,
    bound: str | None,
    specs: Sequence[GPUSpec],
) -> CostSaid:
    """Return whether weights of 8 bits would pay, why, and which layers to begin with.

    candidates: None where no layer was timed. Only where something else than compute and memory
    limits it, which no layer changes, is there an answer without them.
    """
    said = _would_pay(cost, candidates, dtype=dtype, bound=bound, specs=specs)
    if candidates:
        kinds = [each.type for each in candidates]
        named = [
            f"{kinds.count(kind)} {kind} ({words.percent(share / 100)} % of the time)"
            for kind, share in changes.by_type(candidates).items()
        ]
        said += f"; candidates: {words.listed(named)}"
    return CostSaid(question="quantisation", said=said)


def _would_pay(
    cost: Cost,
    candidates: Sequence[Part] | None,
    *,
    dtype: str,
    bound: str | None,
    specs: Sequence[GPUSpec],
) -> str:
    if bound in _ELSEWHERE:
        return f"would hardly pay: {_LIMITS[bound]}, and integers do not change that"
    if candidates is None:
        return "cannot be told: no layer was timed"
    if not candidates:
        return "would hardly pay: no layer with floating-point weights takes enough of the time"
    saved = None
    if cost.bytes_lower_bound_per_batch and cost.params_total is not None:
        moved = cost.bytes_lower_bound_per_batch
        saved = changes.bytes_saved(moved, cost.params_total, precision=dtype)
    if bound == "memory" and saved is not None:
        less = f"weights of 8 bits move up to {words.percent(saved)} % fewer bytes"
        return f"would pay: {less}" if saved >= _WORTH else f"would hardly pay: {less}"
    if bound in ("compute", "balanced"):
        return f"would pay only where integers are multiplied faster: {_faster(specs, dtype)}"
    return "cannot be told: nothing settles what limits it"


def _faster(specs: Sequence[GPUSpec], dtype: str) -> str:
    peaks = [each.peak_flops_per_s for each in specs]
    ratios = sorted(each["int8"] / each[dtype] for each in peaks if {"int8", dtype} <= each.keys())
    if not ratios:
        return "no such device is listed"
    low, high = f"{ratios[0]:.2g}", f"{ratios[-1]:.2g}"
    times = f"{low} times" if low == high else f"{low} to {high} times"
    return f"int8 peaks are {times} those of {dtype} on {words.count(len(ratios), 'device')}"


def caching(cost: Cost) -> CostSaid:
    """Return whether keeping parts of the work would pay; only attention looks at earlier steps."""
    if cost.attention is None:
        said = "not known: nobody saw whether it has attention"
    elif cost.attention == "none":
        said = (
            "would not pay inside it: nothing attends to earlier steps, so that only an equal "
            "input could be answered from a cache"
        )
    else:
        said = (
            "keys and values would pay to keep where it generates token by token, which else "
            "computes all of them anew at each step; for one pass over a whole input they would not"
        )
    return CostSaid(question="caching", said=said)
