"""The events of a trace by column."""

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

KERNEL, MEMCPY, MEMSET, RUNTIME, DRIVER, OP, ANNOTATION = range(1, 8)
GPU: Final = (KERNEL, MEMCPY, MEMSET)
CALLS: Final = (RUNTIME, DRIVER)
NONE: Final = 0  # no correlation, no operator
ABSENT: Final = -(2**63)  # a number that is not told


class Lane(NamedTuple):
    """Where something ran: (device, stream) on a GPU, else (process, thread)."""

    outer: str
    inner: str


class Events(NamedTuple):
    """Spans, one row each, in no order: times in ns, `name` and `lane` as indices of the tables.

    kind: as numbered above. correlation, external: NONE where there is none; texts have numbers
    below −1. occupancy: percent, NaN where it is not told.
    """

    start: "Whole"
    end: "Whole"
    kind: "NDArray[np.uint8]"
    name: "NDArray[np.int32]"
    lane: "NDArray[np.int32]"
    correlation: "Whole"
    external: "Whole"
    occupancy: "NDArray[np.float32]"

    def where(self, chosen: "NDArray[np.bool_] | NDArray[np.intp]") -> "Events":
        """Return the rows that a mask or a list of indices chooses."""
        return Events(
            self.start[chosen],
            self.end[chosen],
            self.kind[chosen],
            self.name[chosen],
            self.lane[chosen],
            self.correlation[chosen],
            self.external[chosen],
            self.occupancy[chosen],
        )


class Allocations(NamedTuple):
    """Memory events: when (ns), by how many bytes, and the totals after it; else ABSENT."""

    time: "Whole"
    bytes: "Whole"
    allocated: "Whole"
    reserved: "Whole"
    device_type: "Whole"
    device: "Whole"
