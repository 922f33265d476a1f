"""Measured peaks beside the same work in a bare loop, and known work beside its own roof (T15).

Both loops use as many threads as the device has cores, on the same cores. The ratio of the first
rows is ours to theirs and should be near 1; that of the last ones is the time at the roof to the
measured median: near 1 for work at its limit, near 0 for overhead.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import isnan, nan
from pathlib import Path

from farm.errors import NoResult
from farm.hardware import Roofs, Times, bounds, estimate, peaks
from tests.bench.row import Row, compare
from tests.workers.known_work import here, p50_ms, work
from workers import roofs
from workers.environment import child_environment
from workers.roofs import trials
from workers.station import Station

_ROUNDS = 3
_BARE = """
import json, os, sys, time
os.sched_setaffinity(0, json.loads(sys.argv[2]))
import numpy as np
import torch
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

def best(step, runs=12):
    found = []
    for _ in range(runs):
        began = time.perf_counter()
        step()
        found.append(time.perf_counter() - began)
    return min(found[2:])

def square(n):
    return np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)

def torch_product():
    pairs = [(torch.from_numpy(square(n)), n) for n in (256, 512, 768, 1024)]
    return max(2 * n**3 / best(lambda: torch.mm(a, a)) for a, n in pairs)

def numpy_product():
    pairs = [(square(n), n) for n in (256, 512, 768, 1024)]
    return max(2 * n**3 / best(lambda: np.matmul(a, a)) for a, n in pairs)

def torch_triad():
    n = int(sys.argv[3]) // 12
    a, b, c = (torch.from_numpy(np.empty(n, np.float32)).fill_(x) for x in (0.0, 1.0, 2.0))
    with torch.inference_mode():
        return 12 * n / best(lambda: torch.add(b, c, alpha=3.0, out=a), 8)

print(globals()[sys.argv[1]]() / 1e9)
"""


def rows() -> Iterator[Row]:
    """Yield the peaks beside bare loops, then known work beside its time at the roof."""
    with tempfile.TemporaryDirectory() as folder, _never() as stop:
        station = here(Path(folder))
        found = roofs.measure(station, lambda _text: None)
        if found.memory is None or found.products["fp32"] is None:
            raise NoResult("no peaks to compare with", why=str(found.null_reasons))
        size = found.memory.working_set_bytes
        product, triad = partial(_product, station, stop), partial(_triad, station, stop, size)
        for what, beside, ours, name in (
            ("fp32 product", "torch.mm", product, "torch_product"),
            ("fp32 product", "numpy.matmul", product, "numpy_product"),
            ("triad over memory", "torch.add", triad, "torch_triad"),
        ):
            yield compare(
                f"roofs: {what}",
                f"{beside} in a bare loop",
                "G/s",
                partial(_quiet, ours),
                partial(_bare, station, name, size),
                rounds=_ROUNDS,
            )
        for name in ("gemm", "triad", "adds"):
            yield _known(found, station, name, size // 12 + 1 if name == "triad" else 1)


def _known(found: Roofs, station: Station, name: str, elements: int) -> Row:
    asked = work(name, elements=elements)
    told, why = estimate(asked, peaks(found, moved_bytes=asked.moved_bytes), dtype="fp32")
    roof_ms = told.roofline_ms
    assert roof_ms is not None
    words = set()

    def measured() -> float:
        time_ms = _quiet(partial(p50_ms, station, name, elements=elements))
        if not isnan(time_ms):
            words.add(bounds(asked, told, Times(p50_ms=time_ms), reasons=why)[0].measured_bound)
        return time_ms

    row = compare("", "its measured median", "ms", lambda: roof_ms, measured, rounds=_ROUNDS)
    called = ", ".join(sorted(map(str, words)))
    return replace(row, what=f"roofline: {name} at the roof, {called}")


def _product(station: Station, stop: int) -> float | None:
    cores = len(station.device.cpus)
    found, _ = trials.product(station, "fp32", cores=cores, stop=stop, at="")
    return found.flops_per_s / 1e9 if found else None


def _triad(station: Station, stop: int, size: int) -> float | None:
    found, _ = trials.stream(station, size, stop=stop, at="")
    return found.triad_bytes_per_s / 1e9 if found else None


def _quiet(measure: Callable[[], float | None]) -> float:
    """Return the first of three tries that no neighbour disturbed, else NaN."""
    return next((each for each in (measure() for _ in range(3)) if each is not None), nan)


@contextmanager
def _never() -> Iterator[int]:
    """Yield a descriptor that never says stop."""
    ends = os.pipe()
    try:
        yield ends[0]
    finally:
        for each in ends:
            os.close(each)


def _bare(station: Station, name: str, size: int) -> float:
    """Return 10⁹ operations or bytes per second of the loop, on the cores of the device."""
    cpus = station.device.cpus
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run(
            [sys.executable, "-c", _BARE, name, json.dumps(cpus), str(size)],
            env=child_environment(os.environ, threads=len(cpus), folder=Path(folder)),
            capture_output=True,
            check=True,
        )
    return float(said.stdout)
