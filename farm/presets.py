"""Presets: the numbers of other tools, so that a sweep measures as long as they did.

Names and counts are theirs, statistics are ours, and their faults are not copied
(`measurement.md` §16). A preset is part of the protocol: what it measured is compared with its
like alone.
"""

from collections.abc import Mapping
from typing import Any, Final

# Iterations before and in the latency pass, and one process, unless the sweep says otherwise.
_PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    # of a per-layer profile: max(5, 5 %) before 100
    "yasp": {"warmup": 5, "iterations": 100, "layer_iterations": 100},
    # of a profile of a function, which decides on gradients itself and keeps its collector
    "rpx": {"warmup": 10, "iterations": 1000, "gc": "on", "grad": "function"},
    "tinytorch": {"warmup": 10, "iterations": 100, "layer_iterations": 10},
    "libreyolo": {"warmup": 20, "iterations": 100},
}
NAMES: Final = tuple(_PRESETS)


def fields(name: str) -> dict[str, Any]:
    """Return what a preset sets, by the keys of a sweep's `measure`; KeyError for another name."""
    return {"repeats": 1, **_PRESETS[name]}
