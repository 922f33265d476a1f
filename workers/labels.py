"""Why an iteration was slow: what happened during it, told by counters that only grow.

No sample is deleted. A block of iterations between two readings gets the bits of its causes, and
what lies far above the rest without a cause is labelled as unexplained (`measurement.md` §8).
"""

import gc
from collections.abc import Callable

import numpy as np

from farm.stats.labels import unexplained
from workers.bench import (
    LABEL_ALLOC,
    LABEL_COMPILE,
    LABEL_GC,
    LABEL_PREEMPTED,
    LABEL_UNEXPLAINED,
    Bench,
    Samples,
)


class Watch:
    """What happened during each block of iterations. seen: all bits so far."""

    def __init__(self, bench: Bench) -> None:
        self._waited = bench.probe.waited_ns
        compiles, accelerator = bench.compiles, bench.accelerator
        self._counters: list[tuple[int, Callable[[], int]]] = [(LABEL_GC, _collections)]
        if compiles is not None:
            self._counters.append((LABEL_COMPILE, lambda: compiles.events() or 0))
        if accelerator is not None:
            self._counters.append((LABEL_ALLOC, lambda: accelerator.allocator()[0]))
        self._before: list[int] = []
        self._wait: int | None = None
        self.seen = 0

    def start(self) -> None:
        """Take the counters as they stand before the first block."""
        self._before = [read() for _, read in self._counters]
        self._wait = self._waited()

    def cause(self, took_ns: int) -> int:
        """Return the label bits of a block that took so long; a wait counts above 1 % of it."""
        waiting, bits = self._waited(), 0
        if waiting is not None and self._wait is not None:
            bits = LABEL_PREEMPTED if waiting - self._wait > took_ns // 100 else 0
        self._wait = waiting
        for index, (bit, read) in enumerate(self._counters):
            now = read()
            if now > self._before[index]:
                bits |= bit
            self._before[index] = now
        self.seen |= bits
        return bits


def _collections() -> int:
    """Return how often the collector has run; one call costs less than a microsecond."""
    return sum(each["collections"] for each in gc.get_stats())


def label_unexplained(samples: Samples) -> None:
    """Label what lies beyond the outlier bound and has no cause."""
    if samples.latency_ns:
        caused = np.frombuffer(samples.labels, dtype=np.uint8) != 0
        for index in np.flatnonzero(unexplained(samples.latency_ns, caused)):
            samples.labels[index] = LABEL_UNEXPLAINED
