"""A loaded step on its bench: what is called, what was asked of it, and what gets recorded."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from farm.schema import Effort
from farm.schema import Protocol as Asked
from workers.backends import Accelerator, LayerPass
from workers.energy import Meter
from workers.record import Edge, MemoryReading
from workers.timing import Compiles

Clock = Callable[[], int]

# Bits of an iteration's label: what disturbed it, or that nothing is known to have.
LABEL_PREEMPTED: Final = 1
LABEL_GC: Final = 2
LABEL_THROTTLED: Final = 4
LABEL_ALLOC: Final = 8
LABEL_COMPILE: Final = 16
LABEL_UNEXPLAINED: Final = 32


class Probe(Protocol):
    """What a phase may ask of the machine; every reading is None where it is not offered."""

    def edge(self) -> Edge: ...
    def waited_ns(self) -> int | None: ...
    def reset_peak(self) -> None: ...
    def memory(self) -> MemoryReading: ...


@dataclass
class Bench:
    """One loaded step on its bench: what to call, what was asked, which clock and probe to use.

    prepare, compiles, accelerator: as of a step. meter: what reads the energy of a window, None
    where nobody asked.
    """

    step: Callable[[], object]
    sync: Callable[[], None] | None
    asked: Asked
    effort: Effort
    batch: int
    clock: Clock
    probe: Probe
    progress: Callable[[str, int], None]
    prepare: Callable[[], object] | None = None
    compiles: Compiles | None = None
    accelerator: Accelerator | None = None
    meter: Meter | None = None
    typical_ns: float = 0.0


@dataclass
class Samples:
    """The arrays of one child, in order of recording; all in ns but for the labels.

    A latency sample is the time of `of_blocks` steps divided by that number, rounded.
    """

    warmup_ns: "array[int]" = field(default_factory=lambda: array("q"))
    latency_ns: "array[int]" = field(default_factory=lambda: array("q"))
    gpu_time_ns: "array[int]" = field(default_factory=lambda: array("q"))
    enqueue_ns: "array[int]" = field(default_factory=lambda: array("q"))
    completion_ns: "array[int]" = field(default_factory=lambda: array("q"))
    labels: bytearray = field(default_factory=bytearray)
    layers: LayerPass | None = None
