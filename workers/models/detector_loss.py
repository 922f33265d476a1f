"""How far the detector's answer is from the boxes that an image holds.

A box belongs to the map of its size and there to the places around its centre; where two boxes
claim a place, the smaller has it. All images go through at once and nothing is read back, so a
step never waits for a GPU.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from workers.models.detector_boxes import area, decode, overlap
from workers.models.detector_layers import BOX, STRIDES

_AROUND = 1.5  # strides from the centre of a box to its places
_LARGEST = 8.0  # strides that the longer side of a box may take in its map
_WEIGHT_OF_BOXES = 2.0


def loss(
    raw: Tensor, targets: Sequence[Tensor], *, centres: Tensor, strides: Tensor, size: Tensor
) -> Tensor:
    """Return one number: the cross-entropy of the classes, and what the boxes lack in overlap.

    Both are sums over an image batch, divided by the places that have a box. raw: float32[batch,
    places, 4 + classes]; targets: float[k, 5] per image; size: float[4], width and height twice.
    """
    kinds, given = _padded(targets, raw)
    half = given[..., 2:] / 2
    boxes = torch.cat([given[..., :2] - half, given[..., :2] + half], dim=-1) * size
    owner, owned = _owners(boxes, kinds >= 0, centres=centres, strides=strides)
    known = torch.arange(raw.shape[-1] - BOX, device=raw.device)
    wanted = (kinds.gather(1, owner)[..., None] == known) & owned[..., None]
    wrong = F.binary_cross_entropy_with_logits(raw[..., BOX:], wanted.float(), reduction="sum")
    goal = boxes.gather(1, owner[..., None].expand(-1, -1, BOX))
    missed = 1 - _closeness(decode(raw[..., :BOX], centres, strides), goal)
    off = (missed * owned).sum()
    return (wrong + _WEIGHT_OF_BOXES * off) / owned.sum().clamp(min=1)


def _padded(targets: Sequence[Tensor], like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the classes [batch, k] and boxes [batch, k, 4], both −1 where an image has fewer.

    k is one more than the most, so that there is a table to look into where no image has a box.
    """
    rows = pad_sequence(list(targets), batch_first=True, padding_value=-1.0)
    table = F.pad(rows, (0, 0, 0, 1), value=-1.0).to(like.device, like.dtype, non_blocking=True)
    return table[..., 0], table[..., 1:]


def _owners(
    boxes: Tensor, real: Tensor, *, centres: Tensor, strides: Tensor
) -> tuple[Tensor, Tensor]:
    """Return int64[batch, places] which box a place belongs to, and bool whether to any."""
    longest = (boxes[..., 2:] - boxes[..., :2]).amax(dim=-1)
    stride = torch.full_like(longest, STRIDES[0])
    for fine, coarse in pairwise(STRIDES):
        stride = torch.where(longest > fine * _LARGEST, coarse, stride)
    middle = (boxes[..., :2] + boxes[..., 2:]) / 2
    distance = (centres - middle[..., None, :]).abs().amax(dim=-1)
    near = (distance < _AROUND * stride[..., None]) & (strides[:, 0] == stride[..., None])
    cost = torch.where(near & real[..., None], area(boxes)[..., None], torch.inf)
    least, owner = cost.min(dim=1)
    return owner, least < torch.inf


def _closeness(one: Tensor, other: Tensor) -> Tensor:
    """Return the generalised overlap (Rezatofighi et al. 2019), from −1 far apart to 1 equal.

    What two boxes leave of the smallest box around both is taken off their overlap, so that boxes
    that do not meet still know where to go.
    """
    low = torch.minimum(one[..., :2], other[..., :2])
    high = torch.maximum(one[..., 2:], other[..., 2:])
    around = (high - low).prod(dim=-1).clamp(min=1e-9)
    shared = overlap(one, other)
    union = (area(one) + area(other)) / (1 + shared)
    return shared - (around - union) / around
