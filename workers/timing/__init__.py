"""Timing beyond the plain loop: devices with a queue, compilers, caches."""

from workers.timing.caches import host_flush, pool_size, rotating, rotation, timed_after
from workers.timing.collector import without_collector
from workers.timing.compiled import CompilePhase, Compiles, until_compiled
from workers.timing.device import (
    IN_FLIGHT,
    MOST_EVENT_PAIRS,
    DeviceTime,
    StreamDevice,
    completions,
    gpu_time_pass,
    is_long_enough,
    pass_iterations,
    pipelined,
)
from workers.timing.turns import in_turns

__all__ = [
    "IN_FLIGHT",
    "MOST_EVENT_PAIRS",
    "CompilePhase",
    "Compiles",
    "DeviceTime",
    "StreamDevice",
    "completions",
    "gpu_time_pass",
    "host_flush",
    "in_turns",
    "is_long_enough",
    "pass_iterations",
    "pipelined",
    "pool_size",
    "rotating",
    "rotation",
    "timed_after",
    "until_compiled",
    "without_collector",
]
