"""The blocks `estimate` and `bounds` of a profile, each with the reasons of its nulls by field."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from farm.hardware import limits
from farm.hardware.spec import GPUSpec, peak_format, roofline
from farm.schema import Bounds, Estimate

Reasons = dict[str, str]


class Work(Struct, frozen=True, kw_only=True):
    """What one iteration has to do; reasons: why `flops` or `moved_bytes` is None, as a code."""

    flops: float | None
    moved_bytes: float | None
    reasons: dict[str, str] = {}


class Times(Struct, frozen=True, kw_only=True):
    """What was measured of one iteration; reasons: by field, as a code, `not_probed` without one.

    busy: union of the kernels over wall time; transfer_ms, kernel_ms likewise of a trace, per
    iteration. peak_memory_bytes: what the heuristic is told, on the device where there is one.
    """

    p50_ms: float | None
    gpu_time_ms: float | None = None
    on_gpu: bool = False
    busy: float | None = None
    transfer_ms: float | None = None
    kernel_ms: float | None = None
    peak_memory_bytes: float | None = None
    reasons: dict[str, str] = {}


def chosen(
    *, on_gpu: bool, measured: GPUSpec | None, listed: GPUSpec | None, dtype: str
) -> GPUSpec | None:
    """Return the peaks that count for a device: measured ones, else on a GPU those of the table.

    A CPU has measured peaks or none: the row of a GPU that merely stands beside it is never taken.
    Measured ones count if they hold both the dtype and the memory. Source: S1.45.
    """
    if not on_gpu:
        return measured
    if measured is not None and dtype in measured.peak_flops_per_s and measured.peak_bytes_per_s:
        return measured
    return listed


def estimate(
    work: Work,
    spec: GPUSpec | None,
    *,
    dtype: str,
    tf32: bool = False,
    device: str = "",
    reason: str = "unknown_device",
) -> tuple[Estimate, Reasons]:
    """Return the roofline of some work on a device, and why each null in it is null.

    dtype: the word of the precision; fp32 becomes tf32 as `peak_format` says. spec None: there are
    no peaks; device then names what there are none of, reason says why. Source: S1.4.
    """
    if spec is None:
        spec = GPUSpec(
            name=device,
            peak_flops_per_s={},
            peak_bytes_per_s=None,
            source="datasheet",
            unknown={dtype: reason, "bytes": reason},
        )
    word = peak_format(spec, dtype, tf32=tf32)
    roof = roofline(work.flops, work.moved_bytes, spec=spec, dtype=word)
    has_peak = roof.peak_flops_per_s is not None or roof.peak_bytes_per_s is not None
    found = Estimate(
        not_measured=True,
        spec=spec.name,
        dtype=word,
        peak_flops_per_s=roof.peak_flops_per_s,
        peak_bytes_per_s=roof.peak_bytes_per_s,
        peak_source=spec.source if has_peak else None,
        arithmetic_intensity_flop_per_byte=roof.arithmetic_intensity_flop_per_byte,
        ridge_flop_per_byte=roof.ridge_flop_per_byte,
        attainable_flops_per_s=roof.attainable_flops_per_s,
        compute_ms=roof.compute_ms,
        memory_ms=roof.memory_ms,
        roofline_ms=roof.roofline_ms,
        roofline_bound=roof.bound,
    )
    return found, _estimate_reasons(found, work, spec, word)


def bounds(
    work: Work, found: Estimate, times: Times, *, reasons: Mapping[str, str]
) -> tuple[Bounds, Reasons]:
    """Return what limits a step that was estimated so, and why each null in it is null.

    reasons: those of the estimate. Where the step was quicker than its roofs, `roof_violation` is
    true and nothing is concluded from the peaks.
    """
    time_ms = times.gpu_time_ms or times.p50_ms
    verdict = limits.measured_bound(
        time_ms,
        compute_ms=found.compute_ms,
        memory_ms=found.memory_ms,
        on_gpu=times.on_gpu,
        busy=times.busy,
        transfer_ms=times.transfer_ms,
        kernel_ms=times.kernel_ms,
    )
    wrong = verdict.roof_violation
    mfu = limits.share_of_peak(work.flops, found.peak_flops_per_s, time_ms)
    mbu = limits.share_of_peak(work.moved_bytes, found.peak_bytes_per_s, time_ms)
    gflops = mbs = None
    if times.p50_ms and work.flops is not None:
        gflops = limits.gflops_per_second(work.flops, times.p50_ms)
    if times.p50_ms and times.peak_memory_bytes is not None:
        mbs = limits.memory_bandwidth_mbs(times.peak_memory_bytes, times.p50_ms)
    block = Bounds(
        measured_bound=verdict.bound,
        mfu=None if wrong else mfu,
        mbu=None if wrong else mbu,
        gflops_per_second=gflops,
        memory_bandwidth_mbs=mbs,
        heuristic_bound=(
            None if gflops is None or mbs is None else limits.heuristic_bound(gflops, mbs)
        ),
        roof_violation=wrong,
    )
    return block, _bounds_reasons(block, work, times, verdict, reasons)


def _estimate_reasons(found: Estimate, work: Work, spec: GPUSpec, word: str) -> Reasons:
    flops, moved = _work_reasons(work)
    peak = width = ""
    if found.peak_flops_per_s is None:
        peak = spec.unknown.get(word) or f"not_supported: {spec.name} has no {word} peak"
    if found.peak_bytes_per_s is None:
        width = spec.unknown.get("bytes") or f"not_supported: {spec.name} has no memory peak"
    still = "not_applicable: no byte is moved" if work.moved_bytes == 0 else ""
    return _of_nulls(
        found,
        {
            "peak_flops_per_s": (peak,),
            "peak_bytes_per_s": (width,),
            "peak_source": (peak,),
            "arithmetic_intensity_flop_per_byte": (flops, moved, still),
            "ridge_flop_per_byte": (peak, width),
            "attainable_flops_per_s": (peak, width, flops, moved, still),
            "compute_ms": (peak, flops),
            "memory_ms": (width, moved),
            "roofline_ms": (peak, width, flops, moved),
            "roofline_bound": (peak, width, flops, moved),
        },
    )


def _bounds_reasons(
    block: Bounds,
    work: Work,
    times: Times,
    verdict: limits.Verdict,
    estimated: Mapping[str, str],
) -> Reasons:
    flops, _ = _work_reasons(work)
    time = "" if times.p50_ms else times.reasons.get("p50_ms", "not_probed")
    memory = (
        "" if times.peak_memory_bytes is not None
        else times.reasons.get("peak_memory_bytes", "not_probed")
    )  # fmt: skip
    any_time = "" if times.gpu_time_ms else time
    wrong = verdict.reason if verdict.roof_violation else ""
    compute, width = estimated.get("compute_ms", ""), estimated.get("memory_ms", "")
    told = verdict.reason if verdict.reason != "not_probed" else ""
    return _of_nulls(
        block,
        {
            "measured_bound": (told, any_time, compute, width),
            "mfu": (wrong, any_time, compute),
            "mbu": (wrong, any_time, width),
            "gflops_per_second": (time, flops),
            "memory_bandwidth_mbs": (time, memory),
            "heuristic_bound": (time, flops, memory),
        },
    )


def _work_reasons(work: Work) -> tuple[str, str]:
    flops = "" if work.flops is not None else work.reasons.get("flops", "not_probed")
    moved = "" if work.moved_bytes is not None else work.reasons.get("moved_bytes", "not_probed")
    return flops, moved


def _of_nulls(block: Struct, causes: Mapping[str, Iterable[str]]) -> Reasons:
    """Return the first cause that there is for each field that is None."""
    return {
        name: next((why for why in each if why), "not_probed")
        for name, each in causes.items()
        if getattr(block, name) is None
    }
