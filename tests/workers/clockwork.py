"""A machine on which time passes only as a script says, and a bench on it."""

from collections.abc import Callable
from typing import Any

from farm.schema import Effort, Protocol
from workers.bench import Bench
from workers.fakes import FakeClock, FakeStream
from workers.record import CudaPeaks, Edge, MemoryReading

MS = 1_000_000


class Machine:
    """A machine whose time passes only in steps and in clock reads, as a script says."""

    def __init__(self, step_ns: Callable[[int], int], *, read_ns: int = 0) -> None:
        self.now = 0
        self.steps = 0
        self.waited = 0
        self.phases: list[str] = []
        self._step_ns, self._read_ns = step_ns, read_ns

    def clock(self) -> int:
        self.now += self._read_ns
        return self.now

    def step(self) -> object:
        self.now += self._step_ns(self.steps)
        self.steps += 1
        return None

    def edge(self) -> Edge:
        return Edge(
            at_ns=self.now,
            run_ns=self.now,
            wait_ns=self.waited,
            steal_ticks=0,
            total_ticks=0,
            psi_some_us=0,
            nr_throttled=0,
            major_faults=0,
            involuntary_switches=0,
            suspended_ns=0,
        )

    def waited_ns(self) -> int | None:
        return self.waited

    def reset_peak(self) -> None:
        self.phases.append("reset")

    def memory(self) -> MemoryReading:
        return MemoryReading(
            rss_after_load_bytes=1, rss_peak_bytes=2, rss_peak_lifetime_bytes=3, pss_bytes=None
        )


def bench(
    machine: Machine, *, asked: Protocol | None = None, effort: Effort | None = None
) -> Bench:
    return Bench(
        step=machine.step,
        sync=None,
        asked=asked or Protocol(),
        effort=effort or Effort(),
        batch=1,
        clock=machine.clock,
        probe=machine,
        progress=lambda _phase, _n: None,
    )


class FakeDevice(FakeStream):
    """A device whose allocator holds as much as it is told to."""

    def __init__(self, held: Callable[[], int] = lambda: 1 << 20, **more: Any) -> None:
        self.clock: FakeClock
        super().__init__(more.pop("clock", None) or FakeClock(), **more)
        self.held, self.resets = held, 0

    def reset_peaks(self) -> None:
        self.resets += 1

    def peaks(self) -> list[CudaPeaks]:
        return [
            CudaPeaks(
                visible_index=0,
                allocated_peak_bytes=self.held(),
                reserved_peak_bytes=2 * self.held(),
                requested_peak_bytes=self.held(),
                inactive_split_peak_bytes=0,
                alloc_retries=0,
            )
        ]

    def allocator(self) -> tuple[int, int]:
        return self.held(), 0
