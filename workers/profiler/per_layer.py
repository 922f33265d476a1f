"""Which layers of a module take the time: the layer pass of the farm, as a library call."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farm.errors import NoResult, Refused
from farm.schema import LayerRow, LayerTable
from farm.stats.warmup import layer_warmup
from farm.trace import blocks
from farm.trace.layers import by_share, reduce
from workers.backends import LayerAsk, NotOffered
from workers.backends.torch import borrowed, cuda, layers, precision


@dataclass(frozen=True)
class LayerProfileView:
    """The layers of a module and what they took; only shares mean something, see `table`.

    layer_ns: int64[layers, iterations], every module that was called, in the order of the first
    call; names: theirs. A container that does hardly anything itself is in no row of the table.
    """

    table: LayerTable
    names: tuple[str, ...]
    layer_ns: NDArray[np.int64]

    @property
    def rows(self) -> list[LayerRow]:
        """One row a layer, in the order of execution."""
        return self.table.rows

    @property
    def hotspots(self) -> list[LayerRow]:
        """The same rows, the largest share first."""
        return by_share(self.table)

    @property
    def csv(self) -> str:
        """The block that `farm profile layers` appends to its file."""
        return blocks.text(blocks.rows_of(self.table), iterations=self.table.iterations)


def profile_per_layer(
    model: object,
    inputs: object,
    *,
    iterations: int = 100,
    warmup: int | None = None,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> LayerProfileView:
    """Return what each layer of a torch module takes, the module left as it was.

    inputs: a tensor, several in order, a mapping of them by name, or the shape of one. It runs in
    evaluation mode and without gradients: the untimed iterations (max(5, ⌈iterations/20⌉) unless
    given), then as many profiled ones as asked for, in turns with clean ones. clock: in ns. Raises
    Refused for numbers and inputs that make no sense, NoResult where layers cannot be told apart.
    Not for production: it slows every layer down. Source: S0.38.
    """
    if iterations < 1:
        raise Refused(f"{iterations} iterations", why="at least one is profiled")
    if warmup is not None and warmup < 0:
        raise Refused(f"a warm-up of {warmup}", why="it is at least 0")
    asked = LayerAsk(
        iterations=iterations,
        warmup=layer_warmup(iterations) if warmup is None else warmup,
        budget_ns=None,
        clock=clock,
        progress=lambda _phase, _done: None,
    )
    with borrowed.borrowed(model, inputs) as guest:
        on_gpu = layers.is_on_gpu(guest.module)
        device = cuda.opened() if on_gpu else None
        try:
            found = layers.measure(guest.module, guest.call, asked, device=device)
        except NotOffered as error:
            raise NoResult("no layer could be timed", why=str(error)) from error
        declared = precision.words(precision.parameter_types(guest.module))
    table = reduce(
        found.reading,
        found.layer_ns,
        profiled_ns=found.profiled_ns,
        clean_ns=found.clean_ns,
        precision=declared or "unspecified",
        device="cuda" if on_gpu else "cpu",
    )
    return LayerProfileView(table, tuple(found.reading.layers), found.layer_ns)
