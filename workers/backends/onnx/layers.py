"""The time of every node, by the profiler of ONNX Runtime in a session of its own.

It counts whole microseconds, and made a small model 3.8 times slower: rows are shares, no latency.
"""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from farm.errors import FarmError
from farm.graphs import Graph
from farm.graphs import profile as ort
from farm.trace.layers import numbered
from workers.backends import LayerAsk, LayerPass, NotOffered
from workers.backends.numbers import Array
from workers.backends.onnx import session
from workers.backends.onnx.session import Settings
from workers.record import LayerReading

ITERATIONS: Final = 200  # where nobody says how many
_BLOCKS: Final = 10
# At a million events the profiler stops and says so to nobody; a loop may run its nodes often.
_MOST_EVENTS: Final = 900_000


def measure(
    run: Callable[[], object],
    settings: Settings,
    graph: Graph,
    inputs: Mapping[str, Array],
    asked: LayerAsk,
) -> LayerPass:
    """Return the time of each node in each profiled run, its own alone, calls in a run summed.

    run: the clean step, which runs as often before each block as the profiled one in it. The times
    are int64 ns, layers × iterations, in steps of 1 µs. Nodes that the runtime has fused are one
    layer, under the name that it gives them; a name that comes again gets `#2`. The first run is
    never kept. Raises NotOffered if the profile cannot be read or holds too few runs.
    """
    wanted = asked.iterations
    warmup = max(1, asked.warmup)
    room = _MOST_EVENTS // (len(graph.nodes) + 2) - warmup
    if room < 1:
        raise NotOffered("not_supported", f"{len(graph.nodes)} nodes are too many events")
    with tempfile.TemporaryDirectory(prefix="farm-layers-") as folder:
        opened = session.opened(settings, profile=Path(folder) / "profile").session
        names = [each.name for each in opened.get_outputs()]
        passing = _Passing(run, lambda: opened.run(names, inputs), asked)
        for _ in range(warmup):
            passing.profiled()
        passing.go(min(wanted, room))
        found = _read(Path(opened.end_profiling()))
    whole = found[warmup : warmup + len(passing.profiled_ns)]
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
        blocks=passing.blocks,
    )
    return LayerPass(
        reading=reading,
        layer_ns=table.layer_ns,
        profiled_ns=np.array(passing.profiled_ns[: len(whole)], dtype=np.int64),
        clean_ns=np.array(passing.clean_ns, dtype=np.int64),
    )


class _Passing:
    """Blocks of clean runs and of profiled ones, in turn, each run timed by the same clock."""

    def __init__(
        self, clean: Callable[[], object], profiled: Callable[[], object], asked: LayerAsk
    ) -> None:
        self._clean, self.profiled, self._asked = clean, profiled, asked
        self.clean_ns: list[int] = []
        self.profiled_ns: list[int] = []
        self.blocks = 0

    def go(self, iterations: int) -> None:
        """Run that many of each, or until the budget is spent at the end of a block."""
        began = self._asked.clock()
        size = -(-iterations // _BLOCKS)
        while (left := iterations - len(self.profiled_ns)) > 0:
            for step, into in ((self._clean, self.clean_ns), (self.profiled, self.profiled_ns)):
                self._time(step, into, min(size, left))
            self.blocks += 1
            self._asked.progress("layers", len(self.profiled_ns))
            budget = self._asked.budget_ns
            if budget is not None and self._asked.clock() - began > budget:
                return

    def _time(self, step: Callable[[], object], into: list[int], count: int) -> None:
        clock = self._asked.clock
        for _ in range(count):
            began = clock()
            output = step()
            into.append(clock() - began)
            del output


def _read(path: Path) -> list[ort.GraphRun]:
    try:
        return ort.read(path)
    except FarmError as error:
        why = f": {error.why}" if error.why else ""
        raise NotOffered("error", f"{error.what}{why}"[:300]) from error
