"""Boxes of the detector: from an image to the square that it takes, and from its answer to boxes.

A box is x1, y1, x2, y2 in pixels of that square. Everything here is torch, on whatever device the
tensors lie, and gives the same boxes for the same numbers.
"""

from collections.abc import Sequence
from math import isqrt
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.models.detector_layers import BOX, STRIDES

_GREY = 114  # of 255: between black and white, so that the border is no edge of either
# Boxes that are compared at once: memory stays small, and the search ends once enough are found.
_BLOCK = 256


class Fitted(NamedTuple):
    """Where an image lies in a square, in pixels."""

    height: int
    width: int
    top: int
    left: int


def fit(height: int, width: int, *, size: int) -> Fitted:
    """Return where an image lies that fills a square of that side and keeps its proportion."""
    longest = max(height, width)
    high, wide = (max(1, round(each * size / longest)) for each in (height, width))
    return Fitted(high, wide, (size - high) // 2, (size - wide) // 2)


def squared(image: Tensor, *, size: int) -> Tensor:
    """Return [3, size, size] of an image [h, w, 3], in its type: resized, the rest grey.

    uint8, or floats from 0 to 1. Enlarged and shrunk linearly, without a filter.
    """
    height, width, top, left = fit(image.shape[0], image.shape[1], size=size)
    pixels = image.permute(2, 0, 1)[None]
    if pixels.shape[-2:] != (height, width):
        pixels = F.interpolate(pixels, size=(height, width), mode="bilinear")
    grey = _GREY / 255 if image.is_floating_point() else _GREY
    square = image.new_full((3, size, size), grey)
    square[:, top : top + height, left : left + width] = pixels[0]
    return square


def letterbox(images: Sequence[Tensor], size: int, *, like: Tensor) -> Tensor:
    """Return float[batch, 3, size, size] in 0..1, on the device and in the type of `like`.

    images: uint8[h, w, 3] each, of any size, each `squared`.
    """
    placed = [each.to(like.device, non_blocking=True).float() / 255 for each in images]
    return torch.stack([squared(each, size=size) for each in placed]).to(like.dtype)


def places(count: int, *, shape: tuple[int, int] | None, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the centres float[count, 2] (x, y) and the strides float[count, 1] of all places.

    shape: height and width of the image, where it is no square. Raises ValueError if an image of
    that shape has another number of places.
    """
    side = isqrt(count * STRIDES[-1] ** 2 // _SQUARE)
    height, width = shape or (side, side)
    centres, strides = [], []
    for stride in STRIDES:
        rows, columns = (
            (torch.arange(each // stride, device=like.device) + 0.5) * stride
            for each in (height, width)
        )
        y, x = torch.meshgrid(rows, columns, indexing="ij")
        centres.append(torch.stack([x, y], dim=-1).reshape(-1, 2))
        strides.append(torch.full_like(centres[-1][:, :1], stride))
    found = torch.cat(centres)
    if len(found) != count:
        raise ValueError(f"{count} places are not those of {height}x{width}: give its shape")
    return found, torch.cat(strides)


# places of a square whose side is the coarsest stride
_SQUARE = sum((STRIDES[-1] // stride) ** 2 for stride in STRIDES)


def decode(distances: Tensor, centres: Tensor, strides: Tensor) -> Tensor:
    """Return the boxes float[..., 4] of distances float[..., 4] in strides before softplus."""
    reach = F.softplus(distances) * strides
    return torch.cat([centres - reach[..., :2], centres + reach[..., 2:]], dim=-1)


def detections(
    raw: Tensor,
    *,
    conf: float,
    iou: float,
    max_det: int,
    shape: tuple[int, int] | None = None,
) -> list[Tensor]:
    """Return float32[n, 6] per image: box, score, class; best first, at most max_det.

    raw: float[batch, places, 4 + classes]. A place gives its best class, if its score exceeds
    conf. What is not a number is no detection.
    """
    answers = raw.float()
    centres, strides = places(answers.shape[1], shape=shape, like=answers)
    found = []
    for answer in answers:
        best, kinds = answer[:, BOX:].max(dim=1)
        scores = best.sigmoid()
        (chosen,) = torch.nonzero(scores > conf, as_tuple=True)
        scores, order = scores[chosen].sort(descending=True, stable=True)
        chosen = chosen[order]
        boxes = decode(answer[chosen, :BOX], centres[chosen], strides[chosen])
        kept = suppress(boxes, kinds[chosen], iou=iou, most=max_det)
        columns = [boxes[kept], scores[kept, None], kinds[chosen[kept], None].float()]
        found.append(torch.cat(columns, dim=1))
    return found


def suppress(boxes: Tensor, kinds: Tensor, *, iou: float, most: int) -> Tensor:
    """Return the indices of the boxes that stay, in their order, at most so many.

    boxes: best first. One stays unless a better one of its class that stays overlaps it by more
    than iou: greedy non-maximum suppression, exactly, block by block.
    """
    kept = torch.empty(0, dtype=torch.long, device=boxes.device)
    for start in range(0, len(boxes), _BLOCK):
        if len(kept) >= most:
            break
        block = torch.arange(start, min(start + _BLOCK, len(boxes)), device=boxes.device)
        gone = _overlap(boxes, kinds, rows=kept, columns=block, iou=iou).any(dim=0)
        block = block[~gone]
        inside = _overlap(boxes, kinds, rows=block, columns=block, iou=iou).triu(diagonal=1)
        kept = torch.cat([kept, block[_standing(inside)]])
    return kept[:most]


def overlap(one: Tensor, other: Tensor) -> Tensor:
    """Return the share that two boxes have in common, of what both cover; 0 where that is 0.

    one, other: float[..., 4], broadcast against each other.
    """
    low = torch.maximum(one[..., :2], other[..., :2])
    high = torch.minimum(one[..., 2:], other[..., 2:])
    common = (high - low).clamp(min=0).prod(dim=-1)
    both = area(one) + area(other) - common
    return torch.where(both > 0, common / both.clamp(min=1e-9), 0)


def area(boxes: Tensor) -> Tensor:
    """Return the pixels that each box covers, float[...]."""
    return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(dim=-1)


def _overlap(boxes: Tensor, kinds: Tensor, *, rows: Tensor, columns: Tensor, iou: float) -> Tensor:
    """Return bool[rows, columns]: whether two boxes are of one class and overlap too much."""
    share = overlap(boxes[rows, None], boxes[None, columns])
    return (share > iou) & (kinds[rows, None] == kinds[None, columns])


def _standing(against: Tensor) -> Tensor:
    """Return bool[n]: who is left where each that is left removes those that it stands against.

    against: bool[n, n], above the diagonal. Who has nobody above is settled at once, and each
    round settles who depends on those before, so that the rounds end with the one answer.
    """
    left = torch.ones(len(against), dtype=torch.bool, device=against.device)
    while True:
        settled = ~(against & left[:, None]).any(dim=0)
        if torch.equal(settled, left):
            return left
        left = settled
