import sys

import pytest
import torch

from workers.models import depth

IMAGE = (96, 128)


@pytest.mark.parametrize("size", [IMAGE, (30, 50), (16, 16)])
def test_every_pixel_of_an_image_gets_a_depth_between_0_and_1(size):
    """Whatever its size, and as a camera gives it."""
    rgb = torch.randint(0, 256, (2, *size, 3), dtype=torch.uint8)

    found = depth.small()(rgb)

    assert ((2, *size), torch.float32) == (tuple(found.shape), found.dtype)
    assert 0 <= found.min() <= found.max() <= 1


def test_the_operations_are_those_of_its_layers(flops):
    """Down over four halvings, up again, and the head at full size; twice as wide, four times."""

    def expected(width):
        widths = [3, width, 2 * width, 4 * width, 8 * width]
        at = [IMAGE[0] * IMAGE[1] / 4**each for each in range(5)]
        down = sum(widths[n] * widths[n + 1] * at[n + 1] for n in range(4))
        up = sum(widths[n + 1] * max(widths[n], width) * at[n + 1] for n in range(4))
        return 2 * 9 * (down + up + width * at[0])

    for width, model in ((8, depth.small()), (16, depth.base())):
        assert expected(width) == flops(model, 1, *IMAGE, 3, dtype=torch.uint8)


def test_equal_seeds_give_equal_weights():
    one, two, three = depth.small(), depth.small(), depth.small(seed=1)

    assert torch.equal(one.head.weight, two.head.weight)
    assert not torch.equal(one.head.weight, three.head.weight)


def test_a_package_that_is_not_here_is_named(monkeypatch):
    """The job says what is missing."""
    monkeypatch.setitem(sys.modules, "transformers", None)

    with pytest.raises(ModuleNotFoundError, match="transformers"):
        depth.anything_small()
