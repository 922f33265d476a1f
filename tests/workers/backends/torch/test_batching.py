"""What a function may yield, and how a model is called on it."""

from collections import namedtuple
from functools import partial

import pytest
import torch

from workers.backends.torch import batching

Pair = namedtuple("Pair", "x target")
X, Y = torch.ones(2), torch.zeros(2)


@pytest.mark.parametrize(
    ("batch", "args", "named", "target"),
    [
        (X, (X,), {}, None),
        ((X, Y), (X,), {}, Y),
        ([X, Y], (X,), {}, Y),
        (Pair(X, Y), (X,), {}, Y),
        ((X,), (X,), {}, None),
        ((X, Y, X), (X, Y, X), {}, None),
        ({"x": X}, (), {"x": X}, None),
        ({"x": X, "mask": Y, "target": X}, (), {"x": X, "mask": Y}, X),
        ((X.numpy(), Y.numpy()), (X,), {}, Y),
        ({"x": X.numpy()}, (), {"x": X}, None),
        ((torch.full((2,), 255, dtype=torch.uint8), Y), (X,), {}, Y),
        ({"x": torch.full((2,), 255, dtype=torch.uint8)}, (), {"x": X}, None),
    ],
)
def test_what_a_function_may_yield(batch, args, named, target):
    """Tensors or arrays: one, a pair with its target, several in order, or by their names."""
    found = batching.placed(batch, device="cpu")

    same = partial(torch.testing.assert_close, rtol=0, atol=0)
    same(args, found.args)
    same(named, dict(found.named))
    assert (target is None) == (found.target is None)
    if target is not None:
        same(target, found.target)
