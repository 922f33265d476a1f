"""What hardware can do at best, and how a measurement compares: peaks, rooflines, limits.

Everything here is computed from numbers that are passed in; `roofs` holds peaks that a worker
measured, `table` those of data sheets.
"""

from farm.hardware.blocks import Times, Work, bounds, chosen, estimate
from farm.hardware.limits import (
    Verdict,
    gflops_per_second,
    heuristic_bound,
    measured_bound,
    memory_bandwidth_mbs,
    share_of_peak,
)
from farm.hardware.roofs import Product, Roofs, Stream, peaks
from farm.hardware.spec import GPUSpec, RooflineBound, peak_format, roofline, uses_tf32
from farm.hardware.table import Found, Row, lookup, named, table

__all__ = [
    "Found",
    "GPUSpec",
    "Product",
    "RooflineBound",
    "Roofs",
    "Row",
    "Stream",
    "Times",
    "Verdict",
    "Work",
    "bounds",
    "chosen",
    "estimate",
    "gflops_per_second",
    "heuristic_bound",
    "lookup",
    "measured_bound",
    "memory_bandwidth_mbs",
    "named",
    "peak_format",
    "peaks",
    "roofline",
    "share_of_peak",
    "table",
    "uses_tf32",
]
