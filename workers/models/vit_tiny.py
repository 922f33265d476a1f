"""A vision transformer of the ViT-tiny layout: width 192, depth 12, 3 heads, patches of 16."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from workers.models.seeded import seeded
from workers.models.transformer import Block

WIDTH = 192
DEPTH = 12
HEADS = 3
PATCH = 16


class VitTiny(nn.Module):
    """Patches and a class token through twelve blocks; the class token goes through a pooler."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        patches = (height // PATCH) * (width // PATCH)
        self.patch = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, WIDTH))
        self.position = nn.Parameter(0.02 * torch.randn(1, patches + 1, WIDTH))
        self.blocks = nn.Sequential(*(Block(WIDTH, HEADS, causal=False) for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        self.pooler = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patch(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(x), -1, -1), patches], dim=1) + self.position
        return torch.tanh(self.pooler(self.norm(self.blocks(tokens))[:, 0]))


def build(
    inputs: Mapping[str, Tensor] | None = None, *, image: int = 224, seed: int = 0
) -> nn.Module:
    """Return the network in eval mode; x float[batch, 3, h, w] gives float[batch, 192].

    The image size, a multiple of 16, is that of inputs["x"], else `image` squared. At 224² an
    item takes 2,507,056,128 FLOPs, of which a counter that misses fused attention sees
    2,149,392,384. Raises ValueError for any other size.
    """
    height, width = inputs["x"].shape[-2:] if inputs else (image, image)
    if height % PATCH or width % PATCH:
        raise ValueError(f"image of {height}x{width}: both sides must be a multiple of {PATCH}")
    with seeded(seed):
        return VitTiny(height, width).eval()
