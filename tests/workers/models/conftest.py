"""Counting the operations of a model without running it."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

Count = Callable[..., int]


@pytest.fixture
def flops() -> Count:
    """Return the FLOPs of one call, counted on meta tensors: nothing is computed."""

    def count(model: nn.Module, *shape: int, dtype: torch.dtype = torch.float32) -> int:
        x = torch.zeros(shape, dtype=dtype, device="meta")
        with FlopCounterMode(display=False) as counter:
            model.to("meta")(x)
        return int(counter.get_total_flops())

    return count
