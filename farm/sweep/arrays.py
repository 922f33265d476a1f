"""The arrays of an NPZ: each read once, so that a damaged file is found before anything starts."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from farm.errors import Refused, did_you_mean
from farm.reading import short

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZIP_BEGINS: Final = b"PK\x03\x04"


def load(
    file: Path, *, name: str | None = None, may_be_empty: bool = False
) -> "dict[str, NDArray[Any]]":
    """Return the arrays of an NPZ by name, in their order; no pickle is ever opened.

    name: of the file, as somebody wrote it. may_be_empty: arrays may be without elements. Raises
    Refused if there is no such file, with the nearest one, if it is no NPZ or damaged, and if it
    holds none, objects, or an array without elements.
    """
    import numpy as np

    name = str(file) if name is None else name
    if not name:
        raise Refused("an NPZ without a name", hint="name a file that numpy.savez wrote")
    found: dict[str, NDArray[Any]] = {}
    try:
        with file.open("rb") as opened:
            _check_kind(opened, name)
            with np.load(opened, allow_pickle=False) as arrays:
                for key in arrays.files:
                    found[key] = _array(arrays, key, name, may_be_empty=may_be_empty)
    except FileNotFoundError as error:
        near = sorted(each.name for each in file.parent.glob("*.npz"))
        raise Refused(f"no file {short(name)}", hint=did_you_mean(file.name, near)) from error
    except (OSError, ValueError, EOFError, KeyError, NotImplementedError) as error:
        why = (error.strerror or "") if isinstance(error, OSError) else str(error)
        raise Refused(f"cannot read {short(name)}", why=why) from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise Refused(f"{short(name)} is damaged", why=str(error)) from error
    if not found:
        raise Refused(f"{short(name)} holds no array")
    return found


def digest(file: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check_kind(opened: BinaryIO, name: str) -> None:
    """Raise Refused unless it is a zip with its end: an NPZ that was cut off has only the start."""
    if not zipfile.is_zipfile(opened):
        opened.seek(0)
        if opened.read(4) == _ZIP_BEGINS:
            raise Refused(f"{short(name)} is damaged", why="its end is missing")
        raise Refused(f"{short(name)} is not an NPZ", hint="numpy.savez writes one")
    opened.seek(0)


def _array(
    arrays: "Mapping[str, object]", key: str, name: str, *, may_be_empty: bool
) -> "NDArray[Any]":
    import numpy as np

    try:
        array = arrays[key]
    except MemoryError as error:
        why = "it claims more than this machine has"
        raise Refused(f"array {key!r} of {short(name)} does not fit here", why=why) from error
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        why = "they would be a pickle, which may run code"
        raise Refused(f"array {key!r} of {short(name)} holds objects", why=why) from error
    if not isinstance(array, np.ndarray):
        raise Refused(f"{short(name)} holds {key!r}, which is no array")
    if array.size == 0 and not may_be_empty:
        raise Refused(f"array {key!r} of {short(name)} is empty", why=f"its shape is {array.shape}")
    return array
