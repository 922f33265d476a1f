"""Where installed code lies, and which files it is made of; nothing is imported for it."""

import importlib.machinery
import sys
from pathlib import Path
from typing import Final

from farm import imports

OURS: Final = ("farm", "workers")
_FOLDER: Final = Path(__file__).parents[1]


def find(module: str) -> tuple[Path | None, Path | None]:
    """Return the file of an installed module and the folder that its name starts from.

    The parent of our own package comes first, so that a user's folder called `workers` in the
    current folder does not stand for ours.
    """
    top = module.split(".")[0]
    folders = [str(_FOLDER), *sys.path]
    spec = importlib.machinery.PathFinder.find_spec(top, folders)
    if spec is None:  # an editable install may bring its own finder
        specs = (finder.find_spec(top, None) for finder in sys.meta_path)
        spec = next((each for each in specs if each is not None), None)
    if spec is None:
        return None, None
    places = list(spec.submodule_search_locations or [])
    places += [] if places or not spec.has_location or not spec.origin else [spec.origin]
    for folder in (Path(each).parent for each in places):
        if (path := imports.locate(module, [folder])[1]) is not None:
            return path, folder
    return None, None


def sources(entry: Path, folder: Path) -> set[Path]:
    """Return our own code by what it imports, any other package by all of its sources.

    Following the imports of a large package takes many seconds, and nobody edits its files.
    """
    top = entry.relative_to(folder).parts[0]
    if top in OURS:
        return set(imports.closure(entry, root=folder, package=top))
    inside = folder / top
    return {entry, *inside.rglob("*.py")} if inside.is_dir() else {entry}
