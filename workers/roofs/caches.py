"""How large a stream must be to be one of memory, and how large to be one of a cache."""

from typing import Final

MIB: Final = 1 << 20
MEMORY_SET: Final = 256 * MIB  # at least; four times that where the caches are not shown

_CACHE_SETS: Final = tuple(each * MIB for each in (1, 4, 32))  # for each leased core
_CACHES: Final = 4  # so many times the last-level caches: what makes a stream one of memory
_FREE_SHARE: Final = 4  # a stream takes one part in so many of the free memory at most


def working_sets(
    cache_bytes: int | None, *, cores: int, free_bytes: int | None
) -> tuple[list[int], int]:
    """Return the bytes of the sets that caches may hold, ascending, and of the one for memory.

    The latter is four times the last-level caches, unless free memory allows less.
    """
    wanted = 4 * MEMORY_SET if cache_bytes is None else max(MEMORY_SET, _CACHES * cache_bytes)
    memory = wanted if free_bytes is None else min(wanted, free_bytes // _FREE_SHARE)
    return [cores * each for each in _CACHE_SETS if 2 * cores * each <= memory], memory
