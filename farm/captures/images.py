"""Images that a person names: which files are meant, and their pixels as uint8[h, w, 3].

PPM, PGM, NPY and NPZ are always read, JPEG and PNG where Pillow is installed. A file is believed in
nothing: its size is checked before its content is unpacked, and no pickle is opened.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farm.captures import formats, scenes
from farm.errors import Refused, did_you_mean
from farm.reading import short

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Image = NDArray[np.uint8]

_NUMBERS: Final = re.compile(r"(\d+)")
_BOTH: Final = (*formats.OWN, *formats.BY_PILLOW)


def found(
    source: Path,
    *,
    root: Path = Path(),
    pillow: Callable[[], bool] = formats.has_pillow,
    notes: list[str] | None = None,
) -> list[Path]:
    """Return the images that a file or folder stands for, in the order that a person counts.

    A folder is looked into, not below it; hidden files and those of another ending are none of
    its images. Nothing is read. root: where a relative source starts from; messages name the source
    as it was given. pillow: whether it is installed. notes: learns of images that are left out,
    since nobody here reads their format. Raises Refused if nothing is there, no image is found, or
    one would need Pillow.
    """
    place = root / source
    if os.path.isdir(place):
        try:
            inside = [place / each for each in os.listdir(place) if not each.startswith(".")]
        except OSError as error:
            raise Refused(f"cannot read {short(str(source))}", why=error.strerror or "") from error
        files = [each for each in inside if is_image(each) and os.path.isfile(each)]
        if not files:
            known = f"an image ends in {', '.join(_BOTH)}"
            raise Refused(f"no image in {short(str(source))}", why=known)
        if notes is not None:
            notes += _left_out(source, inside)
        files.sort(key=_by_number)
    else:
        files = [_file(place, shown=short(str(source)))]
    needs = next((each for each in files if formats.needs_pillow(each)), None)
    if needs is not None and not pillow():
        raise formats.no_pillow(needs)
    return files


def is_image(path: Path) -> bool:
    """Whether its name ends as that of an image does."""
    return path.suffix.lower() in _BOTH


def read(path: Path, *, decode: formats.Decode = formats.by_pillow) -> "list[Image]":
    """Return the images of a file, uint8[h, w, 3] each: several where it holds an array of them.

    decode: what turns the bytes of a JPEG or PNG into pixels. Raises Refused for a file that is
    missing, damaged, no image, or of more than 200 million pixels.
    """
    return formats.read(_file(path), decode=decode)


def sample() -> "Image":
    """Return the image that is used where no one is named: a scene, uint8[480, 640, 3]."""
    return scenes.scene(0, height=480, width=640).image


def _file(path: Path, *, shown: str = "") -> Path:
    """Return the path if it is a file with the ending of an image; else raise Refused."""
    shown = shown or short(str(path))
    try:
        there, is_file = os.path.lexists(path), os.path.isfile(path)
    except ValueError as error:  # a name that no file can have
        raise Refused(f"no file {shown}", why=str(error)) from error
    if not there:
        raise Refused(f"no file {shown}", hint=did_you_mean(path.name, _beside(path)))
    if not is_file:
        raise Refused(f"{shown} is no file", why="an image is a file, or a folder holds it")
    if not is_image(path):
        raise Refused(f"{shown} is no image", why=f"an image ends in {', '.join(_BOTH)}")
    return path


def _left_out(source: Path, inside: list[Path]) -> list[str]:
    """Return a note of images in formats that nobody here reads."""
    others = [each for each in inside if each.suffix.lower() in formats.UNREAD]
    if not others:
        return []
    endings = ", ".join(sorted({each.suffix.lower() for each in others}))
    return [f"images left out of {short(str(source))}: {len(others)} of {endings}, not read here"]


def _beside(path: Path) -> list[str]:
    try:
        return sorted(each for each in os.listdir(path.parent) if is_image(Path(each)))
    except (OSError, ValueError):
        return []


def _by_number(path: Path) -> list[tuple[int, int, str]]:
    """Return what sorts img2 before img10."""
    parts = _NUMBERS.split(path.name)
    return [(0, int(each), each) if each.isdecimal() else (1, 0, each) for each in parts if each]
