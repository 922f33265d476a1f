"""The instruments as a library, for notebooks and programs of one's own.

Each name is imported when it is asked for: a latency profiler needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farm.interchange.document import SystemCard
    from workers.profiler.callables import (
        EfficiencyMetadata,
        ModelProfiler,
        ProfileReport,
        profile_model,
    )
    from workers.profiler.clocks import LatencyProfiler, MemoryProfiler
    from workers.profiler.per_layer import LayerProfileView, profile_per_layer
    from workers.profiler.profiler import Profiler, quick_profile
    from workers.profiler.speed import Milliseconds, Speedup, speedup

__all__ = [
    "EfficiencyMetadata",
    "LatencyProfiler",
    "LayerProfileView",
    "MemoryProfiler",
    "Milliseconds",
    "ModelProfiler",
    "ProfileReport",
    "Profiler",
    "Speedup",
    "SystemCard",
    "profile_model",
    "profile_per_layer",
    "quick_profile",
    "speedup",
]

_PLACES = {
    "farm.interchange.document": ("SystemCard",),
    "workers.profiler.callables": (
        *("EfficiencyMetadata", "ModelProfiler", "ProfileReport", "profile_model"),
    ),
    "workers.profiler.clocks": ("LatencyProfiler", "MemoryProfiler"),
    "workers.profiler.per_layer": ("LayerProfileView", "profile_per_layer"),
    "workers.profiler.profiler": ("Profiler", "quick_profile"),
    "workers.profiler.speed": ("Milliseconds", "Speedup", "speedup"),
}


def __getattr__(name: str) -> object:
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(place), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
