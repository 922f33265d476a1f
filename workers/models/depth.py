"""Two depth estimators of one layout and two widths, for sweeps over models that do one task.

They take images as a camera gives them, like the placeholder, and turn them into numbers inside:
what a model does before its first layer is part of its time.
"""

from importlib import import_module
from itertools import pairwise

import torch
from torch import Tensor, nn

from workers.models.seeded import seeded

_PATCH = 14  # of the transformer


class Depth(nn.Module):
    """Four convolutions, each halving the image, and four that double it again, with skips."""

    def __init__(self, width: int) -> None:
        super().__init__()
        widths = [3, width, 2 * width, 4 * width, 8 * width]
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList([_stage(a, b, stride=2) for a, b in pairs])
        self.up = nn.ModuleList([_stage(b, max(a, width), stride=1) for a, b in reversed(pairs)])
        self.head = nn.Conv2d(width, 1, kernel_size=3, padding=1)

    def forward(self, rgb: Tensor) -> Tensor:
        x = rgb.permute(0, 3, 1, 2).to(self.head.weight.dtype) / 255
        skips = []
        for stage in self.down:
            skips.append(x)
            x = stage(x)
        for stage, skip in zip(self.up, reversed(skips), strict=True):
            x = nn.functional.interpolate(stage(x), size=skip.shape[-2:], mode="nearest")
            if skip.shape[1] == x.shape[1]:
                x = x + skip
        return torch.sigmoid(self.head(x)).squeeze(1)


def small(*, seed: int = 0) -> nn.Module:
    """Return the narrow one; rgb uint8[batch, h, w, 3] gives float[batch, h, w] in [0, 1]."""
    with seeded(seed):
        return Depth(8).eval()


def base(*, seed: int = 0) -> nn.Module:
    """Return one twice as wide, with four times the work; otherwise as `small`."""
    with seeded(seed):
        return Depth(16).eval()


class Anything(nn.Module):
    """The Depth Anything layout of the package `transformers` behind the same interface."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, rgb: Tensor) -> Tensor:
        x = rgb.permute(0, 3, 1, 2).to(next(self.model.parameters()).dtype) / 255
        # its patches are of 14 pixels
        size = [max(_PATCH, round(each / _PATCH) * _PATCH) for each in x.shape[-2:]]
        x = nn.functional.interpolate(x, size=size, mode="bilinear", align_corners=False)
        depth: Tensor = self.model(pixel_values=x).predicted_depth
        return depth


def anything_small(*, seed: int = 0) -> nn.Module:
    """Return Depth Anything's small layout, 24.8 M parameters, from its configuration.

    Nothing is fetched: its weights are random. Raises ModuleNotFoundError without `transformers`.
    """
    package = import_module("transformers")
    backbone = package.Dinov2Config(
        hidden_size=384,
        num_hidden_layers=12,
        num_attention_heads=6,
        image_size=518,
        patch_size=_PATCH,
        out_features=["stage9", "stage10", "stage11", "stage12"],
        apply_layernorm=True,
        reshape_hidden_states=False,
    )
    config = package.DepthAnythingConfig(
        backbone_config=backbone,
        patch_size=_PATCH,
        reassemble_hidden_size=384,
        neck_hidden_sizes=[48, 96, 192, 384],
        fusion_hidden_size=64,
    )
    with seeded(seed):
        return Anything(package.DepthAnythingForDepthEstimation(config)).eval()


def _stage(channels: int, following: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, following, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(following),
        nn.ReLU(),
    )
