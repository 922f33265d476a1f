"""Arrays by name in one file, as `numpy.load` reads them, whatever the names are.

`numpy.savez` takes the names as keywords beside its own: no array may be called `file` or
`allow_pickle` there, and one called so ends as a TypeError or as an option.
"""

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

_ENDING: Final = ".npy"
_LONGEST: Final = 60_000  # bytes of a name: a ZIP counts them in 16 bits


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


def _check(arrays: "Arrays") -> None:
    for name, each in arrays.items():
        if each.dtype.hasobject:
            raise ValueError(f"array {name[:100]!r} holds objects, not numbers")
        # A name ends at a NUL in a ZIP; half a character (UnicodeEncodeError) is a ValueError too.
        if "\0" in name or len(name.encode()) > _LONGEST:
            raise ValueError(f"no file in an archive can be called {name[:100]!r}")
        if name + _ENDING in arrays:  # numpy takes the one for the file of the other
            raise ValueError(f"arrays {name[:100]!r} and {name[:100] + _ENDING!r} look alike")
