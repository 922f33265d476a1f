"""Times and memory of somebody else's loop: fed with samples, read between calls.

For programs that measure on their own and want our figures: nothing here calls a model.
"""

import math
import sys
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from farm.errors import Bad, Refused
from farm.interchange.document import Detail
from farm.interchange.figures import figures
from workers.backends import LoadFailed
from workers.backends.torch import cuda
from workers.backends.torch.cuda import TorchCuda
from workers.host import Host, Peak

_NO_TORCH: Final = "not_applicable: torch is not imported"
_NO_PROC: Final = "not_supported: no /proc on this system"
_NOT_ASKED: Final = "not_requested"


class Percentiles(Struct, frozen=True, kw_only=True):
    """Times of one item in ms, over all samples but the dropped ones; each is also an item by name.

    p50_ms and so on: linear interpolation. mean_ms: arithmetic. detail: spread, intervals and how
    far to trust them; its nulls have their reasons in null_reasons.
    """

    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float
    n: int
    dropped: int
    detail: Detail
    null_reasons: dict[str, str]

    def __getitem__(self, name: str) -> float | int:
        value: float | int = getattr(self, name)
        return value


class LatencyProfiler:
    """Times that a loop has taken itself; the first ones are warm-up and count in no statistic.

    warmup: how many leading samples are dropped, 1 by default. Source: S1.34, S1.35.
    """

    def __init__(self, warmup: int = 1) -> None:
        if warmup < 0:
            raise Refused(f"warmup {warmup} makes no sense", why="it is at least 0")
        self._warmup = warmup
        self._samples_ms: list[float] = []

    def add_sample_seconds(self, seconds: float) -> None:
        """Keep the time of one call; raises Refused unless it is a positive, finite number."""
        self._samples_ms.append(_positive(seconds) * 1e3)

    def add_batch_seconds(self, seconds: float, batch_size: int) -> None:
        """Keep the time of one call on a batch, as one sample: that of an item of it.

        One call is one sample however large its batch: its items were not timed apart. Raises
        Refused unless both are positive.
        """
        if isinstance(batch_size, bool) or batch_size < 1:
            raise Refused(f"batch_size {batch_size!r} makes no sense", why="it is at least 1")
        self._samples_ms.append(_positive(seconds) * 1e3 / batch_size)

    @property
    def samples_ms(self) -> list[float]:
        """Every sample that counts, in order."""
        return self._samples_ms[self._warmup :]

    def percentiles(self) -> Percentiles:
        """Return the figures of all samples after the warm-up.

        Raises Bad if there is none: warm-up samples never stand in for them (B5).
        """
        if not self.samples_ms:
            have = len(self._samples_ms)
            raise Bad(
                f"{have} samples, of which {self._warmup} are warm-up: none is left",
                hint="add more samples, or say LatencyProfiler(warmup=0)",
            )
        found = figures([self.samples_ms])
        return Percentiles(
            p50_ms=found.latency.p50_ms,
            p95_ms=found.latency.p95_ms,
            p99_ms=found.latency.p99_ms,
            mean_ms=found.latency.mean_ms,
            n=found.detail.n,
            dropped=self._warmup,
            detail=found.detail,
            null_reasons={f"detail.{path}": why for path, why in found.reasons.items()},
        )


class MemoryPeaks(Struct, frozen=True, kw_only=True):
    """Bytes. cpu_rss_peak: resident set since the reset; …_lifetime: since the process began.

    cuda_allocated_peak: torch's allocator since anybody's last reset, by visible device, weights
    included; what torch did not allocate is not in it. mps_allocated: now, since Metal keeps no
    peak. A null has its reason.
    """

    cpu_rss_peak_bytes: int | None
    cpu_rss_peak_lifetime_bytes: int | None
    cuda_allocated_peak_bytes: dict[str, int] | None
    mps_allocated_bytes: int | None
    null_reasons: dict[str, str]


class MemoryProfiler:
    """Memory peaks of this process around somebody else's loop; several may look at one process.

    What is not sampled is neither read nor reset. host: where /proc is. devices: opens the CUDA
    devices, or raises LoadFailed with the reason.
    """

    def __init__(
        self,
        sample_cpu: bool = True,
        sample_cuda: bool = True,
        sample_mps: bool = True,
        *,
        host: Host | None = None,
        devices: Callable[[], TorchCuda] = cuda.opened,
    ) -> None:
        self._resident = Peak(host if host is not None else Host()) if sample_cpu else None
        self._mps = sample_mps
        self._cuda, self._why_no_cuda = _opened(devices) if sample_cuda else (None, _NOT_ASKED)
        self._why_no_peak = "not_requested: reset() begins one"

    def reset(self) -> None:
        """Begin new peaks: call it after warming up. The peak of the whole process stays."""
        if self._cuda is not None:
            self._cuda.reset_peaks()
        if self._resident is not None and not self._resident.reset():
            self._why_no_peak = "not_supported: the peak cannot be reset here"

    def peaks(self) -> MemoryPeaks:
        """Return the peaks so far; those of host memory are VmHWM (B1)."""
        nulls: dict[str, str] = {}
        high = self._resident.since_reset() if self._resident is not None else None
        lifetime = self._resident.lifetime() if self._resident is not None else None
        if lifetime is None:
            why = _NOT_ASKED if self._resident is None else _NO_PROC
            nulls |= dict.fromkeys(("cpu_rss_peak_bytes", "cpu_rss_peak_lifetime_bytes"), why)
        elif high is None:
            nulls["cpu_rss_peak_bytes"] = self._why_no_peak
        mps, why_no_mps = _mps_allocated() if self._mps else (None, _NOT_ASKED)
        if mps is None:
            nulls["mps_allocated_bytes"] = why_no_mps
        return MemoryPeaks(
            cpu_rss_peak_bytes=high,
            cpu_rss_peak_lifetime_bytes=lifetime,
            cuda_allocated_peak_bytes=self._cuda_peaks(nulls),
            mps_allocated_bytes=mps,
            null_reasons=nulls,
        )

    def _cuda_peaks(self, nulls: dict[str, str]) -> dict[str, int] | None:
        name = "cuda_allocated_peak_bytes"
        if self._cuda is None:
            nulls[name] = self._why_no_cuda
            return None
        peaks = self._cuda.peaks()
        known = {
            str(each.visible_index): each.allocated_peak_bytes
            for each in peaks
            if each.allocated_peak_bytes is not None
        }
        if not known:
            nulls[name] = next((each.reasons[name[5:]] for each in peaks), "not_supported")
            return None
        return known


def _opened(devices: Callable[[], TorchCuda]) -> tuple[TorchCuda | None, str]:
    """Return the CUDA devices, or None and why there are none; torch is not imported for it."""
    if "torch" not in sys.modules and devices is cuda.opened:
        return None, _NO_TORCH
    try:
        return devices(), ""
    except LoadFailed as error:
        return None, f"not_supported: {error.message}"


def _mps_allocated() -> tuple[int | None, str]:
    torch = sys.modules.get("torch")
    if torch is None:
        return None, _NO_TORCH
    if not torch.backends.mps.is_available():
        return None, "not_supported: no Metal device"
    return int(torch.mps.current_allocated_memory()), ""


def _positive(seconds: float) -> float:
    if isinstance(seconds, bool) or not math.isfinite(seconds) or seconds <= 0:
        raise Refused(f"{seconds!r} seconds make no sense", why="a time is positive and finite")
    return float(seconds)
