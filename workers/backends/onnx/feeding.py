"""What a graph is called with: arrays by the names of its inputs, in the types that it takes."""

from collections.abc import Mapping, Sequence

import numpy as np

from farm import graphs
from farm.errors import FarmError
from farm.graphs import Port
from farm.schema import Inputs, Tensor, Workload
from workers.backends import LoadFailed
from workers.backends.inputs import arrays
from workers.backends.numbers import Array


def feed(ports: Sequence[Port], workload: Workload, *, npz: str) -> dict[str, Array]:
    """Return an array for every input of the graph, in its order.

    Without a specification and without an NPZ, the graph's own shapes count, `batch` for an open
    first axis. Floats are cast to what the graph takes, integers never. Raises LoadFailed naming
    the input that is missing, unknown, or of another shape or type.
    """
    asked = workload.inputs
    name = workload.model.name
    if not asked.spec and not npz:
        try:
            asked = Inputs(spec=graphs.spec(ports, model=name), seed=asked.seed)
        except FarmError as error:
            raise _failed(error) from error
    given = arrays(asked, batch=workload.batch, npz=npz)
    try:
        where = graphs.check(ports, _seen(given, asked), model=name, batch=workload.batch)
    except FarmError as error:
        raise _failed(error) from error
    return {port.name: _cast(given[where[port.name]], port) for port in ports}


def _seen(given: Mapping[str, Array], asked: Inputs) -> dict[str, Tensor]:
    """Return what the arrays are; one that is said to be bfloat16 comes as float32."""
    return {
        name: Tensor(
            shape=each.shape,
            dtype=asked.spec[name].dtype if name in asked.spec else each.dtype.name,
        )
        for name, each in given.items()
    }


def _cast(array: Array, port: Port) -> Array:
    if not port.dtype:
        raise LoadFailed("unsupported", f"input {port.name!r} is no tensor")
    if port.dtype == "bfloat16":
        raise LoadFailed("unsupported", f"input {port.name!r} is bfloat16, which numpy has not")
    return np.ascontiguousarray(array, dtype=port.dtype)


def _failed(error: FarmError) -> LoadFailed:
    message = f"{error.what}: {error.why}" if error.why else error.what
    return LoadFailed("model_error", message, error.hint)
