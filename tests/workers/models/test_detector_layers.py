import torch

from workers.models import detector_layers as layers
from workers.models.seeded import seeded


def test_maps_are_an_eighth_a_sixteenth_and_a_thirty_second():
    """Of the image, at their own widths; the neck gives them one."""
    backbone = layers.Backbone((4, 8, 8, 16, 24), (1, 1, 1, 1))
    neck = layers.Neck((8, 16, 24), 8)

    maps = backbone(torch.zeros(1, 3, 64, 96))

    sizes = [(8, 12), (4, 6), (2, 3)]
    assert [(1, c, *at) for c, at in zip((8, 16, 24), sizes, strict=True)] == [
        tuple(each.shape) for each in maps
    ]
    assert [(1, 8, *at) for at in sizes] == [tuple(each.shape) for each in neck(maps)]


def test_signals_neither_fade_nor_grow(seed):
    """Twelve convolutions as torch draws them leave 1e-9 of a signal's power.

    A layer changes the logarithm of the power by 0.3 or so, twelve by 1: the bounds are 9 away.
    """
    chain = torch.nn.Sequential(*(layers.Conv(32, 32) for _ in range(12))).eval()
    with seeded(seed):
        layers.draw(chain)
        x = torch.randn(1, 32, 32, 32)

    power = chain(x).square().mean()

    assert 1e-4 < power < 1e4


def test_a_map_that_is_the_same_everywhere_is_answered_the_same_everywhere():
    """Its places cannot be told apart, and nothing is divided by zero."""
    with seeded(0):
        head = layers.Head(16, 3).eval()
        layers.draw(head)

    inner = head(torch.ones(1, 16, 9, 9))[..., 4, 4]

    assert inner.isfinite().all()
    assert (head(torch.zeros(1, 16, 1, 1))[0, 4:] == layers._RARE).all()
