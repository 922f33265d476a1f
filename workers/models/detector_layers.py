"""What the detector is made of: convolutions, residual blocks, a pyramid of maps, and one head.

The network halves the image five times and answers at the last three sizes, strides 8, 16 and 32:
small things are found where the map is fine, large ones where it is coarse.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STRIDES = (8, 16, 32)
BOX = 4  # distances to the left, the top, the right and the bottom
# The mean of silu(z)² over normal z: weights of this scale keep signals as large as they come.
_SILU_POWER = 0.3558
# Drawn so, of the 8400 places of an image some hundreds score above 0.25, fewer above 0.5 and none
# above 0.999: few places hold something.
_SPREAD = 2.4
_RARE = -8.4
_NOTHING = 1e-3  # below it a power counts as 0; no subnormal number in float16
_TWO_STRIDES = 1.85  # softplus(1.85) is 2: a fresh box is four strides wide


class Conv(nn.Sequential):
    """A convolution that keeps the size or divides it by the stride, batch norm and SiLU."""

    def __init__(self, channels: int, following: int, size: int = 3, *, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(
                channels, following, size, stride=stride, padding=(size - 1) // 2, bias=False
            ),
            nn.BatchNorm2d(following),
            nn.SiLU(),
        )


class Block(nn.Module):
    """A narrow 1x1 and a 3x3 convolution, added to what came in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(Conv(channels, channels // 2, 1), Conv(channels // 2, channels))

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = x + self.inner(x)
        return added


class Backbone(nn.Module):
    """A stem and four stages; each halves the map, and the last three are given on."""

    def __init__(self, widths: Sequence[int], depths: Sequence[int]) -> None:
        super().__init__()
        self.stem = Conv(3, widths[0], stride=2)
        self.stages = nn.ModuleList(
            nn.Sequential(Conv(a, b, stride=2), *(Block(b) for _ in range(depth)))
            for (a, b), depth in zip(pairwise(widths), depths, strict=True)
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        x, maps = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps[-len(STRIDES) :]


class Neck(nn.Module):
    """Bring the maps to one width and add each coarse one to the next finer."""

    def __init__(self, widths: Sequence[int], width: int) -> None:
        super().__init__()
        self.narrow = nn.ModuleList(Conv(each, width, 1) for each in widths)
        self.merge = nn.ModuleList(Block(width) for _ in widths)

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        found: list[Tensor] = []
        above: Tensor | None = None
        for narrow, merge, x in reversed(list(zip(self.narrow, self.merge, maps, strict=True))):
            same = narrow(x)
            if above is not None:
                same = same + F.interpolate(above, size=same.shape[-2:], mode="nearest")
            above = merge(same)
            found.insert(0, above)
        return found


class Head(nn.Module):
    """At each place of a map, four distances in strides and one logit per class."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.boxes = Conv(width, width)
        self.scores = Conv(width, width)
        self.distances = nn.Conv2d(width, BOX, 1)
        self.logits = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        distances = self.distances(_standard(self.boxes(x)))
        return torch.cat([distances, self.logits(_standard(self.scores(x)))], dim=1)

    def spread(self) -> None:
        """Draw the last weights so that a fresh head finds something, but not everywhere."""
        width = self.logits.in_channels
        nn.init.normal_(self.logits.weight, std=_SPREAD / width**0.5)
        nn.init.constant_(_bias(self.logits), _RARE)
        nn.init.normal_(self.distances.weight, std=0.5 / width**0.5)
        nn.init.constant_(_bias(self.distances), _TWO_STRIDES)


def draw(network: nn.Module) -> None:
    """Draw the weights of every convolution anew; a signal is as large behind as before each."""
    for each in network.modules():
        if isinstance(each, nn.Conv2d):
            nn.init.normal_(each.weight, std=(_SILU_POWER * each.weight[0].numel()) ** -0.5)
    for each in network.modules():
        if isinstance(each, Head):
            each.spread()


def _standard(x: Tensor) -> Tensor:
    """Return each channel of an image with mean 0 over its places, and each place with power 1.

    Fresh channels differ in their means far more than from place to place, and the places at a
    border from all others: without this, one class would have every place, and the border the
    scores. A map that is the same everywhere becomes 0.
    """
    variance, mean = torch.var_mean(x, dim=(2, 3), keepdim=True, correction=0)
    even = (x - mean) * torch.rsqrt(variance + _NOTHING)
    return even * torch.rsqrt(even.square().mean(dim=1, keepdim=True) + _NOTHING)


def _bias(layer: nn.Conv2d) -> Tensor:
    assert layer.bias is not None, "built with one"
    return layer.bias
