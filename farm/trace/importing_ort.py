"""A profile that ONNX Runtime wrote somewhere else, as a table of layers.

Nothing is known of the machine, and no clean run lies beside it: so shares are what it tells.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from farm.errors import Bad
from farm.graphs import profile
from farm.schema import LayerTable
from farm.trace.layers import reduce

_DEVICES: Final = {"CPUExecutionProvider": "cpu", "CUDAExecutionProvider": "cuda"}
_FROM_THIRD: Final = 3


class _Pass(NamedTuple):
    """What is told of a layer pass besides its times, see `farm.trace.layers.Reading`."""

    layers: Sequence[str]
    types: Sequence[str]
    calls: Sequence[float]
    warmup: int
    attributed: bool = True
    method: Literal["profiler"] = "profiler"  # which says how far a time is believed
    clock: Literal["wall"] = "wall"


def table(data: bytes, *, name: str) -> LayerTable:
    """Return the nodes of a profile as rows, in the order of their first execution.

    data: the file as it was read; name: its own, for messages. Of three runs or more the first is
    dropped: it prepares memory. Rows below 10 µs are not reliable, since the profiler counts whole
    microseconds. Raises Bad if it is no such profile,
    holds no whole run, or tells of times that no run takes. Source: `traces.md` §11.
    """
    runs = profile.of_bytes(data, name=name)
    warmup = 1 if len(runs) >= _FROM_THIRD else 0
    found = profile.layers(runs[warmup:])
    if not found.names:
        raise Bad(f"{name} holds no node", why="its runs were not profiled")
    providers = {node.provider for run in runs for node in run.nodes}
    reduced = reduce(
        _Pass(found.names, found.types, found.calls, warmup),
        found.layer_ns,
        profiled_ns=found.run_ns,
        clean_ns=np.array([], dtype=np.int64),
        precision="unspecified",
        device="+".join(sorted(_DEVICES.get(each, each) for each in providers)),
    )
    return msgspec.structs.replace(reduced, method="imported")
