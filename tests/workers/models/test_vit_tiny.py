import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from workers.models import vit_tiny


def test_attention_is_counted_on_meta_tensors(flops):
    """2,507,056,128 FLOPs per item at 224 pixels, as through explicit matrix products."""
    assert 2_507_056_128 == flops(vit_tiny.build(), 1, 3, 224, 224)


def test_a_counter_that_misses_fused_attention_sees_less():
    """On CPU tensors the fused operator is unknown to it; 4·n²·d·L with n 197 is lost."""
    model, x = vit_tiny.build(), torch.randn(1, 3, 224, 224)

    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(x)

    assert 2_149_392_384 == counter.get_total_flops()
    assert 2_507_056_128 - 2_149_392_384 == 4 * 197**2 * 192 * 12


@pytest.mark.parametrize(("height", "width"), [(64, 64), (32, 96)])
def test_the_image_size_follows_the_input(height, width):
    """Square or not, whatever the factory was shown is what the model takes."""
    x = torch.randn(2, 3, height, width)

    assert (2, 192) == tuple(vit_tiny.build({"x": x})(x).shape)


def test_a_size_that_patches_do_not_fill_is_refused():
    """Dropping the edge would quietly change the work."""
    with pytest.raises(ValueError, match="30x32: both sides must be a multiple of 16"):
        vit_tiny.build({"x": torch.zeros(1, 3, 30, 32)})
