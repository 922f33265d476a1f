"""Clean iterations and instrumented ones in turn: drift meets both alike (`measurement.md` §12)."""

import math
from collections.abc import Callable
from typing import Final

_BLOCKS: Final = 10


def in_turns(
    clean: Callable[[int], object],
    instrumented: Callable[[int], object],
    *,
    iterations: int,
    typical_ns: float,
    budget_ns: int | None,
    clock: Callable[[], int],
    progress: Callable[[int], None],
) -> int:
    """Run as many iterations of each kind, clean ones first, and return the number of blocks.

    clean, instrumented: run so many iterations in a row. There are ten blocks; with a budget they
    are small enough for a step that typically takes so long, 0 where nobody knows, down to one
    iteration, and none begins once the budget is spent. progress: hears the instrumented ones.
    """
    began, done, blocks = clock(), 0, 0
    for size in _sizes(iterations, typical_ns=typical_ns, budget_ns=budget_ns):
        clean(size)
        instrumented(size)
        done, blocks = done + size, blocks + 1
        progress(done)
        if budget_ns is not None and clock() - began >= budget_ns:
            break
    return blocks


def _sizes(iterations: int, *, typical_ns: float, budget_ns: int | None) -> list[int]:
    """Return the sizes of the blocks: ten, or more where ten would not fit into the budget."""
    blocks = min(_BLOCKS, iterations)
    if budget_ns is not None and typical_ns:
        fitting = max(1, int(budget_ns / (2 * _BLOCKS * typical_ns)))
        blocks = max(blocks, math.ceil(iterations / fitting))
    least, more = divmod(iterations, blocks)
    return [least + (at < more) for at in range(blocks)]
