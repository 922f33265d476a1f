"""Reading numbers wherever a step keeps them: dtypes, non-finite values, subnormals, a digest."""

import hashlib
import inspect
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

# Elements looked at in one go, so that looking does not set the process's peak memory.
_CHUNK = 1 << 20
_BITS = {"float16": (16, 10), "bfloat16": (16, 7), "float32": (32, 23), "float64": (64, 52)}


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
    array = np.asarray(leaf)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def subnormal_share(values: "Iterable[torch.Tensor | npt.NDArray[Any]]") -> float | None:
    """Return the share of floating elements that are subnormal, by their bits; None without any.

    Comparing values would not do: flushed denormals compare equal to zero.
    """
    found = total = 0
    for each in values:
        for chunk, name in _bits(each):
            width, mantissa = _BITS[name]
            exponent = ((1 << (width - 1 - mantissa)) - 1) << mantissa
            tiny = ((chunk & exponent) == 0) & ((chunk & ((1 << mantissa) - 1)) != 0)
            found += int(np.count_nonzero(tiny))
            total += chunk.size
    return found / total if total else None


def digest(values: "Iterable[torch.Tensor | npt.NDArray[Any]]") -> str:
    """Return a hash of the bytes, in order: two digests differ where an element does."""
    found = hashlib.blake2b(digest_size=16)
    for each in values:
        found.update(np.ascontiguousarray(_plain(each)).data.cast("B"))
    return found.hexdigest()


def _bits(
    value: "torch.Tensor | npt.NDArray[Any]",
) -> Iterator[tuple[npt.NDArray[np.uint64], str]]:
    name = str(value.dtype).removeprefix("torch.")
    if name not in _BITS:
        return
    flat = _plain(value).reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        yield part.view(f"uint{_BITS[name][0]}").astype(np.uint64), name


def _plain(value: "torch.Tensor | npt.NDArray[Any]") -> npt.NDArray[Any]:
    """Return a numpy view of the same bytes; a bfloat16 tensor comes as 16-bit integers."""
    if not is_tensor(value):
        return np.asarray(value)
    import torch

    tensor = value.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return np.asarray(tensor.numpy())
