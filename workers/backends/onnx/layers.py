"""The time of every node, by the profiler of ONNX Runtime in a session of its own.

It counts whole microseconds, and made a small model 3.8 times slower: rows are shares, no latency.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from farm.errors import FarmError
from farm.graphs import Graph
from farm.graphs import profile as ort
from farm.trace.layers import numbered
from workers.backends import LayerAsk, LayerPass, NotOffered
from workers.backends.numbers import Array
from workers.backends.onnx import session
from workers.backends.onnx.session import Opened, Settings
from workers.record import LayerReading
from workers.timing import in_turns, without_collector

ITERATIONS: Final = 200  # where nobody says how many
# At a million events the profiler stops and says so to nobody; a loop may run its nodes often.
_MOST_EVENTS: Final = 900_000


def measure(
    run: Callable[[], object],
    settings: Settings,
    graph: Graph,
    inputs: Mapping[str, Array],
    asked: LayerAsk,
    *,
    opened: Callable[..., Opened] = session.opened,
) -> LayerPass:
    """Return the time of each node in each profiled run, its own alone, calls in a run summed.

    run: the clean step, which runs as often before each block as the profiled one in it. The times
    are int64 ns, layers × iterations, in steps of 1 µs. Nodes that the runtime has fused are one
    layer, under the name that it gives them; a name that comes again gets `#2`. The first run is
    never kept. With a budget the blocks are small enough for a slow step, and no block begins once
    it is spent. opened: makes the profiled session. Raises NotOffered if the profile cannot be
    read or holds too few runs.
    """
    warmup = max(1, asked.warmup)
    room = _MOST_EVENTS // (len(graph.nodes) + 2) - warmup
    if room < 1:
        raise NotOffered("not_supported", f"{len(graph.nodes)} nodes are too many events")
    with tempfile.TemporaryDirectory(prefix="farm-layers-") as folder:
        engine = opened(settings, profile=Path(folder) / "profile").session
        names = [each.name for each in engine.get_outputs()]
        seen = _Seen(asked.clock, run, lambda: engine.run(names, inputs))
        with without_collector():
            blocks = in_turns(
                seen.clean,
                seen.profiled,
                iterations=min(asked.iterations, room),
                typical_ns=seen.warm_up(warmup),
                budget_ns=asked.budget_ns,
                clock=asked.clock,
                progress=partial(asked.progress, "layers"),
            )
        found = _read(Path(engine.end_profiling()))
    whole = found[warmup : warmup + len(seen.profiled_ns)]
    if not whole:
        raise NotOffered("error", "the profile ends before the first measured run")
    table = ort.layers(whole)
    reading = LayerReading(
        method="profiler",
        clock="wall",
        layers=numbered(table.names),
        types=table.types,
        calls=table.calls,
        warmup=warmup,
        iterations=len(whole),
        blocks=blocks,
    )
    return LayerPass(
        reading=reading,
        layer_ns=table.layer_ns,
        profiled_ns=np.array(seen.profiled_ns[: len(whole)], dtype=np.int64),
        clean_ns=np.array(seen.clean_ns, dtype=np.int64),
    )


@dataclass
class _Seen:
    """The times of whole runs, clean ones and profiled ones, by the same clock."""

    clock: Callable[[], int]
    run: Callable[[], object]
    engine: Callable[[], object]
    clean_ns: list[int] = field(default_factory=list)
    profiled_ns: list[int] = field(default_factory=list)

    def warm_up(self, size: int) -> float:
        """Return what a profiled run typically takes, in ns; none of these counts."""
        return median(self._times(self.engine, size))

    def clean(self, size: int) -> None:
        self.clean_ns += self._times(self.run, size)

    def profiled(self, size: int) -> None:
        self.profiled_ns += self._times(self.engine, size)

    def _times(self, step: Callable[[], object], size: int) -> list[int]:
        clock, times = self.clock, []
        for _ in range(size):
            began = clock()
            output = step()
            times.append(clock() - began)
            del output
        return times


def _read(path: Path) -> list[ort.GraphRun]:
    try:
        return ort.read(path)
    except FarmError as error:
        why = f": {error.why}" if error.why else ""
        raise NotOffered("error", f"{error.what}{why}"[:300]) from error
