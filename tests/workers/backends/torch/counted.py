"""One call, counted in every way that there is."""

import copy
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from workers.backends.torch import counting


def both(module: nn.Module, *inputs: torch.Tensor) -> int:
    """Return the FLOPs on meta tensors and in a real run, under both gradient modes: they agree."""
    shadow = copy.deepcopy(module).to("meta")
    found = []
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            found.append(counting.count(shadow, lambda: shadow(*(x.to("meta") for x in inputs))))
            found.append(counting.count(module, lambda: module(*inputs)))
    assert 1 == len({each.flops for each in found})
    assert [1.0] * 4 == [each.coverage for each in found]
    return found[0].flops


def by_torch(call: Callable[[], object]) -> FlopCounterMode:
    """Return torch's own counter after a call of real tensors."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        call()
    return counter
