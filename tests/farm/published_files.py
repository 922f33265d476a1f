"""The shape of every published document, as a file, and what may change about it.

`python -m tests.farm.published_files` writes the files of new kinds. `… NAME…` rewrites the file of
a kind that has grown, and says so; one that has changed in any other way is refused.

A shape is a JSON Schema without its descriptions: these may be worded better at any time.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from farm import published

FOLDER: Final = Path(__file__).parent.parent / "golden" / "answers"

Schema = dict[str, Any]

# Parts of a schema that are compared by what is in them, or that say nothing of a document.
_LOOKED_INTO: Final = frozenset(
    (
        *("$defs", "$ref", "$schema", "additionalProperties", "anyOf", "description", "enum"),
        *("items", "properties", "required", "title"),
    )
)


def shape(found: Any) -> Any:
    """The schema without its descriptions; a property of that name stays."""
    if isinstance(found, list):
        return [shape(each) for each in found]
    if not isinstance(found, dict):
        return found
    made = {}
    for key, each in found.items():
        if key in ("properties", "$defs"):
            made[key] = {name: shape(inside) for name, inside in each.items()}
        elif key != "description":
            made[key] = shape(each)
    return made


def breaks(old: Schema, new: Schema, *, kept: bool = False) -> list[str]:
    """What a reader of the old documents would trip over in the new ones, by its place.

    kept: the documents are kept, so old ones must fit the new schema too: nothing is required anew.
    """
    found = _Comparison(old.get("$defs", {}), new.get("$defs", {}), kept=kept)
    return list(found.breaks(old, new, ""))


class _Comparison:
    """Two schemas with their definitions; a pair of definitions is compared once."""

    def __init__(self, old: Schema, new: Schema, *, kept: bool) -> None:
        self._old, self._new, self._kept = old, new, kept
        self._done: set[tuple[str, str]] = set()

    def breaks(self, old: Schema, new: Schema, place: str) -> Iterator[str]:
        if "$ref" in old and "$ref" in new:
            pair = (old["$ref"], new["$ref"])
            if pair in self._done:
                return
            self._done.add(pair)
        old, new = self._followed(old, self._old), self._followed(new, self._new)
        yield from self._same(old, new, place)
        yield from self._values(old, new, place)
        yield from self._fields(old, new, place)
        for key in ("items", "additionalProperties"):
            inside = old.get(key), new.get(key)
            if all(isinstance(each, dict) for each in inside):
                yield from self.breaks(*inside, f"{place}[]")
            elif inside[0] != inside[1]:
                yield f"{place or '.'}: {key} changed"
        yield from self._branches(old.get("anyOf", []), new.get("anyOf", []), place)

    def _same(self, old: Schema, new: Schema, place: str) -> Iterator[str]:
        """What is not looked into must stay: the type, the tag, a default, a bound, a pattern."""
        for key in sorted({*old, *new} - _LOOKED_INTO):
            if old.get(key) != new.get(key):
                yield f"{place or '.'}: {key} {old.get(key)!r} became {new.get(key)!r}"

    def _values(self, old: Schema, new: Schema, place: str) -> Iterator[str]:
        if ("enum" in old) != ("enum" in new):
            yield f"{place or '.'}: the list of values came or went"
        elif gone := [each for each in old.get("enum", []) if each not in new["enum"]]:
            yield f"{place or '.'}: the values {gone} are gone"

    def _fields(self, old: Schema, new: Schema, place: str) -> Iterator[str]:
        fields = new.get("properties", {})
        for name, field in old.get("properties", {}).items():
            if name in fields:
                yield from self.breaks(field, fields[name], f"{place}.{name}")
            else:
                yield f"{place}.{name} is gone"
        was, now = set(old.get("required", [])), set(new.get("required", []))
        for name in sorted((was - now) & fields.keys()):
            yield f"{place}.{name} may be absent now"
        for name in sorted(now - was) if self._kept else ():
            yield f"{place}.{name} is required now"

    def _branches(self, old: list[Schema], new: list[Schema], place: str) -> Iterator[str]:
        if len(old) != len(new):
            yield f"{place or '.'}: {len(old)} types became {len(new)}"
        else:
            for one, other in zip(old, new, strict=True):
                yield from self.breaks(one, other, place)

    def _followed(self, found: Schema, inside: Schema) -> Schema:
        return inside[found["$ref"].rpartition("/")[2]] if "$ref" in found else found


def main(names: list[str], *, folder: Path = FOLDER) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    refused = 0
    for name in names or list(published.things()):
        path, new = folder / f"{name}.json", shape(published.json_schema(name))
        old = json.loads(path.read_text()) if path.exists() else None
        if old == new or (old is not None and not names):
            continue
        broken = breaks(old, new, kept=name in published.stored()) if old else []
        if broken:
            refused += 1
            sys.stdout.write(f"{name} is refused: {'; '.join(broken)}\n")
        else:
            path.write_text(json.dumps(new, indent=1) + "\n")
            sys.stdout.write(f"{name} {'has grown' if old else 'is new'}\n")
    return refused


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
