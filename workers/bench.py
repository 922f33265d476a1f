"""A loaded step on its bench: what is called, what was asked of it, and what gets recorded."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from farm.schema import Effort
from farm.schema import Protocol as Asked
from workers.record import Edge, MemoryReading

Clock = Callable[[], int]

# Bits of an iteration's label: what disturbed it, or that nothing is known to have.
LABEL_PREEMPTED: Final = 1
LABEL_UNEXPLAINED: Final = 32


class Probe(Protocol):
    """What a phase may ask of the machine; every reading is None where it is not offered."""

    def edge(self) -> Edge: ...
    def waited_ns(self) -> int | None: ...
    def reset_peak(self) -> None: ...
    def memory(self) -> MemoryReading: ...


@dataclass
class Bench:
    """One loaded step on its bench: what to call, what was asked, which clock and probe to use."""

    step: Callable[[], object]
    sync: Callable[[], None] | None
    asked: Asked
    effort: Effort
    batch: int
    clock: Clock
    probe: Probe
    progress: Callable[[str, int], None]
    typical_ns: float = 0.0


@dataclass
class Samples:
    """The arrays of one repeat, in order of recording; all in ns but for the labels.

    A latency sample is the time of `of_blocks` steps divided by that number, rounded.
    """

    warmup_ns: "array[int]" = field(default_factory=lambda: array("q"))
    latency_ns: "array[int]" = field(default_factory=lambda: array("q"))
    completion_ns: "array[int]" = field(default_factory=lambda: array("q"))
    labels: bytearray = field(default_factory=bytearray)
