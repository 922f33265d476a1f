"""The block that the transformers of the zoo are made of."""

import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Pre-norm attention and a four times wider perceptron, each with a residual."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, tokens, width))
        deeper: Tensor = x + self.narrow(F.gelu(self.widen(self.norm2(x))))
        return deeper
