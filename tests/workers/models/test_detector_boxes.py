from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.models import detector_boxes as boxes

CORNERS = st.tuples(*(st.integers(0, 12) for _ in range(4)))
FOUND = st.lists(st.tuples(CORNERS, st.integers(0, 2)), max_size=40)


def naive(found, iou, most):
    """Greedy suppression as it is told, in whole numbers."""
    kept = []
    for index, (box, kind) in enumerate(found):
        if len(kept) == most:
            break
        against = (found[each] for each in kept if found[each][1] == kind)
        if all(share(box, other) <= iou for other, _ in against):
            kept.append(index)
    return kept


def share(one, other):
    """What two boxes have in common, of what both cover."""

    def area(box):
        return max(0, box[2] - box[0]) * max(0, box[3] - box[1])

    low, high = map(max, one[:2], other[:2]), map(min, one[2:], other[2:])
    common = area((*low, *high))
    both = area(one) + area(other) - common
    return Fraction(common, both) if both else Fraction(0)


def suppressed(found, iou, most):
    corners = torch.tensor([box for box, _ in found], dtype=torch.float32).reshape(-1, 4)
    kinds = torch.tensor([kind for _, kind in found], dtype=torch.long)
    return boxes.suppress(corners, kinds, iou=iou, most=most).tolist()


@given(FOUND, st.sampled_from([0, 20, 45, 70, 100]), st.integers(1, 50))
def test_suppression_is_the_greedy_one(found, percent, most):
    """Box by box, best first, each against those that stayed."""
    assert naive(found, Fraction(percent, 100), most) == suppressed(found, percent / 100, most)


def test_many_boxes_are_suppressed_block_by_block(seed):
    """Past the size of a block the answer is still that of one box after another."""
    random = torch.Generator().manual_seed(seed)
    at = torch.randint(0, 60, (700, 2), generator=random)
    size = torch.randint(1, 20, (700, 2), generator=random)
    kinds = torch.randint(0, 2, (700,), generator=random)
    found = [
        ((*low, *high), kind)
        for low, high, kind in zip(at.tolist(), (at + size).tolist(), kinds.tolist(), strict=True)
    ]

    for most in (1, 300, 700):
        assert naive(found, Fraction(45, 100), most) == suppressed(found, 0.45, most)


def test_a_chain_frees_every_other_box():
    """The second falls to the first, so the third stays, and so on."""
    chain = [((3 * n, 0, 3 * n + 8, 10), 0) for n in range(20)]

    assert list(range(0, 20, 2)) == suppressed(chain, 0.4, 100)


def test_boxes_of_another_class_stay():
    same = (0, 0, 10, 10)

    assert [0, 1] == suppressed([(same, 0), (same, 1), (same, 0)], 0.5, 10)


def test_what_is_not_a_number_is_no_detection():
    """A model that went wrong finds nothing, and nothing breaks."""
    raw = torch.full((1, 21, 6), torch.nan)

    (found,) = boxes.detections(raw, conf=0.0, iou=0.5, max_det=10)

    assert (0, 6) == tuple(found.shape)


def test_a_place_reaches_as_far_as_it_says():
    """The only place of the coarsest map lies in the middle; softplus(0) is 0.693 strides."""
    raw = torch.full((1, 21, 5), -20.0)
    raw[0, -1] = torch.tensor([0.0, 0.0, 0.0, 0.0, 3.0])

    (found,) = boxes.detections(raw, conf=0.5, iou=0.5, max_det=10)

    reach = 32 * 0.693147
    expected = [[16 - reach, 16 - reach, 16 + reach, 16 + reach, 0.952574, 0]]
    assert torch.allclose(torch.tensor(expected), found)


def test_places_are_those_of_the_maps_row_by_row():
    """The finest first, each in the middle of its cell."""
    centres, strides = boxes.places(42, shape=(32, 64), like=torch.zeros(1))

    assert [[4, 4], [12, 4]] == centres[:2].tolist()
    assert [[16, 16], [48, 16]] == centres[-2:].tolist()
    assert [32, 8, 2] == [(strides == each).sum() for each in (8, 16, 32)]


# ── the square ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("shape", "inside"), [((2, 4), (2, 6, 0, 8)), ((4, 2), (0, 8, 2, 6))])
def test_an_image_keeps_its_proportion(shape, inside):
    """Between two grey bars, above and below or at the sides."""
    image = torch.full((*shape, 3), 255, dtype=torch.uint8)

    square = boxes.letterbox([image], 8, like=torch.zeros(1))[0]

    top, bottom, left, right = inside
    expected = torch.full((3, 8, 8), 114 / 255)
    expected[:, top:bottom, left:right] = 1
    assert torch.allclose(expected, square)


def test_an_image_of_that_size_stays_as_it_is(seed):
    """Its values go from 0 to 1, colour by colour."""
    random = torch.Generator().manual_seed(seed)
    image = torch.randint(0, 256, (8, 8, 3), dtype=torch.uint8, generator=random)

    square = boxes.letterbox([image, image], 8, like=torch.zeros(1))

    assert torch.equal((image.permute(2, 0, 1).float() / 255).expand(2, 3, 8, 8), square)


def test_a_line_of_pixels_does_not_vanish():
    """However narrow, it is one pixel wide."""
    image = torch.zeros((1, 1000, 3), dtype=torch.uint8)

    square = boxes.squared(image, size=32)

    assert 32 == (square == 0).all(dim=0).sum()
