"""The numbers of one side that are compared: of several trials their mean, and the trials.

A file of another tool may hold the mean of one number beside the last trial of another; set side by
side, the two told that a step became both slower and faster. So what is not of all trials is none.
"""

from typing import Final, Literal, NamedTuple

from msgspec import UNSET

from farm.trace.analysis.record import Analysis

Better = Literal["larger", "smaller", "neither"]


class Metric(NamedTuple):
    """A row of a comparison. exact: a count, which has no noise.

    field: of an analysis; where it is "", the wall time of a phase, or else the metric of the name.
    """

    name: str
    unit: str
    better: Better
    field: str
    exact: bool = False
    phase: str = ""


class Figure(NamedTuple):
    """A number, and the trials that it is the mean of, if any are told; why: it is None."""

    value: float | None
    trials: tuple[float, ...] = ()
    why: str = ""


IMG_PER_S: Final = Metric("img_per_s", "items/s", "larger", "img_per_s")
PER_ITEM: Final = Metric("ms_per_item", "ms", "smaller", "step_ms")
STEP: Final = Metric("step_ms", "ms", "smaller", "step_ms")
METRICS: Final = (
    *(IMG_PER_S, PER_ITEM, STEP),
    # A share has no better way: less of it may be a quicker device as well as a slower host.
    Metric("gpu_util", "of 1", "neither", "gpu_util"),
    Metric("host_overhead_ms", "ms", "smaller", "host_overhead_ms_per_step"),
    Metric("launches_per_step", "per step", "smaller", "launches_per_step", exact=True),
    Metric("tensorcore_pct", "%", "neither", "tensorcore_pct"),
    Metric("peak_vram_mb", "MB", "smaller", "peak_vram_mb"),
)
LATENCIES: Final = tuple(
    Metric(f"latency_{each}_ms", "ms", "smaller", "") for each in ("p50", "p90", "p99")
)
_LAST: Final = "not_supported: of several trials the file tells that of one alone"
_BATCH: Final = "not_probed: the batch is not told"


def metrics(before: Analysis, after: Analysis) -> list[Metric]:
    """Return what is compared of the two, in the order of the rows.

    The throughput counts what both sides say that they count, else items. Two inferences have their
    latencies too, and every pair the wall times of the phases whose times both tell.
    """
    items = [each.config.get("item") for each in (before, after)]
    item = items[0] if isinstance(items[0], str) and items[0] == items[1] else "item"
    found = [IMG_PER_S._replace(unit=f"{item}s/s"), *METRICS[1:]]
    if before.mode == after.mode == "inference":
        found += LATENCIES
    for phase in dict.fromkeys(row.phase for row in before.phases):
        wall = Metric(f"{phase}_wall_ms", "ms", "smaller", "", phase=phase)
        if all(figure(each, wall).value is not None for each in (before, after)):
            found.append(wall)
    return found


def batch(side: Analysis) -> int | None:
    """Return how many items a step has, None where nothing tells."""
    told = side.config.get("batch")
    return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else None


def count(side: Analysis) -> int:
    """Return how many trials an analysis was put together from."""
    known = [len(_trials(side, each)) for each in ("step_ms", "img_per_s")]
    told = side.img_per_s_n if isinstance(side.img_per_s_n, int) else 1
    return max(1, told, *known, side.aggregation.n if side.aggregation is not UNSET else 1)


def figure(side: Analysis, metric: Metric) -> Figure:
    """Return a number of a side; source: `traces.md` §9 and B15 of the seeds."""
    if metric == PER_ITEM:
        return _per_item(side)
    trials = _trials(side, metric.name) or _trials(side, metric.field)
    if trials:
        return Figure(sum(trials) / len(trials), trials)
    value = _value(side, metric)
    if value is None:
        return Figure(None, why=_why(side, metric))
    if count(side) > 1 and not _all_means(side):
        return Figure(None, why=_LAST)
    return Figure(float(value))


def _value(side: Analysis, metric: Metric) -> float | None:
    if metric.phase:
        walls = {row.phase: row.wall_ms_per_step for row in side.phases}
        return walls.get(metric.phase)
    value = getattr(side, metric.field) if metric.field else side.metrics.get(metric.name)
    return value if isinstance(value, int | float) else None


def _per_item(side: Analysis) -> Figure:
    """Return ms per item: what the throughput comes to, else the step over its items.

    A throughput counts all of the time, and so the two rows never contradict each other.
    """
    rate = figure(side, IMG_PER_S)
    if rate.value and min(rate.trials, default=1.0) > 0:
        trials = tuple(1000 / each for each in rate.trials)
        return Figure(sum(trials) / len(trials) if trials else 1000 / rate.value, trials)
    items = batch(side)
    if items is None:
        return Figure(None, why=_BATCH)
    step = figure(side, STEP)
    if step.value is None:
        return step
    return Figure(step.value / items, tuple(each / items for each in step.trials))


def _trials(side: Analysis, name: str) -> tuple[float, ...]:
    if side.spread is not UNSET and (found := side.spread.get(name)) is not None and found.trials:
        return tuple(found.trials)
    if name == "img_per_s" and side.img_per_s_trials is not UNSET:
        return tuple(side.img_per_s_trials)
    return ()


def _all_means(side: Analysis) -> bool:
    """Tell if all numbers of several trials are means, as they are in files of ours."""
    return side.bound_reported is UNSET


def _why(side: Analysis, metric: Metric) -> str:
    paths = (metric.field, f"metrics.{metric.name}")
    told = [side.null_reasons[each] for each in paths if each in side.null_reasons]
    return told[0] if told else "not_probed"
