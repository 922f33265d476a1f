"""The figures of one profile, and why some are not there."""

from typing import Final

from farm import schema
from farm.catalog import winners
from farm.report.record import Figures

# Where the reason of a figure stands in a profile; the rest lie in `latency` under their own name.
_PATHS: Final = {
    "p50_half_ms": "latency.p50_lo_ms",
    "throughput_items_per_s": "throughput.throughput_items_per_s",
    "throughput_lo": "throughput.lo",
    "throughput_hi": "throughput.hi",
    "cpu_rss_peak_bytes": "memory.cpu_rss_peak_bytes",
}
_NO_PASS: Final = "not_requested: the profile holds no such pass"


def figures(profile: schema.Profile, *, wanted: int) -> Figures | None:
    """Return the figures of a profile that ended well, None for any other.

    wanted: how many repeats the run asked for. A profile that nothing judged is invalid.
    """
    latency, judged = profile.latency, profile.quality
    if profile.status != "ok" or not isinstance(latency, schema.Latency):
        return None
    rate = profile.throughput if isinstance(profile.throughput, schema.Throughput) else None
    held = profile.memory if isinstance(profile.memory, schema.Memory) else None
    good = judged if isinstance(judged, schema.Quality) else None
    lo, hi, point = latency.p50_lo_ms, latency.p50_hi_ms, latency.p50_ms
    return Figures(
        p50_ms=point,
        p50_lo_ms=lo,
        p50_hi_ms=hi,
        p50_half_ms=None if lo is None or hi is None else max(hi - point, point - lo),
        p50_reliable=latency.p50_reliable,
        p90_ms=latency.p90_ms,
        p90_lo_ms=latency.p90_lo_ms,
        p90_hi_ms=latency.p90_hi_ms,
        p90_reliable=latency.p90_reliable,
        p99_ms=latency.p99_ms,
        p99_lo_ms=latency.p99_lo_ms,
        p99_hi_ms=latency.p99_hi_ms,
        p99_reliable=latency.p99_reliable,
        throughput_items_per_s=rate.throughput_items_per_s if rate else None,
        throughput_lo=rate.lo if rate else None,
        throughput_hi=rate.hi if rate else None,
        cpu_rss_peak_bytes=held.cpu_rss_peak_bytes if held else None,
        proc_cv=latency.proc_cv,
        n=latency.n,
        n_eff=latency.n_eff,
        of_blocks=latency.of_blocks,
        repeats=winners.usable(profile),
        repeats_wanted=wanted,
        item=profile.job.workload.item,
        validity=good.validity if good else "invalid",
        stability=good.stability if good else "unknown",
        flags=good.flags if good else [],
        neighbours=good.neighbours if good else [],
    )


def reasons_of(profile: schema.Profile, measured: Figures) -> dict[str, str]:
    """Return the reason of every figure that is null, as the profile gives it."""
    return {
        name: profile.null_reasons.get(_PATHS.get(name, f"latency.{name}"), _NO_PASS)
        for name in Figures.__struct_fields__
        if getattr(measured, name) is None
    }
