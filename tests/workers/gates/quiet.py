"""A host on which nothing is in the way of a measurement."""

from workers.gates import HostState

QUIET_HOST = HostState(
    busy_share=0.0,
    some_share=0.0,
    available_bytes=8 << 30,
    need_bytes=2 << 30,
    free_share=0.5,
    clocksource="tsc",
)
