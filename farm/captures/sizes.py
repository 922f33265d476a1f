"""How large an image may be, asked before its pixels are unpacked."""

from pathlib import Path
from typing import Final

from farm.errors import Refused
from farm.reading import short

LIMIT_PIXELS: Final = 200_000_000
LIMIT_BYTES: Final = 3 * LIMIT_PIXELS  # of an array; one byte for each colour of a pixel


def check_size(path: Path, *, height: int, width: int) -> None:
    """Raise Refused for an image without a pixel, or with more than `LIMIT_PIXELS`."""
    shown = f"{height}x{width}"[:60]
    if height < 1 or width < 1:
        raise Refused(f"{short(str(path))} holds no pixel", why=f"it is {shown}")
    if height * width > LIMIT_PIXELS:
        why = f"{shown}; at most {LIMIT_PIXELS // 10**6} million pixels are read"
        raise Refused(f"{short(str(path))} is too large", why=why)
