"""What every backend asks of arrays: non-finite and subnormal numbers, and a digest of all."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Elements looked at in one go, so that looking does not set the process's peak memory.
_CHUNK: Final = 1 << 20
# Bits of a floating type, and of its mantissa.
_BITS: Final = {"float16": (16, 10), "bfloat16": (16, 7), "float32": (32, 23), "float64": (64, 52)}


def is_finite(array: Array) -> bool:
    """Return whether no element is infinite or not a number; integers always are."""
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def subnormal_share(arrays: Iterable[tuple[Array, str]]) -> float | None:
    """Return the share of floating elements that are subnormal, by their bits; None without any.

    arrays: each with the name of its type, since numpy knows no bfloat16. Comparing values would
    not do: flushed denormals compare equal to zero.
    """
    found = total = 0
    for array, name in arrays:
        for chunk in _bits(array, name):
            width, mantissa = _BITS[name]
            exponent = ((1 << (width - 1 - mantissa)) - 1) << mantissa
            tiny = ((chunk & exponent) == 0) & ((chunk & ((1 << mantissa) - 1)) != 0)
            found += int(np.count_nonzero(tiny))
            total += chunk.size
    return found / total if total else None


def digest(arrays: Iterable[Array]) -> str:
    """Return a hash of the bytes, in order: two digests differ where an element does."""
    found = hashlib.blake2b(digest_size=16)
    for each in arrays:
        found.update(np.ascontiguousarray(each).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _bits(array: Array, name: str) -> Iterator[NDArray[np.uint64]]:
    if name not in _BITS:
        return
    flat = array.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        yield part.view(f"uint{_BITS[name][0]}").astype(np.uint64)
