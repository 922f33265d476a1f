"""Peaks of one device, and the roofline that they draw over an amount of work.

Nothing here was timed. A bound says what a device could do at best with so many operations and so
many bytes, and every part of it is None where a number that it needs is not known.
"""

from typing import Literal

from msgspec import Struct

Source = Literal["measured", "datasheet", "user"]
Side = Literal["compute", "memory"]


class GPUSpec(Struct, frozen=True, kw_only=True):
    """Peaks of a device, a CPU as well as a GPU; source: where they are from.

    peak_flops_per_s: by the word of the number format (fp32, tf32, bf16 …), dense, with fp32
    accumulation. confidence, origin: of a table's row. unknown: why a peak is not there, by its
    word or by `bytes`, as a null code.
    """

    name: str
    peak_flops_per_s: dict[str, float]
    peak_bytes_per_s: float | None
    source: Source
    confidence: str = ""
    origin: str = ""
    unknown: dict[str, str] = {}


class RooflineBound(Struct, frozen=True, kw_only=True):
    """The least time that some work takes on a device: computed from peaks, and not measured.

    flops: of the work; moved_bytes: to and from memory, at least. Times in ms. Source: Williams,
    Waterman and Patterson 2009, Roofline; S1.4, S2.8.
    """

    flops: float | None
    moved_bytes: float | None
    peak_flops_per_s: float | None
    peak_bytes_per_s: float | None
    not_measured: Literal[True] = True

    def __post_init__(self) -> None:
        for peak in (self.peak_flops_per_s, self.peak_bytes_per_s):
            if peak is not None and not 0 < peak < float("inf"):
                raise ValueError(f"a peak of {peak}")

    @property
    def compute_ms(self) -> float | None:
        return _ms(self.flops, self.peak_flops_per_s)

    @property
    def memory_ms(self) -> float | None:
        return _ms(self.moved_bytes, self.peak_bytes_per_s)

    @property
    def roofline_ms(self) -> float | None:
        """The larger of the two; None while one of them is not known."""
        if self.compute_ms is None or self.memory_ms is None:
            return None
        return max(self.compute_ms, self.memory_ms)

    @property
    def bound(self) -> Side | None:
        if self.compute_ms is None or self.memory_ms is None:
            return None
        return "compute" if self.compute_ms >= self.memory_ms else "memory"

    @property
    def arithmetic_intensity_flop_per_byte(self) -> float | None:
        """None too where no byte is moved."""
        return (
            self.flops / self.moved_bytes if self.flops is not None and self.moved_bytes else None
        )

    @property
    def ridge_flop_per_byte(self) -> float | None:
        """The intensity from which on compute is the limit."""
        if self.peak_flops_per_s is None or self.peak_bytes_per_s is None:
            return None
        return self.peak_flops_per_s / self.peak_bytes_per_s

    @property
    def attainable_flops_per_s(self) -> float | None:
        intensity = self.arithmetic_intensity_flop_per_byte
        if self.peak_flops_per_s is None or self.peak_bytes_per_s is None or intensity is None:
            return None
        return min(self.peak_flops_per_s, self.peak_bytes_per_s * intensity)


def peak_format(spec: GPUSpec, dtype: str, *, tf32: bool = False) -> str:
    """Return the word of the peak that holds for a dtype: fp32 products run as tf32 if allowed.

    tf32: what the framework was set to. A device without such a unit computes them in fp32.
    """
    return "tf32" if dtype == "fp32" and tf32 and "tf32" in spec.peak_flops_per_s else dtype


def uses_tf32(matmul_precision: str) -> bool:
    """Return whether fp32 products may run on fewer bits, by torch's word for its setting."""
    return matmul_precision in ("high", "medium")


def roofline(
    flops: float | None,
    moved_bytes: float | None,
    *,
    spec: GPUSpec,
    dtype: str,
    tf32: bool = False,
) -> RooflineBound:
    """Return the bound of some work on a device, in a dtype as `peak_format` reads it."""
    return RooflineBound(
        flops=flops,
        moved_bytes=moved_bytes,
        peak_flops_per_s=spec.peak_flops_per_s.get(peak_format(spec, dtype, tf32=tf32)),
        peak_bytes_per_s=spec.peak_bytes_per_s,
    )


def _ms(amount: float | None, per_s: float | None) -> float | None:
    return None if amount is None or per_s is None else 1000 * amount / per_s
