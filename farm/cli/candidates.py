"""What a shell offers where a model, a device, a file or a setting of a sweep stands."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from farm.cli.completing import Completer, offered

_SCRIPTS: Final = (".py",)
_MODELS: Final = (".py", ".onnx")
_TABLES: Final = (".csv", ".json")
_TRACES: Final = (".json", ".gz")


def _files(*endings: str) -> Completer:
    """Return a completer that offers the files with these endings, and the folders on the way."""

    @offered
    def complete(ctx: click.Context, incomplete: str) -> Iterator[str]:
        return _inside(incomplete, endings)

    return complete


arrays = _files(".npz")
comparable = _files(*_TABLES, ".gz")
layer_csv = _files(".csv")
picture = _files(".ppm", ".pgm", ".npy", ".npz", ".png", ".jpg", ".jpeg")
trace = _files(*_TRACES)
yaml_file = _files(".yaml", ".yml")


@offered
def model(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the zoo, ONNX files, Python files, and behind `FILE.py:` what the file defines."""
    yield from _zoo(incomplete)
    yield from _code(incomplete, _MODELS)


@offered
def subject(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer what `farm profile layers` takes: a model, or a file with layers."""
    yield from _zoo(incomplete)
    yield from _code(incomplete, (*_MODELS, *_TABLES))


@offered
def function(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer Python files, and behind `FILE.py:` what the file defines."""
    return _code(incomplete, _SCRIPTS)


@offered
def data(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the generated data, dataset files, and behind `FILE.py:` what the file defines."""
    yield from ("synthetic", "synthetic-400")
    yield from _code(incomplete, (*_SCRIPTS, ".yaml", ".yml"))


@offered
def spec(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the devices whose peaks are known, and `all`."""
    from farm import hardware

    yield "all"
    # A person writes `h100`, and the key begins with `H100`.
    shown = {key: incomplete + key[len(incomplete) :] for key in hardware.table()}
    yield from (said for key, said in shown.items() if key.lower().startswith(incomplete.lower()))


@offered
def device(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the words for where something computes."""
    yield from ("cpu", "cuda")


@offered
def category(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the categories that a kernel may have."""
    from farm.trace.analysis import kernels

    yield from kernels.categories()


@offered
def phase(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the phases that a step may have; a trace may have others."""
    from farm.trace.analysis import phases, tables

    yield from (*tables.ORDER, phases.UNPHASED, phases.UNATTRIBUTED)


@offered
def setting(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the keys behind `-S`, and the words that one of them takes."""
    from farm import models, presets
    from farm.schema import PRECISIONS
    from farm.sweep import axes, measuring

    words = {
        "measure.compat": presets.NAMES,
        "measure.effort": ("quick", "standard", "thorough"),
        "model": tuple(models.zoo()),
        "precision": PRECISIONS,
    }
    key, sign, _ = incomplete.partition("=")
    if sign:
        yield from (f"{key}={each}" for each in words.get(key, ()))
    else:
        yield from (f"{each}=" for each in axes.FIXED)
        yield from (f"measure.{each}=" for each in measuring.KEYS)


def _zoo(incomplete: str) -> Iterator[str]:
    from farm import models

    mark = "zoo:" if incomplete.startswith("zoo:") else ""
    yield from (f"{mark}{name}" for name in models.zoo())


def _code(incomplete: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield files, a Python one with the colon that a name follows, or the names in one."""
    from farm import imports

    place, colon, _ = incomplete.rpartition(":")
    if colon and place.endswith(_SCRIPTS):
        for node in imports.parsed(Path(os.path.expanduser(place))).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[:1] != "_":
                yield f"{place}:{node.name}"
        return
    for each in _inside(incomplete, endings):
        yield f"{each}:" if each.endswith(_SCRIPTS) else each


def _inside(incomplete: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the folders and the files with these endings in the folder that the word names."""
    folder, name = os.path.split(incomplete)
    with os.scandir(os.path.expanduser(folder) or ".") as found:
        entries = sorted((each.name, each.is_dir()) for each in found)
    for each, is_folder in entries:
        if each.startswith(".") and not name.startswith("."):
            continue
        if is_folder or each.endswith(endings):
            yield os.path.join(folder, each) + "/" * is_folder
