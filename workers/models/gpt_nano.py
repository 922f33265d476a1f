"""A small causal language model: three blocks of width 128 over a vocabulary of 1024 tokens."""

import torch
from torch import Tensor, nn

from workers.models.seeded import seeded
from workers.models.transformer import Block

VOCABULARY = 1024
CONTEXT = 256
WIDTH = 128
DEPTH = 3
HEADS = 4


class GptNano(nn.Module):
    """Token and position embeddings, the blocks, and a head that shares the token embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=0.02)
        self.blocks = nn.Sequential(*(Block(WIDTH, HEADS, causal=True) for _ in range(DEPTH)))
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
