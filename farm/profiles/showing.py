"""Profiles for a person: rows of a table, and one profile on one screen."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from farm.answers import ProfileRow
from farm.catalog import winners
from farm.catalog.rows import Row
from farm.effort import EFFORTS
from farm.profiles import instruments
from farm.profiles.search import KEYS
from farm.report import findings, words
from farm.report.figures import figures
from farm.report.table import Column, Datum, Table
from farm.schema import (
    INVALIDATING,
    Effort,
    Failure,
    GpuTime,
    Latency,
    Memory,
    Profile,
    Quality,
    Repeat,
    Throughput,
)
from farm.sweep import label_text

_PARTS = ("ms", "lo_ms", "hi_ms")


def table(found: Sequence[Row], *, of: int) -> Table:
    """Return profiles for a person."""
    columns = (
        Column("profile"),
        Column("job", cut=True),
        Column("state"),
        Column("p50", "ms", right=True),
        Column("throughput", "1/s", right=True),
        Column("system", cut=True),
        Column("taken"),
        Column("run"),
    )
    shown = tuple(_row(each) for each in found)
    more = of - len(shown)
    notes = (f"and {words.count(more, 'profile')} more; --limit shows them",) if more > 0 else ()
    return Table("", columns, shown, notes)


def document(row: Row) -> ProfileRow:
    """Return one line of the list for a program."""
    profile = row.profile
    latency, throughput = profile.latency, profile.throughput
    rate: float | UnsetType | None = UNSET
    reasons: dict[str, str] | UnsetType = UNSET
    if isinstance(throughput, Throughput):
        rate = throughput.throughput_items_per_s
        if rate is None:
            why = profile.null_reasons.get("throughput.throughput_items_per_s", "")
            reasons = {"throughput_items_per_s": why}
    keys = {key: of(profile) for key, of in KEYS.items() if key != "batch"}
    return ProfileRow(
        profile_id=row.profile_id,
        job_id=profile.job_id,
        batch=profile.job.workload.batch,
        tags=profile.execution.tags,
        taken_at=profile.execution.started_at,
        p50_ms=latency.p50_ms if isinstance(latency, Latency) else UNSET,
        throughput_items_per_s=rate,
        null_reasons=reasons,
        **keys,
    )


def screen(row: Row) -> list[str | Table]:
    """Return one profile on one screen."""
    profile = row.profile
    execution = profile.execution
    heading = f"{label(profile)}   {state(profile)}   profile {row.profile_id[:12]}"
    shown: list[str | Table] = [heading]
    if isinstance(profile.failure, Failure):
        failure = profile.failure
        shown += [f"✗ {failure.kind} in phase {failure.phase}: {failure.message}"]
        shown += [f"  {failure.hint}"] if failure.hint else []
        shown += [f"last output:\n{failure.log_tail}"] if failure.log_tail else []
    if isinstance(profile.latency, Latency):
        shown.append(_figures(profile, profile.latency))
    if isinstance(profile.quality, Quality):
        shown += _quality(profile.quality, profile)
    if profile.repeats:
        shown += [_repeats(profile), *_counting(profile)]
    shown += instruments.lines(row)
    taken = f"ended    {execution.finished_at}; nothing was measured"
    if execution.device.name:
        taken = (
            f"taken    {execution.started_at} on {execution.node}, {execution.device.name} "
            f"({execution.device.slot}, cores {execution.device.cpus}, "
            f"{words.count(execution.threads, 'thread')})"
        )
    shown += [
        f"{taken}, farm {execution.farm_version}",
        f"job      {profile.job_id}   attempt {profile.attempt} of run {profile.run_id}",
        f"cell     {profile.cell_id}   protocol {profile.protocol_id[:12]}",
        f"system   {profile.system_class or words.UNKNOWN}   {profile.system_id}".rstrip(),
        f"kept     {', '.join(profile.artifacts) or 'no artefacts'}",
        f"again    farm profiles get {row.profile_id[:12]} job "
        f"| farm-worker run - --effort {execution.effort.level}{_changed(execution.effort)}",
    ]
    return shown


def _changed(effort: Effort) -> str:
    """Say where the sweep changed the effort: a job does not carry that."""
    return "" if effort == EFFORTS[effort.level] else "   # with that effort's own repeats"


def label(profile: Profile) -> str:
    workload, selector = profile.job.workload, profile.job.selector
    labels = {
        "model": workload.model.name,
        "precision": workload.precision,
        "batch": str(workload.batch),
        "device": selector.value or selector.kind,
    }
    labels |= {"mode": workload.mode} if workload.mode != "inference" else {}
    return label_text(labels)


def state(profile: Profile) -> str:
    if isinstance(profile.failure, Failure):
        return profile.failure.kind
    return profile.quality.validity if isinstance(profile.quality, Quality) else profile.status


def _figures(profile: Profile, latency: Latency) -> Table:
    lines: list[tuple[Datum, ...]] = []
    for q in (50, 90, 95, 99):
        found = {name: getattr(latency, f"p{q}_{name}") for name in _PARTS}
        why = profile.null_reasons.get(f"latency.p{q}_lo_ms", "")
        lines.append(_percentile(q, found["ms"], found["lo_ms"], found["hi_ms"], why))
    for at, each in enumerate(latency.percentiles):
        why = profile.null_reasons.get(f"latency.percentiles.{at}.lo_ms", "")
        lines.append(_percentile(each.q, each.value_ms, each.lo_ms, each.hi_ms, why))
    if isinstance(profile.throughput, Throughput):
        rate, item = profile.throughput, profile.job.workload.item
        value = rate.throughput_items_per_s
        between = words.interval(rate.lo, rate.hi, value=value or 0.0, half=None)
        lines.append(
            _line(profile, "throughput.throughput_items_per_s", value, f"{item}s/s", between)
        )
    if isinstance(profile.gpu_time, GpuTime):
        lines += _device_time(profile, profile.gpu_time)
    if isinstance(profile.memory, Memory):
        lines += _memory(profile, profile.memory)
    columns = (
        Column("figure"),
        Column("value", right=True),
        Column("unit"),
        Column("95 % interval"),
        Column("why not", cut=True),
    )
    return Table("", columns, tuple(lines))


def _device_time(profile: Profile, block: GpuTime) -> list[tuple[Datum, ...]]:
    value = block.p50_ms
    between = words.interval(block.p50_lo_ms, block.p50_hi_ms, value=value or 0.0, half=None)
    path = "gpu_time.p50_ms" if value is None else "gpu_time.p50_lo_ms"
    queued = block.enqueue_p50_ms
    return [
        _line(profile, path, value, "ms", between, name="device time p50", reliable=block.reliable),
        _line(profile, "gpu_time.enqueue_p50_ms", queued, "ms", name="enqueue p50"),
    ]


def _memory(profile: Profile, block: Memory) -> list[tuple[Datum, ...]]:
    peaks = {
        "host memory peak": ("cpu_rss_peak_bytes", block.cpu_rss_peak_bytes),
        "allocated on the GPU": ("cuda_allocated_peak_bytes", block.cuda_allocated_peak_bytes),
        "reserved on the GPU": ("cuda_reserved_peak_bytes", block.cuda_reserved_peak_bytes),
    }
    return [
        _line(profile, f"memory.{path}", None if peak is None else peak / 2**20, "MiB", name=name)
        for name, (path, peak) in peaks.items()
        if not isinstance(peak, UnsetType)
    ]


def _percentile(
    q: float, value: float, lo: float | None, hi: float | None, why: str
) -> tuple[Datum, ...]:
    between = words.interval(lo, hi, value=value, half=None) if lo is not None else "–"
    return (
        Datum(f"latency p{q:g}"),
        Datum(words.number(value) + ("" if lo is not None else " ~")),
        Datum("ms"),
        Datum(between),
        Datum(words.reason(why) if why else ""),
    )


def _line(
    profile: Profile,
    path: str,
    value: float | None,
    unit: str,
    between: str = words.UNKNOWN,
    *,
    name: str = "",
    reliable: bool = True,
) -> tuple[Datum, ...]:
    """Return a figure; path: where its null, or that of its interval, has a reason."""
    why = profile.null_reasons.get(path, "")
    doubtful = value is not None and not reliable
    shown = words.number(value) + (" ~" if doubtful else "")
    reason = words.reason(why) if why else "too short for its clock" if doubtful else ""
    name = name or path.partition(".")[0]
    return (Datum(name), Datum(shown), Datum(unit), Datum(between), Datum(reason))


def _repeats(profile: Profile) -> Table:
    columns = (
        Column("repeat", right=True),
        Column("counts"),
        Column("p50", "ms", right=True),
        Column("n", right=True),
        Column("warm-up"),
        Column("waited", "%", right=True),
        Column("doubts", cut=True),
    )
    not_counted = "replaced" if _replaced(profile) >= len(_left_out(profile)) else "no"
    lines = tuple(
        (
            Datum(str(each.index)),
            Datum(_word(each, profile) or not_counted),
            Datum(words.number(each.p50_ms)),
            Datum(str(each.n)),
            Datum(f"{each.warmup_iterations} in {each.warmup_s:.1f} s, {each.warmup_stop}"),
            Datum(words.percent(each.wait_share)),
            Datum(", ".join(words.flag(flag) for flag in each.flags)),
        )
        for each in profile.repeats
    )
    return Table("", columns, lines)


def _word(repeat: Repeat, profile: Profile) -> str:
    """Return whether the figures are of a repeat, "" if they are not."""
    if not INVALIDATING.isdisjoint(repeat.flags):
        return "for want of better" if winners.usable(profile) == 0 else ""
    return "yes"


def _counting(profile: Profile) -> list[str]:
    """Return which repeats the figures are of, where they are not simply of all."""
    left_out = _left_out(profile)
    if not left_out:
        spoiled = winners.usable(profile) == 0
        return ["repeats  none is good; the figures are of all of them"] if spoiled else []
    which = words.listed([str(each.index) for each in left_out])
    count = len(profile.repeats)
    said = f"repeats  {count - len(left_out)} of {count} count; left out: {which}"
    return [f"{said}; {_replaced(profile)} of them replaced by a further one"]


def _left_out(profile: Profile) -> list[Repeat]:
    return [each for each in profile.repeats if not _counts(each, profile)]


def _counts(repeat: Repeat, profile: Profile) -> bool:
    """Return whether the figures are of it: those not invalid count, or all when every one is."""
    return INVALIDATING.isdisjoint(repeat.flags) or winners.usable(profile) == 0


def _replaced(profile: Profile) -> int:
    """Return how many repeats were measured anew: as many as there are beyond those asked for."""
    return max(0, len(profile.repeats) - profile.execution.effort.repeats)


def _quality(quality: Quality, profile: Profile) -> list[str | Table]:
    measured = figures(profile, wanted=profile.execution.effort.repeats)
    said = findings.noted(measured) if measured else [words.flag(each) for each in quality.flags]
    beside = [f"beside   {each}" for each in words.neighbours(quality.neighbours)]
    judged = f"{quality.validity}, {quality.stability}"
    return [f"quality  {judged}: {', '.join(said) or 'no doubt'}", *beside]


def _row(row: Row) -> tuple[Datum, ...]:
    profile = row.profile
    latency, throughput = profile.latency, profile.throughput
    p50 = latency.p50_ms if isinstance(latency, Latency) else None
    rate = throughput.throughput_items_per_s if isinstance(throughput, Throughput) else None
    return (
        Datum(row.profile_id[:12]),
        Datum(label(profile)),
        Datum(state(profile)),
        Datum(words.number(p50)),
        Datum(words.number(rate)),
        Datum(profile.system_class),
        Datum(profile.execution.started_at[:16].replace("T", " ")),
        Datum(profile.run_id),
    )
