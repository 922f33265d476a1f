import torch

from workers.models import cnn


def test_an_image_gives_ten_scores_whatever_its_size():
    """The pool takes any image that three halvings leave something of."""
    for size in (8, 32, 50):
        assert (2, 10) == tuple(cnn.build()(torch.randn(2, 3, size, size)).shape)


def test_the_operations_are_those_of_its_layers(flops):
    """Three 3x3 convolutions at 32, 16 and 8 pixels, and the head."""
    convolutions = (3 * 32 * 32**2, 32 * 64 * 16**2, 64 * 128 * 8**2)

    assert 2 * 9 * sum(convolutions) + 2 * 128 * 10 == flops(cnn.build(), 1, 3, 32, 32)
