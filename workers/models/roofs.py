"""Work that shows what a machine can do at best: matrix products, and streams through memory.

Each factory returns one step whose kinds take turns, from the very first call on, so that one
process measures all of them and its samples are told apart by their place. Results go to arrays
that exist already, because a fresh page costs more than its use.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle

import numpy as np
import torch
from torch import Tensor

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_SCALE = 3.0


def products(
    inputs: Mapping[str, Tensor], precision: str, batch: int, device: str = "cpu"
) -> Callable[..., Tensor]:
    """Return a step that multiplies a pair of square matrices, each pair in its turn.

    inputs: float[n, n] two by two, in the order of the turns; 2·n³ FLOPs. batch: iterations of a
    turn. Changing the size each time would cool the caches: 5 to 10 % slower on one machine. The
    result is overwritten by the next of that size.
    """
    placed = [each.to(device, _TYPES[precision]) for each in inputs.values()]
    pairs = zip(placed[::2], placed[1::2], strict=True)
    places = [(a, b, torch.empty_like(a)) for a, b in pairs]
    turns = cycle([place for place in places for _ in range(batch)])

    def step(**_inputs: Tensor) -> Tensor:
        a, b, into = next(turns)
        return torch.mm(a, b, out=into)

    return step


def streams(batch: int, device: str = "cpu") -> Callable[[], Tensor]:
    """Return a step that is a triad, a sum and a dot product of float32[batch] arrays in turn.

    They move 12, 4 and 8 bytes for each element: a = b + s·c reads two and writes one, a sum reads
    one, a dot product two. What it returns is one number, so that nobody reads the arrays again.
    """
    a, b, c = (_filled(batch, value, device) for value in (0.0, 1.25, 0.5))
    first = a[:1]

    def triad() -> Tensor:
        torch.add(b, c, alpha=_SCALE, out=a)
        return first

    turns: cycle[Callable[[], Tensor]] = cycle([triad, b.sum, partial(torch.dot, b, c)])

    def step() -> Tensor:
        return next(turns)()

    return step


def _filled(count: int, value: float, device: str) -> Tensor:
    if device != "cpu":
        return torch.full((count,), value, device=device)
    # numpy asks the kernel for huge pages, torch does not: a tenth more bandwidth on one machine.
    return torch.from_numpy(np.empty(count, dtype=np.float32)).fill_(value)
