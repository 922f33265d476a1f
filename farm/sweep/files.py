"""Sweep files as they are read, with what `--set` says over them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from farm import reading
from farm.errors import Refused
from farm.reading import Document, Place

KEYS: Final = (
    "name",
    "matrix",
    "exclude",
    "include",
    "measure",
    "inputs",
    "item",
    "kind",
    "backend_options",
    "exclusive",
    "tags",
)


class Sweep(Struct, frozen=True, kw_only=True):
    """One file of a command: what it says, and the folders that its references start from."""

    document: Document
    beside: Path
    root: Path


def load(paths: Sequence[Path | str], sets: Sequence[str] = (), *, root: Path) -> list[Sweep]:
    """Return the sweeps of the files, each with every `KEY=VALUE` of sets applied.

    root: the current folder; relative paths start there. A key is a dotted path (`measure.effort`),
    or the bare name of an axis. Raises Refused for anything unreadable and for unknown keys.
    """
    if not paths:
        raise Refused("no sweep is named", hint="farm run configs/sweeps/quickstart.yaml")
    found = []
    for path in paths:
        if not str(path):
            raise Refused("a sweep without a name", hint="name a file: farm run SWEEP.yaml")
        document = reading.read(root / path, name=str(path))
        for each in sets:
            document = _with(document, each)
        reading.mapping(document.data, Place(document), known=KEYS)
        found.append(Sweep(document=document, beside=(root / path).parent, root=root))
    return found


def _with(document: Document, assignment: str) -> Document:
    key, equals, value = assignment.partition("=")
    flag = f"-S {reading.short(assignment)[1:-1]}"
    path = key.strip().split(".")
    if not equals or not all(part and part.isprintable() for part in path):
        raise Refused(f"{flag}: expected KEY=VALUE", hint="for example -S measure.effort=quick")
    if "[" in key:
        raise Refused(f"{flag}: lists are set whole", hint="for example -S batch=1,8")
    if len(path) == 1 and path[0] not in KEYS:
        path = ["matrix", *path]
    blamed = Place(msgspec.structs.replace(document, name=flag, flags={}))
    if path[0] not in KEYS:
        raise blamed.key(path[0]).unknown(path[0], thing="key", known=KEYS)
    data = _set(document.data, path, _parsed(value, path, flag), blamed)
    flags = {**document.flags, ".".join(path): flag}
    return msgspec.structs.replace(document, data=data, flags=flags)


def _parsed(value: str, path: list[str], flag: str) -> object:
    """Return the value as YAML; for an axis `1,8` is a list."""
    value = value.strip()
    if len(path) == 2 and path[0] == "matrix" and not value.startswith(("[", "{")):
        return [reading.parse(each.strip(), name=flag) for each in value.split(",")]
    return reading.parse(value, name=flag)


def _set(data: object, path: list[str], value: object, place: Place) -> dict[str, object]:
    inner = {} if data is None else reading.mapping(data, place)
    key, *rest = path
    if rest:
        value = _set(inner.get(key), rest, value, place.key(key))
    return {**inner, key: value}
