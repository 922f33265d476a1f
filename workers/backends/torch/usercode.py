"""The user's code: where it is, what it works on, and how it is imported beside ours.

A child runs under `python -P`, so nothing of the current folder is found by accident. The unpacked
bundle is put in front of the path, as if its model file had been started by hand. A package of the
user's may be called `workers` or `farm` like ours: then ours leaves `sys.modules`, where only its
name was needed, and the bundle's is found instead, at once or in the middle of a step.
"""

import ast
import importlib
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Literal

from workers.backends import LoadFailed

Arrays = Literal["torch", "numpy"]

_OURS = ("workers", "farm")
# What was ours before a bundle took the names; kept alive, since functions of it still run.
_handed_over: dict[str, ModuleType] = {}


def works_on(ref: str, *, bundle: str) -> Arrays:
    """Return what a step function takes, by the imports of its code: tensors, or numpy arrays.

    It is numpy where the code imports numpy and nothing of torch, anywhere in the bundle or in
    the installed module; else torch. Nothing of the user's runs for it.
    """
    imported: set[str] = set()
    for path in _sources(ref, bundle):
        imported |= _imports(path)
    if any(name.startswith("torch") for name in imported):
        return "torch"
    return "numpy" if "numpy" in imported else "torch"


def fetch(ref: str, *, bundle: str) -> object:
    """Return what the reference names: `module:callable`, or `file.py:callable` in the bundle.

    Raises LoadFailed if the file or the name is not there; what the code raises passes through.
    """
    place, _, name = ref.rpartition(":")
    root = Path(bundle).resolve()
    file = _model_file(place, root) if place.endswith(".py") else None
    if bundle:
        _search_first([root] if file is None else list(dict.fromkeys([file.parent, root])))
    module = importlib.import_module(place) if file is None else _from_file(file, root)
    try:
        found: object = attrgetter(name)(module)
    except AttributeError as error:
        raise LoadFailed("model_error", f"{place} has no {name!r}") from error
    return found


def _model_file(place: str, root: Path) -> Path:
    path = (root / place).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        raise LoadFailed("model_error", f"the bundle has no file {place!r}")
    return path


def _sources(ref: str, bundle: str) -> Iterator[Path]:
    if bundle:
        yield from Path(bundle).rglob("*.py")
        return
    spec = find_spec(ref.rpartition(":")[0])
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        yield Path(spec.origin)


def _imports(path: Path) -> set[str]:
    """Return the top-level names that a file imports, at its top or inside its functions."""
    found: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the author's `"\d"` is reported when the file is imported
        tree = ast.parse(path.read_bytes(), filename=str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def _from_file(path: Path, root: Path) -> ModuleType:
    """Return the module of a file, which is run once: a model and its data may share one."""
    for loaded in map(sys.modules.get, (path.stem, _beside(path))):
        if loaded is not None and getattr(loaded, "__file__", None) == str(path):
            return loaded
    name = _module_name(path, root)
    if "." in name:
        return importlib.import_module(name)
    spec = spec_from_file_location(name, path)
    assert spec is not None, "a path that ends in .py always has a loader"
    assert spec.loader is not None, "a path that ends in .py always has a loader"
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _module_name(path: Path, root: Path) -> str:
    """Return the dotted name where the file lies in a package, so that relative imports work."""
    parts = [path.stem]
    folder = path.parent
    while folder != root and (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if len(parts) > 1:
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        return ".".join(parts)
    # a name of the standard library, or one that torch has loaded, stays what it is
    taken = path.stem in sys.modules or not path.stem.isidentifier()
    return _beside(path) if taken else path.stem


def _beside(path: Path) -> str:
    """Return the name of a file whose own is taken."""
    return "model_" + re.sub(r"\W", "_", path.stem)


def _search_first(folders: Sequence[Path]) -> None:
    _make_room(folders)
    # the bundle is shared by children, and stays as it was staged
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(folder) for folder in folders]
    importlib.invalidate_caches()


def _make_room(folders: Sequence[Path]) -> None:
    """Hand over each name of ours that the user's folders use as well."""
    names = {
        name
        for name in _OURS
        if any((folder / name).is_dir() or (folder / f"{name}.py").exists() for folder in folders)
    }
    if not names:
        return
    for each in [each for each in sys.modules if each.partition(".")[0] in names]:
        _handed_over[each] = sys.modules.pop(each)
    sys.meta_path.insert(0, _Bundle(names, folders))


class _Bundle(MetaPathFinder):
    """Find the handed-over names in the bundle alone, also where they are no regular package."""

    def __init__(self, names: set[str], folders: Sequence[Path]) -> None:
        self._names = names
        self._folders = [str(folder) for folder in folders]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname not in self._names:
            return None
        return PathFinder.find_spec(fullname, self._folders)
