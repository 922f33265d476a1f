"""A file that a person named, written whole or not at all.

A link is followed, and what is no plain file (`/dev/null`, a pipe) is written into: to rename over
either would destroy it.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from farm.errors import Refused


def write(
    path: Path, pieces: Iterable[bytes], *, trial: bool = False, makes_folder: bool = True
) -> None:
    """Write the pieces as they come; none of them is kept in memory.

    trial: only see that it could be written. makes_folder: what is missing of its folder is made.
    Raises Refused if it cannot be written.
    """
    partial: Path | None = None
    try:
        real = Path(os.path.realpath(path))
        if not path.name or real.is_dir():
            raise Refused(f"cannot write {str(path)!r}", why="it is a folder")
        if makes_folder:
            real.parent.mkdir(parents=True, exist_ok=True)
        if real.exists() and not real.is_file():
            if not trial:
                _fill(real, pieces)
            return
        partial = real.with_name(f".{real.name[:100]}.{os.getpid()}.tmp")
        _fill(partial, pieces)
        if not trial:
            partial.rename(real)
    except OSError as error:
        raise Refused(f"cannot write {str(path)!r}", why=error.strerror or "") from error
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _fill(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        for each in pieces:
            file.write(each)
