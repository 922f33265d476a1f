"""Boxes beside images: where the file with them lies, and its lines `class cx cy w h`."""

import math
import os
from pathlib import Path
from typing import Final

from farm.errors import Refused
from farm.reading import short

Box = tuple[float, float, float, float, float]

_LIMIT_BYTES: Final = 4 << 20
_MOST_CLASSES: Final = 2**24  # a float32 counts so far


def beside(image: Path) -> Path | None:
    """Return the file with the boxes of an image, None where there is none.

    It is called like the image, and lies in `labels` where the image lies in `images`, however
    deep; else beside the image.
    """
    parts = list(image.parts)
    tried = [image.with_suffix(".txt")]
    if "images" in parts[:-1]:
        last = len(parts) - 2 - parts[-2::-1].index("images")
        tried.insert(0, Path(*parts[:last], "labels", *parts[last + 1 :]).with_suffix(".txt"))
    return next((each for each in tried if os.path.isfile(each)), None)


def read(path: Path, *, classes: int | None = None) -> list[Box]:
    """Return the boxes of a file: class, centre x, centre y, width and height, in 0 to 1.

    classes: how many there are, where that is known. Raises Refused naming file and line for
    anything else; an empty file has no boxes.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LIMIT_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise Refused(f"cannot read {short(str(path))}", why=error.strerror or "") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8", why=f"at byte {error.start}") from error
    if len(data) > _LIMIT_BYTES:
        raise Refused(
            f"{path}: larger than {_LIMIT_BYTES >> 20} MiB", why="no image has such boxes"
        )
    lines = enumerate(text.splitlines(), start=1)
    return [_box(line, f"{path}:{number}", classes) for number, line in lines if line.strip()]


def _box(line: str, where: str, classes: int | None) -> Box:
    words = line.split()
    try:
        kind, *place = (float(each) for each in words)
        x, y, width, height = place
    except ValueError as error:
        why = f"expected `class cx cy w h`, got {short(line.strip())}"
        raise Refused(f"{where}: no box", why=why) from error
    known = _MOST_CLASSES if classes is None else classes
    if not (math.isfinite(kind) and kind == int(kind) and 0 <= kind < known):
        why = (
            f"class {words[0][:40]} of {known}" if classes is not None else f"class {words[0][:40]}"
        )
        raise Refused(f"{where}: no such class", why=f"{why}; they count from 0")
    if not all(0 <= each <= 1 for each in place) or not (width > 0 and height > 0):
        why = f"{short(line.strip())}: centre and size are shares of the image, from 0 to 1"
        raise Refused(f"{where}: no box in the image", why=why)
    return kind, x, y, width, height
