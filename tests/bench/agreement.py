"""Do repeats of one thing agree, and are those that do not agree flagged: with burners and without.

T2 and T3 of the acceptance list. A burner is a process that spins on the core of the measurement.
"""

import os
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory

from tests.bench.row import Row
from tests.integration.test_instrument import flags_of
from workers import phases

_REPEATS = 16
_N = 2_000
_BLOCK = 50


def rows() -> Iterator[Row]:
    """Yield how repeats agree under a burner, and which share of them is called contended."""
    core = max(os.sched_getaffinity(0))
    with burner(core):
        medians, means = _repeats()
    ours, theirs = _cv(medians), _cv(means)
    yield _row("A/A: CV of the median, a burner", "CV of block means", "%", ours, theirs)
    medians, means = _repeats()
    ours, theirs = _cv(medians), _cv(means)
    yield _row("A/A: CV of the median, as it is", "CV of block means", "%", ours, theirs)
    with burner(core):
        busy = _contended(20)
    quiet = _contended(20)
    yield _row("contended: repeats with a burner", "without one", "%", busy, quiet)


@contextmanager
def burner(core: int) -> Iterator[None]:
    """Keep a core busy meanwhile."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(process.pid, {core})
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _repeats() -> tuple[list[float], list[float]]:
    """Return medians, and the mean of one block each, of a step of about 50 µs, one thread."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        series = [_series() for _ in range(_REPEATS)]
    finally:
        os.sched_setaffinity(0, before)
    return [median(each) for each in series], [mean(each[:_BLOCK]) for each in series]


def _series() -> "array[int]":
    def step() -> object:
        return sum(range(3_000))

    into = array("q", bytes(8 * _N))
    phases.loop(step, None, time.perf_counter_ns, into, 0, _N)
    return into


def _contended(count: int) -> float:
    with TemporaryDirectory() as folder:
        found = [flags_of(Path(folder) / str(index)) for index in range(count)]
    return 100 * mean("contended" in flags for flags in found)


def _cv(values: list[float]) -> float:
    return 100 * stdev(values) / mean(values)


def _row(what: str, beside: str, unit: str, ours: float, bare: float) -> Row:
    ratio = ours / bare if bare else float("inf")
    return Row(what, beside, unit, ours, bare, ratio, ratio, ratio)
