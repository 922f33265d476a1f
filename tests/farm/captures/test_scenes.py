import numpy as np
import pytest

from farm.captures import scenes


def test_equal_arguments_give_equal_scenes():
    """Index and seed each count; whoever draws it, and in whatever order."""
    one, two = (scenes.scene(5, height=64, width=48, seed=3) for _ in range(2))
    others = [
        scenes.scene(6, height=64, width=48, seed=3),
        scenes.scene(5, height=64, width=48, seed=4),
    ]

    assert one.image.tobytes() == two.image.tobytes()
    assert one.boxes.tobytes() == two.boxes.tobytes()
    assert not any(np.array_equal(one.image, each.image) for each in others)


@pytest.mark.parametrize("size", [(1, 1), (3, 200), (64, 64)])
def test_a_scene_is_an_image_with_boxes_in_it(size, seed):
    """One to eight, each inside the image, of a class that has a shape."""
    for index in range(20):
        image, boxes = scenes.scene(index, height=size[0], width=size[1], seed=seed)

        assert ((*size, 3), "uint8") == (image.shape, image.dtype.name)
        assert 1 <= len(boxes) <= 8
        kinds, centre, extent = boxes[:, 0], boxes[:, 1:3], boxes[:, 3:]
        assert set(kinds.tolist()) <= set(range(len(scenes.KINDS)))
        assert (extent > 0).all()
        assert (centre - extent / 2 >= -1e-6).all()
        assert (centre + extent / 2 <= 1 + 1e-6).all()


def test_a_shape_stands_where_its_box_says():
    """The middle of the last one drawn has one colour; a ring has it at its rim."""
    for index in range(30):
        image, boxes = scenes.scene(index, height=100, width=100)
        kind, x, y, width, height = boxes[-1]
        if scenes.KINDS[int(kind)] == "ring":
            continue
        middle = image[int(y * 100), int(x * 100)]
        near = image[int((y + height / 8) * 100), int((x + width / 8) * 100)]
        assert middle.tolist() == near.tolist()
