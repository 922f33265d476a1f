import pytest
import torch

from workers.models import detector_boxes, detector_loss

SIDE = 64


def loss(raw, targets):
    centres, strides = detector_boxes.places(raw.shape[1], shape=None, like=raw)
    size = torch.full((4,), float(SIDE))
    return detector_loss.loss(raw, targets, centres=centres, strides=strides, size=size)


def answer(box, kind, *, stride):
    """An answer whose places of one map around the box say that box, and no other place any."""
    count = 21 * SIDE**2 // 1024
    centres, strides = detector_boxes.places(count, shape=None, like=torch.zeros(1))
    low, high = torch.tensor(box[:2]), torch.tensor(box[2:])
    reach = torch.cat([centres - low, high - centres], dim=1) / strides
    near = ((centres - (low + high) / 2).abs().amax(1) < 1.5 * stride) & (strides[:, 0] == stride)
    raw = torch.full((1, count, 7), -20.0)
    raw[0, near, :4] = torch.log(torch.expm1(reach[near].clamp(min=0.01)))
    raw[0, near, 4 + kind] = 20.0
    return raw


BOX = torch.tensor([[1, 0.5, 0.5, 0.5, 0.25]])  # 16, 24, 48, 40 in pixels


@pytest.mark.parametrize(
    ("target", "corners", "stride"),
    [
        (BOX, [16.0, 24.0, 48.0, 40.0], 8),
        (torch.tensor([[1, 0.5, 0.5, 1.0, 1.0]]), [0.0, 0.0, 64.0, 64.0], 8),
    ],
)
def test_an_answer_that_is_right_costs_next_to_nothing(target, corners, stride):
    """Its places are those around the middle, in the map that its size belongs to."""
    right, shifted = answer(corners, 1, stride=stride), answer(corners, 2, stride=stride)

    assert loss(right, [target]) < 0.01
    assert loss(shifted, [target]) > 10


def test_a_box_in_the_wrong_place_costs_more_the_farther_it_is():
    """Also where the two do not meet any more."""
    raws = [answer([16.0, 24.0, 48.0, 40.0], 1, stride=8) for _ in range(3)]
    for raw, more in zip(raws, (0.0, 1.0, 3.0), strict=True):
        raw[0, :, 0] += more

    right, near, far = (loss(raw, [BOX]).item() for raw in raws)

    assert right < near < far


def test_the_smaller_of_two_boxes_has_the_place():
    """A thing in front of a large one is learnt as what it is."""
    large = torch.tensor([[0, 0.5, 0.5, 0.9, 0.9]])
    raw = answer([16.0, 24.0, 48.0, 40.0], 1, stride=8)

    assert loss(raw, [torch.cat([large, BOX])]) < 0.01
    assert loss(raw, [torch.cat([BOX, large])]) < 0.01


def test_images_with_fewer_boxes_are_not_given_any():
    """A batch costs the mean over its places, whoever shares it."""
    right = answer([16.0, 24.0, 48.0, 40.0], 1, stride=8)
    nothing = torch.full_like(right, -20.0)

    both = loss(torch.cat([right, nothing]), [BOX, torch.zeros(0, 5)])

    assert both < 0.01


def test_no_box_at_all_costs_what_is_found_by_mistake():
    """It is finite, and nothing found costs nothing."""
    nothing = torch.full((2, 84, 7), -20.0)

    assert loss(nothing, [torch.zeros(0, 5)] * 2) < 0.01
    assert loss(nothing + 20, [torch.zeros(0, 5)] * 2).isfinite()


def test_a_class_that_is_not_known_is_learnt_as_none():
    """Rather than reaching past the end of a table."""
    other = BOX.clone()
    other[0, 0] = 500
    nothing = answer([16.0, 24.0, 48.0, 40.0], 1, stride=8)
    nothing[..., 4:] = -20.0

    assert loss(nothing, [other]) < 0.01
