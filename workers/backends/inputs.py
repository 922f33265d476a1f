"""What a step is called with: arrays drawn from a specification, or cut from an NPZ."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from farm import npz as archives
from farm.errors import FarmError
from farm.schema import Inputs, Tensor
from workers.backends import LoadFailed

Array = npt.NDArray[Any]

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
_BATCH = "batch"


def arrays(inputs: Inputs, *, batch: int, npz: str) -> dict[str, Array]:
    """Return every input by name, in the order of the specification.

    Generated floats are standard normal, integers uniform in [low, high), booleans fair; an input
    does not depend on the others, so adding one changes none. `bfloat16`, which numpy does not
    know, comes as float32. An NPZ without a specification is taken as it is.
    Raises LoadFailed naming the input that does not fit.
    """
    if npz:
        return _read(inputs.spec, Path(npz), batch=batch)
    return {
        name: _draw(name, tensor, seed=inputs.seed, batch=batch)
        for name, tensor in inputs.spec.items()
    }


def _draw(name: str, tensor: Tensor, *, seed: int, batch: int) -> Array:
    shape = tuple(_length(name, axis, batch=batch) for axis in tensor.shape)
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if tensor.dtype in _FLOATS:
        kind = "float32" if tensor.dtype == "bfloat16" else tensor.dtype
        return np.asarray(random.standard_normal(shape, dtype=np.float32)).astype(kind)
    if tensor.dtype == "bool":
        return np.asarray(random.integers(0, 2, shape)).astype(bool)
    if tensor.dtype not in _INTEGERS:
        known = ", ".join((*_FLOATS, *_INTEGERS, "bool"))
        raise LoadFailed(
            "model_error", f"input {name!r}: unknown dtype {tensor.dtype!r}", f"known: {known}"
        )
    high = 256 if tensor.dtype == "uint8" else None
    if isinstance(tensor.high, int):
        high = tensor.high
    if high is None:
        raise LoadFailed(
            "model_error",
            f"input {name!r} of {tensor.dtype} has no upper bound",
            "say `high`, such as the size of the vocabulary",
        )
    if high <= tensor.low:
        raise LoadFailed("model_error", f"input {name!r}: nothing lies in [{tensor.low}, {high})")
    return np.asarray(random.integers(tensor.low, high, shape)).astype(tensor.dtype)


def _read(spec: Mapping[str, Tensor], path: Path, *, batch: int) -> dict[str, Array]:
    try:
        with path.open("rb") as opened:
            found = archives.read(opened, called=repr(path.name))
    except (OSError, FarmError) as error:
        raise LoadFailed("model_error", f"the inputs cannot be read: {error}") from error
    if not found:
        raise LoadFailed("model_error", "the inputs are an empty NPZ")
    if not spec:
        return found
    if unknown := sorted(set(found) - set(spec)):
        raise LoadFailed("model_error", f"the NPZ holds {unknown[0]!r}, which no input is called")
    if missing := sorted(set(spec) - set(found)):
        raise LoadFailed("model_error", f"the NPZ lacks the input {missing[0]!r}")
    return {
        name: _fit(name, found[name], tensor=tensor, batch=batch) for name, tensor in spec.items()
    }


def _fit(name: str, array: Array, *, tensor: Tensor, batch: int) -> Array:
    """Return the array with its batch axis repeated or cut to the batch."""
    if array.dtype.name != tensor.dtype:
        raise LoadFailed(
            "model_error", f"input {name!r} is {array.dtype.name} in the NPZ, not {tensor.dtype}"
        )
    if array.ndim != len(tensor.shape) or 0 in array.shape:
        raise LoadFailed("model_error", f"input {name!r} has shape {array.shape} in the NPZ")
    for index, axis in enumerate(tensor.shape):
        length = _length(name, axis, batch=batch)
        if axis == _BATCH:
            array = np.take(array, np.arange(length) % array.shape[index], axis=index)
        elif array.shape[index] != length:
            raise LoadFailed(
                "model_error",
                f"input {name!r} has length {array.shape[index]} in axis {index}, not {length}",
            )
    return np.ascontiguousarray(array)


def _length(name: str, axis: int | str, *, batch: int) -> int:
    if isinstance(axis, int):
        return axis
    if axis == _BATCH:
        return batch
    raise LoadFailed(
        "model_error", f"input {name!r}: nothing says how long {axis!r} is", "write a number"
    )
