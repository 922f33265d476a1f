"""Reading numbers wherever a step keeps them: in tensors and arrays, however deep they are."""

import inspect
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from workers.backends import numbers

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[Any]

_NUMPY = (*("float16", "float32", "float64", "bool", "uint8"), *("int8", "int16", "int32", "int64"))


def leaves(output: object) -> "Iterator[torch.Tensor | npt.NDArray[Any]]":
    """Yield every tensor and array inside nested tuples, lists, mappings and records."""
    if is_tensor(output) or isinstance(output, np.ndarray):
        yield output
    elif isinstance(output, Mapping):
        for each in output.values():
            yield from leaves(each)
    elif isinstance(output, list | tuple | set):
        for each in output:
            yield from leaves(each)
    elif hasattr(output, "__dataclass_fields__"):
        yield from leaves(vars(output))


def named(output: object) -> dict[str, Array]:
    """Return every leaf as an array: by the keys of a mapping, else output_0, output_1 …

    A mapping names them where each value holds one leaf and no two keys read alike, as 1 and "1"
    do. Types that numpy does not know, such as bfloat16, come as float32.
    """
    found = list(leaves(output))
    names: list[str] = []
    if isinstance(output, Mapping) and len(output) == len(found):
        names = [str(key) for key, value in output.items() if len(list(leaves(value))) == 1]
    if len(set(names)) != len(found):
        names = [f"output_{index}" for index in range(len(found))]
    return {name: _array(leaf) for name, leaf in zip(names, found, strict=True)}


def _array(leaf: "torch.Tensor | Array") -> Array:
    if not is_tensor(leaf):
        return np.asarray(leaf)
    plain = leaf.detach().cpu()
    if str(plain.dtype).removeprefix("torch.") not in _NUMPY:
        plain = plain.float()
    return np.asarray(plain.numpy())


def unfinished(output: object) -> str | None:
    """Return what it is if work is still to come out of it: a coroutine, a generator, a future."""
    if inspect.isawaitable(output):
        return "a coroutine or future"
    if isinstance(output, AsyncIterator):
        return "an asynchronous iterator"
    if isinstance(output, Iterator):
        return "an iterator"
    if isinstance(output, Future):
        return "a future"
    inside: Iterable[object] = ()
    if isinstance(output, Mapping):
        inside = output.values()
    elif isinstance(output, list | tuple | set):
        inside = output
    return next((found for each in inside if (found := unfinished(each)) is not None), None)


def is_tensor(value: object) -> "TypeGuard[torch.Tensor]":
    """Whether it is a tensor, without importing torch: where there is one, somebody has."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_finite(leaf: "torch.Tensor | npt.NDArray[Any]") -> bool:
    """Whether no element is infinite or not a number; integers always are."""
    if is_tensor(leaf):
        import torch

        return not leaf.is_floating_point() or bool(torch.isfinite(leaf).all())
    return numbers.is_finite(np.asarray(leaf))


def subnormal_share(values: "Iterable[torch.Tensor | npt.NDArray[Any]]") -> float | None:
    """Return the share of floating elements that are subnormal; None without any."""
    return numbers.subnormal_share(
        (_plain(each), str(each.dtype).removeprefix("torch.")) for each in values
    )


def digest(values: "Iterable[torch.Tensor | npt.NDArray[Any]]") -> str:
    """Return a hash of the bytes, in order: two digests differ where an element does."""
    return numbers.digest(_plain(each) for each in values)


def _plain(value: "torch.Tensor | npt.NDArray[Any]") -> npt.NDArray[Any]:
    """Return a numpy view of the same bytes; a bfloat16 tensor comes as 16-bit integers."""
    if not is_tensor(value):
        return np.asarray(value)
    import torch

    tensor = value.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return np.asarray(tensor.numpy())
