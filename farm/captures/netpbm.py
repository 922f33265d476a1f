"""Netpbm images, the formats P2, P3, P5 and P6: a head of numbers and comments, then the values."""

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from farm.captures.sizes import check_size
from farm.errors import Refused
from farm.reading import short

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Magic, width, height and the value of white; one white space stands before the values.
_BETWEEN: Final = rb"(?:\s|#[^\r\n]*[\r\n])+"
_HEAD: Final = re.compile(
    rb"P([2356])" + _BETWEEN + rb"(\d{1,9})" + _BETWEEN + rb"(\d{1,9})" + _BETWEEN + rb"(\d{1,9})\s"
)
_COMMENT: Final = re.compile(rb"#[^\r\n]*")
_HEAD_BYTES: Final = 1 << 16
_MOST_TEXT: Final = 256 << 20  # bytes of a file that writes each value in digits


def read(path: Path) -> "NDArray[np.uint8]":
    """Return the first image of a file as uint8[h, w, 3], white being 255.

    Raises Refused if it is no such file, is cut off, or has a value above its white; OSError if it
    cannot be read.
    """
    shown = short(str(path))
    with path.open("rb") as file:
        head = _HEAD.match(file.read(_HEAD_BYTES))
        if head is None:
            raise Refused(
                f"{shown} is no PPM or PGM", why="it does not begin with P2, P3, P5 or P6"
            )
        kind, width, height, white = (int(each) for each in head.groups())
        check_size(path, height=height, width=width)
        if not 1 <= white <= 65535:
            raise Refused(f"{shown} is damaged", why=f"its white is {white}, and not 1 to 65535")
        count = height * width * (3 if kind in (3, 6) else 1)
        file.seek(head.end())
        kept = file.read(_MOST_TEXT + 1 if kind in (2, 3) else count * (1 if white < 256 else 2))
    values = _digits(kept, count, shown) if kind in (2, 3) else _binary(kept, white)
    if len(values) < count:
        raise Refused(f"{shown} is cut off", why=f"{len(values)} of {count} values are there")
    if values.max() > white or values.min() < 0:
        raise Refused(f"{shown} is damaged", why=f"a value is not from 0 to {white}")
    pixels = values.reshape(height, width, -1)
    scaled = pixels if white == 255 else (pixels.astype(np.uint32) * 255 + white // 2) // white
    return np.array(np.broadcast_to(scaled, (height, width, 3)), dtype=np.uint8)


def _binary(data: bytes, white: int) -> "NDArray[np.unsignedinteger]":
    kind = np.dtype("u1" if white < 256 else ">u2")
    return np.frombuffer(data + bytes(1), dtype=kind, count=len(data) // kind.itemsize)


def _digits(text: bytes, count: int, shown: str) -> "NDArray[np.int32]":
    if len(text) > _MOST_TEXT:
        raise Refused(f"{shown} is too large", why="so large an image is not written in digits")
    plain = _COMMENT.sub(b"", text)
    try:
        with warnings.catch_warnings(action="error"):
            return np.fromstring(plain.decode("ascii"), dtype=np.int32, sep=" ", count=-1)[:count]
    except (ValueError, DeprecationWarning, OverflowError) as error:
        raise Refused(f"{shown} is damaged", why="its values are not all numbers") from error
