"""A three-layer perceptron, 64-64-64-10: so small that a step is mostly call overhead."""

from torch import Tensor, nn

from workers.models.seeded import seeded


class Mlp(nn.Module):
    """Three linear layers with ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        )

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layers(x)
        return scores


def build(*, seed: int = 0) -> nn.Module:
    """Return the network in eval mode; x float[batch, 64] gives float[batch, 10].

    17,664 FLOPs per item.
    """
    with seeded(seed):
        return Mlp().eval()
