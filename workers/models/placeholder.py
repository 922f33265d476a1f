"""A stand-in for a depth model: numpy only, so that profiling can be tried without torch."""

from typing import Any

import numpy as np
import numpy.typing as npt

_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # ITU-R BT.601


def demo_depth(rgb: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return a made-up depth in [0, 1] for every pixel: smooth brightness, nearer at the bottom.

    rgb: uint8 or float [..., height, width, 3]; result float32 [..., height, width]. It is no
    prediction: it does the same work for every image, and that is all it is for.
    """
    bright: npt.NDArray[np.floating] = rgb.astype(np.float32) @ _LUMA
    for axis in (-2, -1):
        bright = (np.roll(bright, 1, axis) + bright + np.roll(bright, -1, axis)) / 3
    low = bright.min(axis=(-2, -1), keepdims=True)
    high = bright.max(axis=(-2, -1), keepdims=True)
    shade = (bright - low) / np.maximum(high - low, 1e-6)
    slope = np.linspace(1, 0, rgb.shape[-3], dtype=np.float32)[:, None]
    return np.asarray(0.5 * shade + 0.5 * slope, dtype=np.float32)
