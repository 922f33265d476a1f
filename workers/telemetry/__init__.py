"""Windows over telemetry: what a device went through while a pass was measured.

A probe outside the child takes samples at 10 Hz; a pass is cut out of them afterwards, by the one
monotonic clock that all processes share. A check that could not be made is a flag of its own, for
an unknown never counts as passed. Rules: `measurement.md` §8.
"""

from workers.telemetry.iterations import spans, throttled
from workers.telemetry.passes import columns, passes
from workers.telemetry.samples import Sample, Source, take
from workers.telemetry.window import Telemetry, window

__all__ = [
    "Sample",
    "Source",
    "Telemetry",
    "columns",
    "passes",
    "spans",
    "take",
    "throttled",
    "window",
]
