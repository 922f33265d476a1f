import torch

from workers.models import lstm


def test_a_sequence_gives_ten_scores():
    """Of any length, from the last step."""
    for steps in (1, 32):
        assert (2, 10) == tuple(lstm.build()(torch.randn(2, steps, 64)).shape)


def test_the_operations_are_those_of_its_steps(flops):
    """Four gates over input and state in both layers at each of 32 steps, and the head."""
    step = 4 * 128 * (64 + 128) + 4 * 128 * (128 + 128)

    assert 2 * 32 * step + 2 * 128 * 10 == flops(lstm.build(), 1, 32, 64)
