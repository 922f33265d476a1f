"""A residual network of the ResNet-18 layout (He et al. 2015), for images of any size."""

from torch import Tensor, nn

from workers.models.seeded import seeded

_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut, projected where the shape changes."""

    def __init__(self, channels: int, following: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, following, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(following)
        self.conv2 = nn.Conv2d(following, following, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(following)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != following:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, following, 1, stride=stride, bias=False),
                nn.BatchNorm2d(following),
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = self.relu(self.norm1(self.conv1(x)))
        outer: Tensor = self.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))
        return outer


class ResNet18(nn.Module):
    """Stem, four stages of two blocks, global average pool, and a head if classes are given."""

    def __init__(self, classes: int | None) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        blocks: list[nn.Module] = []
        channels = 64
        for following, stride in _STAGES:
            blocks += [
                Block(channels, following, stride=stride),
                Block(following, following, stride=1),
            ]
            channels = following
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Identity() if classes is None else nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.pool(self.blocks(self.stem(x))).flatten(1))
        return scores


def build(*, classes: int | None = 1000, seed: int = 0) -> nn.Module:
    """Return the network in eval mode; x float[batch, 3, h, w] gives float[batch, classes].

    classes None leaves out the head and gives float[batch, 512]. At 224² that is 3,627,122,688
    FLOPs per item; with 1000 classes at 96² it is 667,230,208.
    """
    with seeded(seed):
        return ResNet18(classes).eval()
