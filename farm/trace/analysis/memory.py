"""Peaks of device memory as a trace tells them."""

from typing import NamedTuple

import numpy as np

from farm.trace.reading.columns import ABSENT, Allocations


class Peaks(NamedTuple):
    """Bytes; relative: of what was allocated after the trace began, where no totals are told."""

    allocated: int | None
    reserved: int | None
    relative: int | None


def peaks(found: Allocations) -> Peaks:
    """Return the largest totals on devices, or else of the running sum of all changes.

    Device Type 0 is the host; 1 is CUDA, 6 HIP. Changes of one instant count together.
    """
    on_device = (found.device_type != ABSENT) & (found.device_type != 0)
    allocated = found.allocated[on_device & (found.allocated != ABSENT)]
    reserved = found.reserved[on_device & (found.reserved != ABSENT)]
    if allocated.size or reserved.size:
        most = [int(each.max()) if each.size else None for each in (allocated, reserved)]
        return Peaks(most[0], most[1], None)
    changes = on_device & (found.bytes != ABSENT)
    if not changes.any():
        return Peaks(None, None, None)
    return Peaks(None, None, _relative(found, changes))


def _relative(found: Allocations, changes: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int:
    """Return the peak over devices of the running sum of what was allocated and freed."""
    most = 0
    for device in np.unique(found.device[changes]):
        which = changes & (found.device == device)
        times, at = np.unique(found.time[which], return_inverse=True)
        steps = np.zeros(times.size, "i8")
        np.add.at(steps, at, found.bytes[which])
        most = max(most, int(np.cumsum(steps).max()))
    return most
