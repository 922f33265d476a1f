"""What an iteration finds in the cache: flushed before it, or inputs that take turns."""

import math
from array import array
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Final, TypeVar

T = TypeVar("T")

_LARGEST_POOL: Final = 1 << 30


def timed_after(
    prepare: Callable[[], object],
    step: Callable[[], object],
    sync: Callable[[], None] | None,
    *,
    clock: Callable[[], int],
    into: "array[int]",
    begin: int,
    end: int,
) -> None:
    """Time steps as `phases.loop` does, each after a preparation that no clock sees.

    With `l2: flushed` the preparation writes a buffer as large as the cache. It is waited for: the
    write would otherwise still be running when the clock starts.
    """
    for i in range(begin, end):
        prepare()
        if sync is not None:
            sync()
        t0 = clock()
        y = step()
        if sync is not None:
            sync()
        into[i] = clock() - t0
        y = None
    del y


def host_flush(cache_bytes: int) -> Callable[[], object]:
    """Return what pushes a CPU's cache out by writing a buffer of its size, made once, here."""
    import numpy as np

    buffer = np.zeros(max(1, cache_bytes // 8), dtype=np.int64)
    return lambda: np.add(buffer, 1, out=buffer)


def pool_size(each_bytes: int, *, cache_bytes: int) -> int:
    """Return how many inputs of a size a rotating pool holds: twice the cache, at most 1 GiB.

    cache_bytes: of the last level, on a GPU L2. At least two inputs rotate, unless two are above
    1 GiB: then it is one, and nothing rotates.
    """
    wanted = max(2, math.ceil(2 * cache_bytes / max(1, each_bytes)))
    return max(1, min(wanted, _LARGEST_POOL // max(1, each_bytes)))


def rotation(make: Callable[[int], T], *, each_bytes: int, cache_bytes: int) -> list[T]:
    """Return the inputs of a rotating pool; `make` gets the index, to draw other numbers by."""
    return [make(index) for index in range(pool_size(each_bytes, cache_bytes=cache_bytes))]


def rotating(runs: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """Return a step whose calls go through the bound calls in turn, without an end."""
    following = cycle(runs).__next__
    return lambda: following()()
