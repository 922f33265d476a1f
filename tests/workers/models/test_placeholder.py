import numpy as np
import pytest

from workers.models.placeholder import demo_depth


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_every_pixel_gets_a_depth_between_0_and_1(dtype):
    """One float32 per pixel, for one image and for a batch."""
    for shape in ((6, 8, 3), (2, 6, 8, 3)):
        rgb = (np.random.default_rng(0).random(shape) * 255).astype(dtype)

        depth = demo_depth(rgb)

        assert shape[:-1] == depth.shape
        assert "float32" == depth.dtype.name
        assert 0 <= depth.min() <= depth.max() <= 1


def test_an_image_without_contrast_is_no_division_by_zero():
    """Then only the slope towards the bottom is left."""
    depth = demo_depth(np.full((4, 4, 3), 7, dtype=np.uint8))

    assert [0.5, 0.0] == [float(depth[0, 0]), float(depth[-1, 0])]
