"""A Linux host by its /proc and /sys: each reading is a value, or None where it cannot be had.

The root of both trees is an argument, so a test writes the machine it needs, and a host without
/proc (macOS) is an empty folder. No reading needs privileges.
"""

from workers.host.boot import boot_of
from workers.host.neighbours import neighbours
from workers.host.probe import Probe, Ticks, core_ticks, edge
from workers.host.resident import Peak
from workers.host.tree import Host, Usage, cpu_list, number

__all__ = [
    "Host",
    "Peak",
    "Probe",
    "Ticks",
    "Usage",
    "boot_of",
    "core_ticks",
    "cpu_list",
    "edge",
    "neighbours",
    "number",
]
