"""The arrays of an NPZ: each read once, so that a damaged file is found before anything starts."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farm import npz
from farm.errors import Refused, did_you_mean
from farm.reading import short

if TYPE_CHECKING:
    from numpy.typing import NDArray


def load(
    file: Path, *, name: str | None = None, may_be_empty: bool = False
) -> "dict[str, NDArray[Any]]":
    """Return the arrays of an NPZ by name, in their order and the byte order of this machine.

    name: of the file, as somebody wrote it. may_be_empty: arrays may be without elements. Raises
    Refused if there is no such file, with the nearest one, as `npz.read` does for what cannot be
    read, and if it holds no array or one without elements.
    """
    name = str(file) if name is None else name
    if not name:
        raise Refused("an NPZ without a name", hint="name a file that numpy.savez wrote")
    try:
        with file.open("rb") as opened:
            found = npz.read(opened, called=short(name))
    except FileNotFoundError as error:
        near = sorted(each.name for each in file.parent.glob("*.npz"))
        raise Refused(f"no file {short(name)}", hint=did_you_mean(file.name, near)) from error
    except (OSError, ValueError) as error:  # a name may hold what no file can be called
        why = (error.strerror or "") if isinstance(error, OSError) else str(error)
        raise Refused(f"cannot read {short(name)}", why=why) from error
    if not found:
        raise Refused(f"{short(name)} holds no array")
    for key, array in found.items():
        if array.size == 0 and not may_be_empty:
            what = f"array {short(key)} of {short(name)} is empty"
            raise Refused(what, why=f"its shape is {array.shape}")
    return found


def digest(file: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
