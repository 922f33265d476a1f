"""Whether a profile is what it says it is, beyond the figures that a row shows."""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from farm import interchange, schema
from farm.errors import FarmError
from farm.roster.reports import Report
from farm.schema import Profile

# Relative: a percentile is interpolated, and of equal samples it may miss them in the last digit.
_ROUNDING: Final = 1e-9


def fault(report: Report) -> str:
    """Return what is wrong with a report as a whole, or "".

    It is to hold finite numbers only (S1.43) and to be of the shape that its schema says, and the
    times of a callable JSON are to be those of its samples.
    """
    try:
        data = json.dumps(report.plain, allow_nan=False).encode()
    except ValueError:
        return next(_not_finite(report.plain), "holds a number that is not finite")
    except RecursionError:
        return "is nested too deeply"
    try:
        if report.is_callable:
            interchange.of_bytes(data, name=report.where)
        else:
            schema.decode(data, Profile)
    except FarmError as error:
        what = error.what.removeprefix(f"{report.where}: ")
        return f"{what}: {error.why}" if error.why else what
    return ""


def disorder(row: Mapping[str, object]) -> list[str]:
    """Return each percentile of a row that exceeds the next one that is there.

    In a profile of several processes the median is that of their medians, and the tails are of all
    samples: where it exceeds them, one process gave nearly all samples, and none stands for all.
    """
    known = [(name, row[name]) for name in ("p50_ms", "p95_ms", "p99_ms")]
    numbers = [(name, each) for name, each in known if isinstance(each, int | float)]
    return [
        f"latency.{low} is {a}, more than {high} of {b}"
        for (low, a), (high, b) in pairwise(numbers)
        if a > b * (1 + _ROUNDING)
    ]


def _not_finite(plain: object) -> Iterator[str]:
    """Yield the path of every number that is not finite; without recursion, for any depth."""
    waiting = [("", plain)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            yield f"{path} is {value}: a document holds finite numbers only"
        items: list[tuple[object, object]] = []
        if isinstance(value, dict):
            items = list(value.items())
        elif isinstance(value, list):
            items = list(enumerate(value))
        inside = f"{path}." if path else ""
        waiting += [(f"{inside}{key}", each) for key, each in reversed(items)]
