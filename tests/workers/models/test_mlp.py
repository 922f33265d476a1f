import torch

from workers.models import mlp


def test_an_item_takes_17664_flops(flops):
    """64-64-64-10, two operations per multiply-accumulate; a batch takes its multiple."""
    assert 17_664 == flops(mlp.build(), 1, 64)
    assert 8 * 17_664 == flops(mlp.build(), 8, 64)


def test_a_vector_gives_ten_scores():
    """One row per item."""
    assert (3, 10) == tuple(mlp.build()(torch.randn(3, 64)).shape)
