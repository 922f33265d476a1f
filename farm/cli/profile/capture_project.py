"""Where the files of a capture go: a folder for each trial, and one capture at a time."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from itertools import count
from pathlib import Path
from typing import Final, Literal, NamedTuple

from farm.errors import Refused
from farm.writing import write

Say = Callable[[str], None]
PROFILE: Final = "profile.json"
TRACE: Final = "profile_trace.json"
_NAMES: Final = {"run": ("prof", "profile_repeat.json"), "infer": ("infer", "infer_repeat.json")}


class Project(NamedTuple):
    """The folders of the trials of one capture. whole: the document of all, for several of them."""

    root: Path
    name: str
    folders: Sequence[Path]
    whole: Path

    @property
    def files(self) -> list[Path]:
        """Every file that the capture will write."""
        found = [folder / name for folder in self.folders for name in (TRACE, PROFILE)]
        return [*found, self.whole] if len(self.folders) > 1 else found


def project(root: Path, kind: Literal["run", "infer"], *, repeat: int) -> Project:
    """Return where a capture of so many trials goes: `prof`, or `prof_0`, `prof_1` and so on."""
    name, whole = _NAMES[kind]
    names = [name] if repeat == 1 else [f"{name}_{each}" for each in range(repeat)]
    return Project(root, name, [root / each for each in names], root / whole)


@contextmanager
def held(here: Project) -> Iterator[None]:
    """Hold a project, in which every file can be written, for one capture alone.

    No folder that was made for it stays behind empty. Raises Refused where a file cannot be
    written, or another capture writes them already.
    """
    folders = dict.fromkeys(each.parent for each in here.files)
    new = [each for folder in folders for each in (folder, *folder.parents) if not each.exists()]
    try:
        for each in here.files:
            if each.exists() and not each.is_file():  # such as a pipe, which would be waited for
                raise Refused(f"cannot write {str(each)!r}", why="it is no file")
            write(each, (), trial=True)
        handle = os.open(here.root, os.O_RDONLY)
        try:
            _lock(handle, here.root)
            yield
        finally:
            os.close(handle)
    finally:
        for each in sorted(set(new), key=lambda path: -len(path.parts)):
            with suppress(OSError):  # what was written lies in there
                each.rmdir()


def _lock(handle: int, root: Path) -> None:
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError as error:
        what = f"another capture writes into {str(root)!r}"
        raise Refused(what, hint="--project names another folder") from error
    except OSError:  # a file system without locks
        return


def clear(here: Project, say: Say) -> None:
    """Remove the trials of an earlier capture that had more of them."""
    for number in count(len(here.folders)):
        folder = here.root / f"{here.name}_{number}"
        if not folder.is_dir():
            return
        for name in (TRACE, PROFILE):
            drop(folder / name, say)
        with suppress(OSError):  # somebody keeps other things in there
            folder.rmdir()


def drop(path: Path, say: Say) -> None:
    """Remove a file of an earlier capture, if it is there."""
    if path.is_file():
        path.unlink()
        say(f"removed {path}, which was of an earlier capture")


def put(path: Path, pieces: Iterable[bytes], say: Say) -> None:
    """Write a file of this capture, whole or not at all."""
    was = path.exists()
    write(path, pieces)
    say(f"{'replaced' if was else 'wrote'} {path}")
