"""What limits a step: measured times against peaks, and the rule of thumb of a course module.

The four words for it are never mixed: `bound` is of a trace, `roofline_bound` of an estimate, and
the two here are `measured_bound` and `heuristic_bound`.
"""

import math
from typing import Final, Literal

from msgspec import Struct

from farm.hardware.spec import Side

Limit = Literal["transfer", "launch", "overhead", "balanced", "compute", "memory"]

BUSY: Final = 0.8  # of the wall time: a GPU that computes for less waits for launches
OVERHEAD: Final = 0.3  # of the time: a step that its roofs explain for less is overhead
VIOLATION: Final = 1.05  # of the time: nothing is that much quicker than its roofs
_BALANCED: Final = math.log(1.25)


class Verdict(Struct, frozen=True, kw_only=True):
    """What limits a step, or the null code why it cannot be told.

    roof_violation: it was quicker than the peaks allow, so that one of the numbers is wrong.
    """

    bound: Limit | None
    reason: str = ""
    roof_violation: bool = False


def measured_bound(
    time_ms: float | None,
    *,
    compute_ms: float | None,
    memory_ms: float | None,
    on_gpu: bool = False,
    busy: float | None = None,
    transfer_ms: float | None = None,
    kernel_ms: float | None = None,
) -> Verdict:
    """Return the first that holds of transfer, launch, overhead, balanced, compute and memory.

    time_ms: GPU time, else p50. compute_ms, memory_ms: of the roofline. busy: union of the kernels
    over wall time, transfer_ms and kernel_ms: of a trace, which a GPU needs. A step on a CPU is
    never `launch` nor `transfer`. Source: `measurement.md` §14; C10.
    """
    sides = [each for each in (compute_ms, memory_ms) if each is not None]
    if time_ms and sides and max(sides) / time_ms > VIOLATION:
        why = f"error: {max(sides):.4g} ms at the roof, measured {time_ms:.4g} ms"
        return Verdict(bound=None, reason=why, roof_violation=True)
    if on_gpu:
        if busy is None:
            return Verdict(bound=None, reason="not_probed: no trace")
        if transfer_ms and transfer_ms >= (kernel_ms or 0.0):
            return Verdict(bound="transfer")
        if busy < BUSY:
            return Verdict(bound="launch")
    if not time_ms or compute_ms is None or memory_ms is None:
        return Verdict(bound=None, reason="not_probed")
    if max(compute_ms, memory_ms) / time_ms < OVERHEAD:
        return Verdict(bound="overhead")
    low, high = sorted((compute_ms, memory_ms))
    if low > 0 and math.log(high / low) < _BALANCED:
        return Verdict(bound="balanced")
    return Verdict(bound="compute" if compute_ms > memory_ms else "memory")


def share_of_peak(
    amount: float | None, peak_per_s: float | None, time_ms: float | None
) -> float | None:
    """Return amount / (peak · time): MFU for FLOPs, MBU for bytes; None where a part is unknown.

    It is a share of this device's own peak and of no fixed number. Source: S2.20.
    """
    if amount is None or peak_per_s is None or not time_ms:
        return None
    return amount / (peak_per_s * time_ms / 1000)


def gflops_per_second(flops: float, p50_ms: float) -> float:
    """Return FLOPs per batch over the median latency, in 10⁹ per second."""
    return flops / (p50_ms * 1e6)


def memory_bandwidth_mbs(peak_memory_bytes: float, p50_ms: float) -> float:
    """Return peak memory over the median latency, in MiB per second.

    It is no bandwidth: nobody knows how often those bytes were moved. It serves `heuristic_bound`
    alone. Source: S2.24.
    """
    return peak_memory_bytes / 2**20 / (p50_ms / 1000)


def heuristic_bound(gflops: float, mbs: float) -> Side:
    """Return `memory` if MiB/s exceed 100 times GFLOP/s, strictly, else `compute`. Source: S2.5."""
    return "memory" if mbs > 100 * gflops else "compute"
