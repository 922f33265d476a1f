"""A plain convolutional classifier for small images: three stages, each halving the image."""

from torch import Tensor, nn

from workers.models.seeded import seeded


class Cnn(nn.Module):
    """Convolution, batch norm, ReLU and pooling, three times; then a linear head."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stages = nn.Sequential(_stage(3, 32), _stage(32, 64), _stage(64, 128))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(128, classes)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.pool(self.stages(x)).flatten(1))
        return scores


def build(*, classes: int = 10, seed: int = 0) -> nn.Module:
    """Return the network in eval mode; x float[batch, 3, h, w] gives float[batch, classes]."""
    with seeded(seed):
        return Cnn(classes).eval()


def _stage(channels: int, following: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, following, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(following),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )
