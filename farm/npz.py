"""Arrays by name in one file, as numpy packs them, whatever the names are and the damage is.

`numpy.savez` takes the names as keywords beside its own: no array may be called `file` or
`allow_pickle` there, and one called so ends as a TypeError or as an option. `numpy.load` answers
damage with exceptions of many types, and takes the last of two arrays of one name.
"""

import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from farm.errors import FarmError, Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

_ENDING: Final = ".npy"
_LONGEST: Final = 60_000  # bytes of a name: a ZIP counts them in 16 bits
_BEGINS: Final = b"PK\x03\x04"
_PACKED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # how numpy does it
_ENCRYPTED: Final = 1  # of the flags of a member
# What reading raises, and numpy's parser of a header: it takes Python's words, whoever wrote them.
_UNREADABLE: Final = (
    *(ArithmeticError, EOFError, LookupError, OSError, RuntimeError, SyntaxError, TypeError),
    *(ValueError, tokenize.TokenError),
)


def read(
    file: IO[bytes], *, called: str, raises: type[FarmError] = Refused
) -> "dict[str, NDArray[Any]]":
    """Return every array by its name, in the order of the file and the byte order of this machine.

    called: the file in words, for a message. Arrays may be empty, and there may be none. No pickle
    is ever opened. Raises an error of the type `raises` if it is no NPZ, is damaged, encrypted or
    cut off, or holds objects, two arrays of one name or anything else than arrays.
    """
    found: dict[str, NDArray[Any]] = {}
    try:
        _check_kind(file, called, raises)
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(_ENDING)
                if name in found:
                    raise raises(f"{called} holds two arrays {name[:100]!r}")
                found[name] = _member(archive, member, called, raises)
    except (zipfile.BadZipFile, zlib.error) as error:
        raise raises(f"{called} is damaged", why=str(error)[:200]) from error
    except _UNREADABLE as error:
        why = (error.strerror or "") if isinstance(error, OSError) else str(error)
        raise raises(f"cannot read {called}", why=" ".join(why.split())[:200]) from error
    return found


def save(path: Path, arrays: "Arrays", *, compressed: bool = False) -> None:
    """Write the arrays into a file of the program's own, whole or not at all.

    Raises ValueError as `write`, OSError if the disk will not have it; nothing is left then.
    """
    partial = path.with_name(f".{path.name}.tmp")
    try:
        with partial.open("wb") as out:
            write(out, arrays, compressed=compressed)
        partial.rename(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def write(out: IO[bytes], arrays: "Arrays", *, compressed: bool = False) -> None:
    """Write the arrays so that `numpy.load` gives each back under its name; equal ones alike.

    Raises ValueError before the first byte for an array of objects, which only code could read
    back, and for a name that an archive cannot hold or that is told from no other.
    """
    import numpy as np

    _check(arrays)
    how = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, each in arrays.items():
            # Its size is not known before, so it may need more than 2 GiB.
            with archive.open(name + _ENDING, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(each), allow_pickle=False)


def _check_kind(file: IO[bytes], called: str, raises: type[FarmError]) -> None:
    """Raise unless it is a zip with its end: an NPZ that was cut off has only the start."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        if file.read(4) == _BEGINS:
            raise raises(f"{called} is damaged", why="its end is missing")
        raise raises(f"{called} is not an NPZ", hint="numpy.savez writes one")
    file.seek(0)


def _member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, called: str, raises: type[FarmError]
) -> "NDArray[Any]":
    import numpy as np

    name = member.filename.removesuffix(_ENDING)[:100]
    if member.flag_bits & _ENCRYPTED:
        raise raises(f"cannot read {called}", why=f"{name!r} is encrypted")
    if member.compress_type not in _PACKED:
        raise raises(f"cannot read {called}", why=f"{name!r} is packed as numpy packs nothing")
    magic = np.lib.format.MAGIC_PREFIX
    with archive.open(member) as opened:
        if opened.read(len(magic)) != magic:
            raise raises(f"{called} holds {member.filename[:100]!r}, which is no array")
    try:
        # numpy warns of headers that Python 2 wrote, and reads them.
        with archive.open(member) as opened, warnings.catch_warnings(action="ignore"):
            array: NDArray[Any] = np.lib.format.read_array(opened, allow_pickle=False)
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    except MemoryError as error:
        why = "it claims more than this machine has"
        raise raises(f"array {name!r} of {called} does not fit here", why=why) from error
    except ValueError as error:
        if "allow_pickle" not in str(error) or "Object" not in str(error):
            raise
        why = "they would be a pickle, which may run code"
        raise raises(f"array {name!r} of {called} holds objects", why=why) from error


def _check(arrays: "Arrays") -> None:
    for name, each in arrays.items():
        if each.dtype.hasobject:
            raise ValueError(f"array {name[:100]!r} holds objects, not numbers")
        # A name ends at a NUL in a ZIP; half a character (UnicodeEncodeError) is a ValueError too.
        if "\0" in name or len(name.encode()) > _LONGEST:
            raise ValueError(f"no file in an archive can be called {name[:100]!r}")
        if name + _ENDING in arrays:  # numpy takes the one for the file of the other
            raise ValueError(f"arrays {name[:100]!r} and {name[:100] + _ENDING!r} look alike")
