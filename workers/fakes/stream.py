"""A device that works through a queue, and steps that fill it."""

from bisect import bisect_right
from dataclasses import dataclass

from workers.fakes.clock import FakeClock


@dataclass(eq=False)
class FakeEvent:
    """at_ns: when it happens, None while it was never recorded."""

    at_ns: int | None = None


class FakeStream:
    """A device that works through one queue while the host's clock goes on.

    depth: launches that the queue holds; a further one waits for a free place. quantum_ns: what
    event times are rounded to. can_spin: whether there is a blocking kernel.
    """

    def __init__(
        self,
        clock: FakeClock,
        *,
        depth: int = 1_000,
        quantum_ns: int = 1,
        can_spin: bool = True,
    ) -> None:
        self.clock = clock
        self.synchronized = 0
        self.most_queued = 0
        self._depth, self._quantum_ns, self._can_spin = depth, quantum_ns, can_spin
        self._ends: list[int] = []

    def launch(self, work_ns: int) -> None:
        """Queue work of a length; return at once, or when the queue has a place."""
        if self._queued() >= self._depth:
            self._until(self._ends[-self._depth])
        self._ends.append(max(self.clock.now_ns, self._free_at()) + work_ns)
        self.most_queued = max(self.most_queued, self._queued())

    def event(self) -> FakeEvent:
        return FakeEvent()

    def record(self, event: FakeEvent, /) -> None:
        event.at_ns = max(self.clock.now_ns, self._free_at())

    def wait(self, event: FakeEvent, /) -> None:
        self._until(_happens(event))

    def done(self, event: FakeEvent, /) -> bool:
        return _happens(event) <= self.clock.now_ns

    def elapsed_ns(self, begin: FakeEvent, end: FakeEvent, /) -> int:
        if not self.done(end):
            raise RuntimeError("the event has not happened yet")
        quantum = self._quantum_ns
        return round((_happens(end) - _happens(begin)) / quantum) * quantum

    def synchronize(self) -> None:
        self.synchronized += 1
        self._until(self._free_at())

    def spin(self, ns: int, /) -> bool:
        if self._can_spin:
            self.launch(ns)
        return self._can_spin

    def _free_at(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _queued(self) -> int:
        return len(self._ends) - bisect_right(self._ends, self.clock.now_ns)

    def _until(self, at_ns: int) -> None:
        self.clock.now_ns = max(self.clock.now_ns, at_ns)


def _happens(event: FakeEvent) -> int:
    if event.at_ns is None:
        raise RuntimeError("the event was never recorded")
    return event.at_ns


class FakeKernels:
    """A step of so many launches, each of which costs the host and the device their time.

    waits: whether the step itself waits for its result, as one that reads a number back does.
    """

    def __init__(
        self,
        stream: FakeStream,
        *,
        launches: int = 1,
        host_ns: int,
        device_ns: int,
        waits: bool = False,
    ) -> None:
        self._stream, self._launches, self._waits = stream, launches, waits
        self._host_ns, self._device_ns = host_ns, device_ns
        self.calls = 0

    def __call__(self) -> object:
        self.calls += 1
        for _ in range(self._launches):
            self._stream.clock.advance(self._host_ns)
            self._stream.launch(self._device_ns)
        if self._waits:
            self._stream.synchronize()
        return None
