"""The callable JSON of another profiler: written with our figures, read from either, compared.

Its keys, names and units are that tool's; the statistics are ours, and our own fields come behind.
"""

from farm.interchange.comparing import Comparison, compare_callables
from farm.interchange.document import CallableProfile, encode, is_callable, realtime_budget
from farm.interchange.foreign import LIMIT_BYTES, of_bytes, read
from farm.interchange.origin import Origin, origin
from farm.interchange.process import Process, that_counts
from farm.interchange.writing import Request, of_profile

__all__ = [
    "LIMIT_BYTES",
    "CallableProfile",
    "Comparison",
    "Origin",
    "Process",
    "Request",
    "compare_callables",
    "encode",
    "is_callable",
    "of_bytes",
    "of_profile",
    "origin",
    "read",
    "realtime_budget",
    "that_counts",
]
