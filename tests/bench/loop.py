"""The timed loop: what it records for nothing, and what an iteration costs around the step."""

import time
from array import array
from collections.abc import Iterator
from statistics import median

from tests.bench.row import Row, compare
from workers import phases

_N = 50_000


def rows() -> Iterator[Row]:
    """Yield the price of an iteration beside bare clock reads and beside torch's own timer."""
    clock = time.perf_counter_ns
    yield compare("loop: recorded for a no-op", "two clock reads in a row", "ns", _floor, _reads)
    yield compare("loop: wall per iteration", "two clock reads in a row", "ns", _wall, _reads)
    try:
        from torch.utils.benchmark import Timer
    except ImportError:
        return
    timer = Timer("f()", globals={"f": lambda: None}, num_threads=1)

    def torch_wall() -> float:
        began = clock()
        timer.timeit(_N)
        return (clock() - began) / _N

    yield compare("loop: wall per iteration", "torch Timer.timeit", "ns", _wall, torch_wall)


def _reads() -> float:
    clock = time.perf_counter_ns
    found = []
    for _ in range(2000):
        a = clock()
        b = clock()
        found.append(b - a)
    return median(found)


def _floor() -> float:
    return float(phases.timer_floor_ns(time.perf_counter_ns))


def _wall() -> float:
    into = array("q", bytes(8 * _N))
    began = time.perf_counter_ns()
    phases.loop(lambda: None, None, time.perf_counter_ns, into, 0, _N)
    return (time.perf_counter_ns() - began) / _N
