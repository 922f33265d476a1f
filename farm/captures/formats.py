"""How images lie in files: Netpbm, arrays of numpy, and what Pillow decodes."""

import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from farm import npz
from farm.captures import netpbm
from farm.captures.sizes import LIMIT_BYTES, check_size
from farm.errors import Refused
from farm.reading import short

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Image = NDArray[np.uint8]
    Decode = Callable[[Path], Image]
else:
    Decode = Callable

OWN: Final = (".ppm", ".pgm", ".pnm", ".npy", ".npz")
BY_PILLOW: Final = (".jpg", ".jpeg", ".png")
UNREAD: Final = frozenset([".avif", ".bmp", ".gif", ".heic", ".jp2", ".tif", ".tiff", ".webp"])
# What decoders raise, and numpy's parser of a header: it takes Python's words, whoever wrote them.
_DAMAGED: Final = (
    *(ArithmeticError, EOFError, LookupError, OSError, RuntimeError, SyntaxError, TypeError),
    *(ValueError, struct.error, tokenize.TokenError, zlib.error),
)


def read(path: Path, *, decode: Decode) -> "list[Image]":
    """Return the images of a file that is there, uint8[h, w, 3] each; Refused as `images.read`."""
    try:
        if needs_pillow(path):
            return [decode(path)]
        if path.suffix.lower() == ".npz":
            return _of_npz(path)
        if path.suffix.lower() == ".npy":
            return _of_npy(path)
        return [netpbm.read(path)]
    except OSError as error:
        raise Refused(f"cannot read {short(str(path))}", why=error.strerror or "") from error
    except MemoryError as error:
        why = "its pixels need more memory than there is"
        raise Refused(f"{short(str(path))} does not fit here", why=why) from error


# ── Pillow ───────────────────────────────────────────────────────────────────────────────────────


class _Opened(Protocol):
    """What Pillow gives for a file, before it has read the pixels."""

    size: tuple[int, int]

    def convert(self, mode: str) -> Any: ...
    def __enter__(self) -> "_Opened": ...
    def __exit__(self, *_: object) -> None: ...


class _Pillow(Protocol):
    """What is used of its module `PIL.Image`."""

    DecompressionBombError: type[Exception]

    def open(self, path: Path, /) -> _Opened: ...


def needs_pillow(path: Path) -> bool:
    return path.suffix.lower() in BY_PILLOW


def has_pillow() -> bool:
    return find_spec("PIL") is not None


def no_pillow(path: Path) -> Refused:
    """Return the error to raise for an image that cannot be read without it."""
    return Refused(
        f"{short(str(path))} needs Pillow, which is not installed",
        why=f"without it {', '.join(OWN)} are read",
        hint="pip install pillow",
    )


def by_pillow(path: Path, *, load: Callable[[], "_Pillow | None"] | None = None) -> "Image":
    """Return the pixels of a JPEG or PNG; Refused without Pillow, or where it cannot read it.

    load: gives its module, None where it is not installed.
    """
    import numpy as np

    pillow = (load or _load)()
    if pillow is None:
        raise no_pillow(path)
    try:
        # it warns of sizes that are allowed here, and its own limit is below ours
        with warnings.catch_warnings(action="ignore"), pillow.open(path) as opened:
            width, height = opened.size
            check_size(path, height=height, width=width)
            return np.array(opened.convert("RGB"), dtype=np.uint8)
    except (*_DAMAGED, pillow.DecompressionBombError) as error:
        why = " ".join(str(error).split())[:200]
        raise Refused(f"{short(str(path))} is no image that Pillow reads", why=why) from error


def _load() -> "_Pillow | None":
    if not has_pillow():
        return None
    module: _Pillow = import_module("PIL.Image")
    return module


# ── arrays ───────────────────────────────────────────────────────────────────────────────────────


def _of_npy(path: Path) -> "list[Image]":
    import numpy as np

    shown = short(str(path))
    # A mapped file is not read before it is looked at, and no head claims more than is there.
    try:
        with warnings.catch_warnings(action="ignore"):
            mapped = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise
    except _DAMAGED as error:
        why = "it holds objects" if "object" in str(error).lower() else "damaged, or no array"
        raise Refused(f"{shown} is no array", why=why) from error
    return _pictures(mapped, shown, path)


def _of_npz(path: Path) -> "list[Image]":
    shown = short(str(path))
    with path.open("rb") as file:
        _check_unpacked(file.name, shown)
        arrays = npz.read(file, called=shown)
    if not arrays:
        raise Refused(f"{shown} holds no array")
    return [
        each
        for name, array in arrays.items()
        for each in _pictures(array, f"array {short(name)} of {shown}", path)
    ]


def _check_unpacked(name: str, shown: str) -> None:
    """Refuse what would be far larger unpacked; no ZIP is `npz.read`'s to refuse."""
    try:
        with zipfile.ZipFile(name) as archive:
            size = sum(each.file_size for each in archive.infolist())
    except (zipfile.BadZipFile, *_DAMAGED):
        return
    if size > LIMIT_BYTES:
        raise Refused(
            f"{shown} is too large",
            why=f"{size:,} bytes unpacked; at most {LIMIT_BYTES:,} are read",
        )


def _pictures(array: "NDArray[Any]", called: str, path: Path) -> "list[Image]":
    """Return the images of an array: one, or one for each item of a leading axis."""
    if array.nbytes > LIMIT_BYTES:
        why = f"{array.nbytes:,} bytes; at most {LIMIT_BYTES:,} are read"
        raise Refused(f"{called} is too large", why=why)
    items = list(array) if array.ndim == 4 else [array]
    if not items:
        raise Refused(f"{called} holds no image", why="its leading axis is 0")
    return [_picture(each, called, path) for each in items]


def _picture(array: "NDArray[Any]", called: str, path: Path) -> "Image":
    """Return an image whose colours come last, or first, or which has none, as uint8[h, w, 3]."""
    import numpy as np

    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or not {array.shape[0], array.shape[2]} & {1, 3}:
        why = f"its shape is {array.shape}; an image is [h, w, 3], [3, h, w] or [h, w]"
        raise Refused(f"{called} is no image", why=why[:200])
    if array.shape[2] not in (1, 3) or (array.shape[2] == 1 and array.shape[0] == 3):
        array = np.moveaxis(array, 0, 2)
    check_size(path, height=array.shape[0], width=array.shape[1])
    return np.array(np.broadcast_to(_bytes(array, called), (*array.shape[:2], 3)), order="C")


def _bytes(array: "NDArray[Any]", called: str) -> "Image":
    import numpy as np

    low, high = (array.min(), array.max()) if array.dtype.kind in "iuf" else (-1, -1)
    most = 1 if array.dtype.kind == "f" else 255
    if not (low >= 0 and high <= most):  # also where one is not a number
        got = str(array.dtype) if array.dtype.kind not in "iuf" else f"{low:g} to {high:g}"
        raise Refused(f"{called} is no image", why=f"{got}; expected 0 to {most}")
    if array.dtype.kind == "f":
        array = np.rint(array.astype(np.float32) * 255)
    return array.astype(np.uint8)
