"""The units of the metrics of a trace, which their names tell."""

import re
from typing import Final

_UNITS: Final = (
    (re.compile(r"unique_kernels"), ""),
    (re.compile(r".*_ms(_mean)?"), "ms"),
    (re.compile(r".*_us"), "µs"),
    (re.compile(r".*_pct"), "%"),
    (re.compile(r".*_bytes"), "bytes"),
    (re.compile(r".*_mb"), "MB"),
    (re.compile(r"img_per_s|.*_img_s"), "images/s"),
    (re.compile(r".*_per_step|.*_kernels|.*_ops"), "per step"),
    (re.compile(r"gpu_util.*|gpu_active|op_cover|.*_frac|.*_cv"), "of 1"),
)


def unit(metric: str) -> str:
    """Return the unit of a metric; "" for a plain number or a word."""
    return next((each for pattern, each in _UNITS if pattern.fullmatch(metric)), "")
