"""Which files a model's code is made of: read from its syntax, nothing is imported.

A local import is one that resolves to a file below the root. Imports count wherever they stand,
inside functions too: a digest that misses a file would call two different models the same.
"""

import ast
import importlib.machinery
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from farm.errors import Refused

# As Python looks: compiled modules before sources.
_SUFFIXES: Final = (*importlib.machinery.EXTENSION_SUFFIXES, *importlib.machinery.SOURCE_SUFFIXES)


def closure(entry: Path, *, root: Path, package: str = "") -> list[Path]:
    """Return the entry and every local file that it imports, directly or not, sorted.

    Absolute imports are looked for beside the entry and in the root, relative ones from their own
    folder; the `__init__` files on the way count. package: follow absolute imports of this
    top-level package alone, "" for all. Raises Refused if a file cannot be read or parsed.
    """
    folders = [root] if package else list(dict.fromkeys([entry.parent, root]))
    found: set[Path] = set()
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting += _inits(path, root)
        for name, level in _imports_of(path):
            if level:
                base = path.parents[min(level, len(path.parents)) - 1]
                waiting += locate(name, [base])[0] if base.is_relative_to(root) else []
            elif package in ("", name.split(".")[0]):
                waiting += locate(name, folders)[0]
    return sorted(found)


def locate(name: str, folders: Sequence[Path]) -> tuple[list[Path], Path | None]:
    """Return the files that importing the dotted name runs, and the file of the name itself.

    The search ends at the first part that is not below the folders; then, and for a folder without
    `__init__`, the name has no file: None.
    """
    files: list[Path] = []
    path = None
    for part in name.split("."):
        path = next((each for folder in folders if (each := _file(folder, part))), None)
        if path is None:
            folders = [folder / part for folder in folders if os.path.isdir(folder / part)]
        else:
            files.append(path)
            folders = [path.parent] if path.name.startswith("__init__.") else []
        if path is None and not folders:
            break
    return files, path


def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file; Refused with the line where it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the author's `"\d"` is not our reader's business
            return ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        line = f" on line {error.lineno}" if error.lineno else ""
        raise Refused(f"{path}: not Python{line}", why=str(error.msg)) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"{path}: not Python", why=str(error) or "nested too deeply") from error
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error


def offered(tree: ast.Module) -> tuple[list[str], bool]:
    """Return the names that a module binds at its top level, definitions before imports.

    The flag says that the list is open: the module imports `*` or answers names by `__getattr__`.
    """
    own: list[str] = []
    taken: list[str] = []
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.append(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            taken += [each.asname or each.name.split(".")[0] for each in node.names]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            own += _targets(node)
        else:
            waiting = [*_statements(node), *waiting]
    return list(dict.fromkeys([*own, *taken])), "*" in taken or "__getattr__" in own


def _file(folder: Path, part: str) -> Path | None:
    if not part.isidentifier():
        return None
    for stem in (folder / part / "__init__", folder / part):
        for suffix in _SUFFIXES:
            path = stem.with_name(stem.name + suffix)
            if os.path.isfile(path):  # False where one may not look
                return path
    return None


def _inits(path: Path, root: Path) -> list[Path]:
    between = path.relative_to(root).parents
    packages = [root / each / "__init__.py" for each in between if each != Path()]
    return [each for each in packages if each.is_file()]


def _imports_of(path: Path) -> list[tuple[str, int]]:
    if path.suffix != ".py":
        return []
    return [each for node in ast.walk(parsed(path)) for each in _imported(node)]


def _imported(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (dotted name, level); `from x import y` gives `x.y`, whatever y turns out to be."""
    if isinstance(node, ast.Import):
        yield from ((each.name, 0) for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        for each in node.names:
            parts = [node.module or "", "" if each.name == "*" else each.name]
            yield ".".join(part for part in parts if part), node.level
    elif isinstance(node, ast.Call) and node.args:
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        first = node.args[0]
        if called not in ("import_module", "__import__") or not isinstance(first, ast.Constant):
            return
        if isinstance(first.value, str) and (name := first.value.lstrip(".")):
            yield name, len(first.value) - len(name)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = (each for target in targets for each in ast.walk(target))
    return [
        each.id for each in names if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]


def _statements(node: ast.AST) -> list[ast.stmt]:
    """Return the statements inside an `if`, `try`, `with`, `for` or `match`, in order."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            found += _statements(child)
    return found
