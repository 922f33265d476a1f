"""Layer passes for tests: what an instrument read, and the table that follows."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from farm.schema import LayerTable
from farm.trace.layers import reduce

# Times of a pass in ns: a list for each layer, a number for each iteration.
PASSES = st.integers(1, 6).flatmap(
    lambda rows: st.integers(1, 12).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(1, 10**9), min_size=n, max_size=n), min_size=rows, max_size=rows
        )
    )
)


@dataclass
class Reading:
    """As a child tells it, valid as it comes."""

    layers: list[str]
    method: Literal["wrapped", "hooks", "profiler", "fake"] = "wrapped"
    clock: Literal["wall", "device"] = "wall"
    warmup: int = 5
    attributed: bool = True
    types: list[str] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.types = self.types or ["Linear"] * len(self.layers)
        self.calls = self.calls or [1.0] * len(self.layers)


def ns(*rows: list[int]) -> npt.NDArray[np.int64]:
    """Return times of layers in microseconds, a list for each, as nanoseconds."""
    return np.array(rows, dtype=np.int64) * 1000


def table(
    layers: list[str],
    times: npt.NDArray[np.int64],
    *,
    clean: npt.NDArray[np.int64] | None = None,
    reading: Reading | None = None,
    **more: Any,
) -> LayerTable:
    """Return the table of these times; the iterations took what the layers did, and no more."""
    whole = times.sum(axis=0)
    return reduce(
        reading or Reading(layers),
        times,
        profiled_ns=whole,
        clean_ns=whole if clean is None else clean,
        precision="fp32",
        device="cpu:0",
        **more,
    )
