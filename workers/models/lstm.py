"""A two-layer LSTM over a sequence of features: many small dependent steps, no parallel work."""

from torch import Tensor, nn

from workers.models.seeded import seeded

FEATURES = 64
WIDTH = 128


class Lstm(nn.Module):
    """Two recurrent layers; the last state goes through a linear head."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(FEATURES, WIDTH, num_layers=2, batch_first=True)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.recurrent(x)
        scores: Tensor = self.head(states[:, -1])
        return scores


def build(*, classes: int = 10, seed: int = 0) -> nn.Module:
    """Return the network in eval mode; x float[batch, steps, 64] gives float[batch, classes]."""
    with seeded(seed):
        return Lstm(classes).eval()
