"""A small causal language model: three blocks of width 128 over a vocabulary of 1024 tokens."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.models.seeded import seeded

VOCABULARY = 1024
CONTEXT = 256
WIDTH = 128
DEPTH = 3
HEADS = 4


class Block(nn.Module):
    """Pre-norm causal attention and a four times wider perceptron, each with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, tokens, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        deeper: Tensor = x + self.narrow(F.gelu(self.widen(self.norm2(x))))
        return deeper


class GptNano(nn.Module):
    """Token and position embeddings, the blocks, and a head that shares the token embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.token.weight

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        hidden = self.blocks(self.token(x) + self.position(places))
        scores: Tensor = self.head(self.norm(hidden))
        return scores


def build(*, seed: int = 0) -> nn.Module:
    """Return the model in eval mode; x int64[batch, tokens] gives float[batch, tokens, 1024].

    Tokens are below 1024, and at most 256 of them; one call is a whole prompt, no cache.
    """
    with seeded(seed):
        return GptNano().eval()
