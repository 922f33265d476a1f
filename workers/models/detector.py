"""A small object detector, whole: what happens to an image before, in and behind the network.

A *detection-style pipeline* is a module that is called with one float tensor and offers any of
these three methods; a model of yours may offer them as well:

`preprocess(images, size)`
    images: a list of uint8[h, w, 3] on the host; gives float[batch, 3, size, size] in 0..1 on the
    device of the module
`postprocess(raw, conf, iou, max_det)`
    raw: what the module returned; gives float32[n, 6] per image: x1, y1, x2, y2 in pixels of the
    square, score, class
`loss(raw, targets)`
    targets: float[k, 5] per image: class, and centre x, centre y, width and height as shares of
    the square; gives one number to go down from

Own design: an anchor-free head on a pyramid of three maps. Weights are random, and drawn so that
decoding and suppression have about the work that a trained detector gives them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workers.models import detector_boxes, detector_loss
from workers.models.detector_layers import STRIDES, Backbone, Head, Neck, draw
from workers.models.seeded import seeded


@dataclass(frozen=True, kw_only=True)
class Size:
    """Channels behind the stem and each of four stages, blocks of each stage, and of the maps."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    maps: int


SIZES = {"t": Size(widths=(16, 32, 64, 128, 192), depths=(1, 2, 2, 1), maps=64)}


class Detector(nn.Module):
    """x float[batch, 3, h, w] in 0..1 gives float[batch, places, 4 + classes].

    Both sides are multiples of 32. Places are the cells of three maps, row by row, the finest
    first: 21·h·w/1024 of them. The first four numbers are distances to the sides of a box in
    strides, before softplus; the others are logits.
    """

    def __init__(self, size: Size, classes: int) -> None:
        super().__init__()
        self.backbone = Backbone(size.widths, size.depths)
        self.neck = Neck(size.widths[-len(STRIDES) :], size.maps)
        self.heads = nn.ModuleList(Head(size.maps, classes) for _ in STRIDES)
        draw(self)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        if height % STRIDES[-1] or width % STRIDES[-1]:
            raise ValueError(f"image of {height}x{width}: both sides must be multiples of 32")
        maps = self.neck(self.backbone(x))
        answers = [head(each).flatten(2) for head, each in zip(self.heads, maps, strict=True)]
        return torch.cat(answers, dim=2).transpose(1, 2)

    def preprocess(self, images: Sequence[Tensor], size: int) -> Tensor:
        """Return float[batch, 3, size, size] where the module is and in its type.

        images: uint8[h, w, 3] each, resized to fit with their proportion; the rest is grey.
        """
        return detector_boxes.letterbox(images, size, like=next(self.parameters()))

    def postprocess(
        self,
        raw: Tensor,
        conf: float = 0.25,
        iou: float = 0.45,
        max_det: int = 300,
        *,
        shape: tuple[int, int] | None = None,
    ) -> list[Tensor]:
        """Return float32[n, 6] per image: x1, y1, x2, y2, score and class, best first.

        conf: a score must exceed it; iou: two boxes of a class that overlap more are one; max_det:
        so many at most. shape: height and width of the image where it is no square.
        """
        return detector_boxes.detections(raw, conf=conf, iou=iou, max_det=max_det, shape=shape)

    def loss(
        self, raw: Tensor, targets: Sequence[Tensor], *, shape: tuple[int, int] | None = None
    ) -> Tensor:
        """Return the loss of a batch in float32, one number; finite also where nothing is.

        targets: float[k, 5] per image, k may be 0. A class that the detector does not have is
        learnt as none. shape: height and width of the image where it is no square.
        """
        answers = raw.float()
        centres, strides = detector_boxes.places(answers.shape[1], shape=shape, like=answers)
        # the last place lies half a stride from the right and the lower edge
        size = (centres[-1] + strides[-1] / 2).repeat(2)
        return detector_loss.loss(answers, targets, centres=centres, strides=strides, size=size)


def build(*, size: str = "t", classes: int = 80, seed: int = 0) -> nn.Module:
    """Return the detector in eval mode; x float[batch, 3, h, w] gives float[batch, places, 84].

    size: one of `SIZES`; raises KeyError for another.
    """
    with seeded(seed):
        return Detector(SIZES[size], classes).eval()
