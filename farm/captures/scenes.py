"""Images made from numbers: shapes on a shaded, grainy ground, and the boxes around them."""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

KINDS: Final = ("rectangle", "ellipse", "triangle", "ring")  # by their class
_MOST: Final = 8
_GRAIN: Final = 12


class Scene(NamedTuple):
    """image: uint8[h, w, 3]; boxes: float32[k, 5], class, centre and size as shares of a side."""

    image: "NDArray[np.uint8]"
    boxes: "NDArray[np.float32]"


def scene(index: int, *, height: int, width: int, seed: int = 0) -> Scene:
    """Return one scene of one to eight shapes; equal arguments give equal bytes.

    A shape may cover another, so its box says where it was drawn. Sides of 1 are possible.
    """
    random = np.random.default_rng([seed, index])
    image = _ground(random, height, width)
    boxes = np.zeros((int(random.integers(1, _MOST + 1)), 5), dtype=np.float32)
    for box in boxes:
        kind = int(random.integers(len(KINDS)))
        h, w = (max(1, round(side * random.uniform(0.06, 0.5))) for side in (height, width))
        top, left = int(random.integers(height - h + 1)), int(random.integers(width - w + 1))
        colour = random.integers(0, 256, 3, dtype=np.uint8)
        image[top : top + h, left : left + w][_mask(KINDS[kind], h, w)] = colour
        box[:] = kind, (left + w / 2) / width, (top + h / 2) / height, w / width, h / height
    return Scene(image, boxes)


def _ground(random: "Generator", height: int, width: int) -> "NDArray[np.uint8]":
    """Return a ground that goes from one colour to another, with grain on it."""
    above, below = random.integers(40, 200, (2, 3)).astype(np.float32)
    share = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    shade = (above + (below - above) * share).astype(np.uint8)
    grain = random.integers(0, _GRAIN, (height, width, 3), dtype=np.uint8)
    ground: NDArray[np.uint8] = shade + grain
    return ground


def _mask(kind: str, height: int, width: int) -> "NDArray[np.bool_]":
    y = ((np.arange(height, dtype=np.float32) + 0.5) / height * 2 - 1)[:, None]
    x = (np.arange(width, dtype=np.float32) + 0.5) / width * 2 - 1
    if kind == "triangle":
        return np.abs(x) <= (y + 1) / 2
    distance = np.maximum(np.abs(x), np.abs(y)) if kind == "rectangle" else np.hypot(x, y)
    inside = distance <= 1
    found: NDArray[np.bool_] = inside & (distance >= 0.6) if kind == "ring" else inside
    return found
