"""A cost report for a person: the answers first, then each kind of evidence under its name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from farm.costs.record import CostTaken
from farm.report import words
from farm.report.table import Column, Datum, Table
from farm.schema import WeightSpread

if TYPE_CHECKING:
    from farm.costs.record import CostReport
    from farm.schema import Cost, Estimate

NOT_MEASURED: Final = (
    "not measured: computed from peaks, so a device may need longer and never less"
)
_HEURISTIC: Final = (
    "the rule of thumb compares peak memory over latency (no bandwidth) with 100 times GFLOP/s"
)


def screen(found: "CostReport") -> list[str | Table]:
    """Return the whole report; a null is shown as `–`, and its reason in a note or line."""
    title = f"{found.model}, {found.precision}, batch {found.batch}"
    shown: list[str | Table] = [title, *(_answer(*each) for each in _pairs(found))]
    shown += [_answer("rule", found.quantisation_rule)]
    shown += ["", "cost, from the model", *_cost(found), "", *_training(found)]
    if found.estimates:
        shown.append(_estimates(found.estimates))
    if found.hotspots:
        spots = ", ".join(f"{each.layer} {each.share_pct:.0f} %" for each in found.hotspots)
        shown += ["measured here, in a profiled pass of which shares alone count"]
        shown += [_answer("layers", f"{spots} of the time")]
    if isinstance(found.taken, CostTaken):
        shown += ["", *_taken(found.taken, found.item, found.batch, found.null_reasons)]
    return shown


def _pairs(found: "CostReport") -> list[tuple[str, str]]:
    return [(each.question, each.said) for each in found.answers]


def _answer(name: str, said: str) -> str:
    return f"{name:<14}{said}"


def _cost(found: "CostReport") -> list[str]:
    cost, why = found.cost, found.null_reasons
    held = ", ".join(f"{name} {words.size(n)}" for name, n in (cost.param_dtypes or {}).items())
    total, trained = words.whole(cost.params_total), words.whole(cost.params_trainable)
    lines = [
        _answer("parameters", f"{total}, {trained} trainable; {held}"),
        _answer("FLOPs", _flops(cost, found.item, why)),
        _answer("moved", _bytes(cost.bytes_lower_bound_per_batch, "at least, per batch")),
        _answer("activations", _bytes(cost.activation_peak_bytes, "at most at once")),
        _answer("attention", cost.attention or words.UNKNOWN),
    ]
    if isinstance(cost.weights, WeightSpread):
        lines.append(_answer("weights", _spread(cost.weights)))
    if cost.uncounted_ops:
        lines.append(_answer("uncounted", words.listed(cost.uncounted_ops)))
    return lines


def _spread(weights: WeightSpread) -> str:
    """Return how the magnitudes lie: where quantising or pruning would find room."""
    points = ", ".join(f"{name} {words.number(each)}" for name, each in weights.percentiles.items())
    below = ", ".join(
        f"{words.percent(each)} % below {limit}" for limit, each in weights.shares_below.items()
    )
    return f"|w| {points}; {below}"


def _flops(cost: "Cost", item: str, why: "dict[str, str]") -> str:
    if cost.flops_per_batch is None:
        code, _, detail = why.get("cost.flops_per_batch", "").partition(": ")
        return f"{words.UNKNOWN} {cost.flops_status.partition(':')[0]}: {detail or code}"
    share = words.share(cost.flops_coverage)
    per_item = f"{words.whole(cost.flops_per_item)} per {item}"
    macs = f"{words.whole(cost.macs_per_item)} multiply-accumulates"
    batch = f"{words.whole(cost.flops_per_batch)} per batch"
    return f"{per_item} ({macs}), {batch}; coverage {share} %, {cost.flops_counter}"


def _training(found: "CostReport") -> list[str]:
    training, packed = found.training, found.packed
    states = training.optimiser_bytes or {}
    kept = ", ".join(f"{name} {words.mebibytes(n)}" for name, n in states.items())
    gradients = words.mebibytes(training.gradient_bytes)
    backward = words.whole(training.backward_flops_per_batch)
    return [
        "estimates, not measured",
        _answer("backward", f"{backward} FLOPs, twice forward"),
        _answer("optimiser", f"MiB: {kept or words.UNKNOWN}, beside gradients of {gradients}"),
        _answer(
            "int8 weights",
            f"{words.mebibytes(packed.modelled_int8_bytes)} MiB if packed; they take "
            f"{words.mebibytes(packed.actual_bytes)} MiB now",
        ),
    ]


def _estimates(estimates: "Sequence[Estimate]") -> Table:
    columns = (
        Column("device"),
        Column("peak", spare=2),
        Column("TFLOP/s", right=True),
        Column("GB/s", right=True, spare=1),
        Column("ridge", "FLOP/B", right=True, spare=3),
        Column("attainable", "TFLOP/s", right=True),
        Column("compute", "ms", right=True),
        Column("memory", "ms", right=True),
        Column("roofline", "ms", right=True),
        Column("bound"),
    )
    intensity = words.number(estimates[0].arithmetic_intensity_flop_per_byte)
    notes = (f"intensity {intensity} FLOP/byte; {NOT_MEASURED}",)
    return Table("roofline", columns, tuple(_roof(each) for each in estimates), notes)


def _roof(each: "Estimate") -> tuple[Datum, ...]:
    return (
        Datum(each.spec),
        Datum(each.dtype),
        _number(each.peak_flops_per_s, 1e12),
        _number(each.peak_bytes_per_s, 1e9),
        _number(each.ridge_flop_per_byte),
        _number(each.attainable_flops_per_s, 1e12),
        _number(each.compute_ms),
        _number(each.memory_ms),
        _number(each.roofline_ms),
        Datum(each.roofline_bound or words.UNKNOWN),
    )


def _taken(taken: CostTaken, item: str, batch: int, why: "dict[str, str]") -> list[str | Table]:
    if taken.source == "given":
        where = f" on {taken.device}" if taken.device else ""
        heading = f"given, not measured here: {words.number(taken.p50_ms)} ms{where}"
    else:
        heading = f"measured here, on {taken.device}"
    between = words.interval(taken.lo_ms, taken.hi_ms, value=taken.p50_ms, half=None)
    count = "" if taken.n is None else f" over {words.count(taken.n, 'iteration')}"
    lines: list[str | Table] = [heading]
    if taken.source == "measured":
        lines.append(_answer("latency", f"p50 {words.number(taken.p50_ms)} ms {between}{count}"))
        peak = words.mebibytes(taken.peak_memory_bytes)
        lines.append(_answer("memory", f"{peak} MiB of the process at most"))
        lines += [_answer("doubt", words.flag(each)) for each in taken.flags]
    if batch > 1:
        lines.append(_answer(f"per {item}", f"{words.number(taken.p50_ms / batch)} ms"))
    if taken.estimate is not None:
        roof = f"{words.number(taken.estimate.roofline_ms)} ms at the roof"
        peaks = taken.estimate.peak_source or words.UNKNOWN
        lines.append(_answer("roof", f"{roof} of {taken.estimate.spec} ({peaks} peaks)"))
    else:
        lines.append(_answer("roof", f"{words.UNKNOWN} {words.reason(why['taken.estimate'])}"))
    return [*lines, *_bounds(taken)]


def _bounds(taken: CostTaken) -> list[str]:
    bounds = taken.bounds
    if bounds is None:
        return []
    shares = f"{words.percent(bounds.mfu)} % of peak FLOP/s, {words.percent(bounds.mbu)} % of peak"
    lines = [
        _answer("reached", f"{words.number(bounds.gflops_per_second)} GFLOP/s"),
        _answer("used", f"{shares} bandwidth"),
        _answer("measured", bounds.measured_bound or words.UNKNOWN),
        _answer("heuristic", f"{bounds.heuristic_bound or words.UNKNOWN}: {_HEURISTIC}"),
    ]
    return lines


def _number(value: float | None, unit: float = 1.0) -> Datum:
    return Datum(words.number(None if value is None else value / unit))


def _bytes(value: float | None, said: str) -> str:
    return words.UNKNOWN if value is None else f"{words.size(int(value))} {said}"
