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

# The types that torch hands to numpy as they are; every other one of torch 2.13 is a TypeError.
_NUMPY = frozenset(
    (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
)


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
    do. Types that numpy knows stay what they are; others come in the next wider one that holds
    each of their numbers: bfloat16 and float8 as float32, halves of complex numbers as complex64.
    """
    found = list(leaves(output))
    names: list[str] = []
    if isinstance(output, Mapping) and len(output) == len(found):
        names = [str(key) for key, value in output.items() if len(list(leaves(value))) == 1]
    if len(set(names)) != len(found):
        names = [f"output_{index}" for index in range(len(found))]
    return {name: _array(leaf) for name, leaf in zip(names, found, strict=True)}


def _array(leaf: "torch.Tensor | Array") -> Array:
    if is_tensor(leaf):
        return np.asarray(_known(leaf.detach().cpu()).resolve_conj().resolve_neg().numpy())
    array = np.asarray(leaf)
    # Types that a package adds to numpy, such as bfloat16, are neither plain bytes nor records.
    added = array.dtype.kind == "V" and array.dtype.type is not np.void
    return array.astype(np.float32) if added else array


def _known(tensor: "torch.Tensor") -> "torch.Tensor":
    """Return the same numbers in a type that numpy has, where they lie."""
    if tensor.is_quantized:
        return tensor.dequantize()
    if str(tensor.dtype).removeprefix("torch.") in _NUMPY:
        return tensor
    import torch

    return tensor.to(torch.complex64 if tensor.is_complex() else torch.float32)


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

        if not (leaf.is_floating_point() or leaf.is_complex()):
            return True
        # torch has no such check for most types of a byte; wider ones need no copy of the output.
        return bool(torch.isfinite(_known(leaf) if leaf.itemsize == 1 else leaf).all())
    return numbers.is_finite(_array(leaf))


def subnormal_share(values: "Iterable[torch.Tensor | npt.NDArray[Any]]") -> float | None:
    """Return the share of floating elements that are subnormal; None without any."""
    return numbers.subnormal_share(
        (_plain(each), str(each.dtype).removeprefix("torch.")) for each in values
    )


def digest(values: "Iterable[torch.Tensor | npt.NDArray[Any]]") -> str:
    """Return a hash of the bytes, in order: two digests differ where an element does."""
    return numbers.digest(_plain(each) for each in values)


def _plain(value: "torch.Tensor | npt.NDArray[Any]") -> npt.NDArray[Any]:
    """Return the same bytes on the host; types that numpy lacks come as integers of their size."""
    if not is_tensor(value):
        return np.asarray(value)
    import torch

    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    tensor = tensor.contiguous()
    if str(tensor.dtype).removeprefix("torch.") not in _NUMPY:
        sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
        tensor = tensor.view(sizes[tensor.itemsize])
    return np.asarray(tensor.numpy())
