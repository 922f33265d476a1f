"""What a person wrote: YAML as plain data, and the words for a mistake in it.

A document is read once into dicts, lists and scalars. Whoever checks it walks it with a `Place`,
which knows the file and the path (`matrix.precision[0]`), so every mistake is named the same way.
"""

import datetime
import hashlib
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import yaml
from msgspec import Struct

from farm.errors import Refused, did_you_mean

LIMIT_BYTES: Final = 256 * 1024
LIMIT_VALUES: Final = 100_000  # after aliases are followed: ten lines can stand for a billion
_HALF: Final = re.compile("[\ud800-\udfff]")
_TAGS: Final = ("str", "int", "float", "bool", "null", "timestamp", "merge", "map", "seq")


class Document(Struct, frozen=True, kw_only=True):
    """A file as it was read.

    name: as the person wrote it. flags: path of a value → the flag that set it over the file.
    """

    name: str
    data: dict[str, object]
    sha256: str
    flags: dict[str, str] = {}


class Place(Struct, frozen=True):
    """Where in a document a value stands; it words the mistakes made there."""

    document: Document
    path: str = ""

    def key(self, name: str) -> "Place":
        return Place(self.document, f"{self.path}.{name}" if self.path else name)

    def item(self, index: int) -> "Place":
        return Place(self.document, f"{self.path}[{index}]")

    def refused(
        self, what: str, *, known: Iterable[str] = (), why: str = "", hint: str = ""
    ) -> Refused:
        """Return the error to raise: the file or the flag, what is wrong, where, what is known."""
        words = f"known: {', '.join(known)}"
        parts = [f"at {self.path}" if self.path else "", why, words if words != "known: " else ""]
        why = "; ".join(each for each in parts if each)
        return Refused(f"{self._origin()}: {what}", why=why, hint=hint)

    def unknown(self, word: str, *, thing: str, known: Iterable[str]) -> Refused:
        """Return the error for a word that is none of the known ones, with the nearest as hint."""
        known = list(known)
        what = f"unknown {thing} {short(word)}"
        return self.refused(what, known=known, hint=did_you_mean(word[:100], known))

    def _origin(self) -> str:
        for path, flag in self.document.flags.items():
            if self.path == path or self.path.startswith((f"{path}.", f"{path}[")):
                return flag
        return self.document.name


def read(path: Path, *, name: str = "") -> Document:
    """Return the YAML file as plain data, its top level being a mapping.

    Raises Refused if it is not there, too large, not UTF-8, not safe YAML, has a key twice, or
    stands for more than `LIMIT_VALUES` values once its aliases are followed.
    """
    name = name or str(path)
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except FileNotFoundError as error:
        raise Refused(
            f"no file {short(name)}", hint=did_you_mean(path.name, _beside(path))
        ) from error
    except (OSError, ValueError) as error:
        raise Refused(f"cannot read {short(name)}", why=_reason(error)) from error
    if len(data) > LIMIT_BYTES:
        raise Refused(f"{name}: larger than {LIMIT_BYTES // 1024} KiB", why="not a file for people")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"{name}: not UTF-8", why=f"at byte {error.start}") from error
    plain = parse(text, name=name)
    if not isinstance(plain, dict):
        raise Refused(f"{name}: expected keys and values, got {kind_of(plain)}")
    document = Document(name=name, data=plain, sha256=hashlib.sha256(data).hexdigest())
    mapping(plain, Place(document))
    return document


def parse(text: str, *, name: str) -> object:
    """Return the one YAML value of the text as plain data; Refused as for `read`."""
    loader = yaml.SafeLoader("")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, loader, {}) > LIMIT_VALUES:
            raise Refused(
                f"{name}: more than {LIMIT_VALUES:,} values", why="once its aliases are followed"
            )
        plain: object = loader.construct_document(node)
        return plain
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise Refused(f"{name}: not readable as YAML", why=f"{where}{error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise Refused(f"{name}: not readable as YAML", why=why) from error
    except RecursionError as error:
        raise Refused(f"{name}: not readable as YAML", why="nested too deeply") from error
    finally:
        loader.dispose()


# ── what a value has to be ───────────────────────────────────────────────────────────────────────


def mapping(
    value: object, place: Place, *, known: Collection[str] | None = None
) -> dict[str, object]:
    """Return the value if it is a mapping with text keys, all of them known; else raise Refused."""
    if not isinstance(value, dict):
        raise place.refused(f"expected keys and values, got {kind_of(value)}")
    for key in value:
        if not isinstance(key, str):
            raise place.refused(f"key {key!r} is not text", hint=f'write "{key}" in quotes')
        if known is not None and key not in known:
            raise place.key(key).unknown(key, thing="key", known=known)
    return value


def items(value: object, place: Place) -> list[tuple[object, Place]]:
    """Return each item with its place; a scalar is a list of one. Raises Refused if empty."""
    if not isinstance(value, list):
        return [(value, place)]
    if not value:
        raise place.refused("an empty list")
    return [(each, place.item(index)) for index, each in enumerate(value)]


def text(value: object, place: Place, *, thing: str = "text", limit: int = 500) -> str:
    """Return the value if it is non-empty text of printable characters; else raise Refused."""
    if not isinstance(value, str):
        quote = f'write "{str(value).lower()}" in quotes' if isinstance(value, bool) else ""
        raise place.refused(f"expected {thing}, got {kind_of(value)}", hint=quote)
    if not value.strip() or len(value) > limit or not value.isprintable():
        raise place.refused(f"expected {thing}, got {short(value)}")
    return value


def whole(value: object, place: Place, *, low: int, high: int = 2**31 - 1) -> int:
    """Return the value if it is an integer from low to high; else raise Refused."""
    if isinstance(value, bool) or not isinstance(value, int):
        got = short(value) if isinstance(value, str | float) else kind_of(value)
        raise place.refused(f"expected a whole number, got {got}")
    if not low <= value <= high:
        bound = f"at least {low}" if value < low else f"at most {high}"
        raise place.refused(f"expected {bound}, got {short(value)}")
    return value


def one_of(
    value: object, place: Place, *, thing: str, known: Collection[str], later: Collection[str] = ()
) -> str:
    """Return the value if it is a known word; later: words of the full farm, refused as such."""
    word = text(value, place, thing=f"a {thing}")
    if word in known:
        return word
    if word in later:
        raise place.refused(f"{thing} {word!r} is not in this version", known=known)
    raise place.unknown(word, thing=thing, known=known)


def flag(value: object, place: Place) -> bool:
    """Return the value if it is true or false; else raise Refused."""
    if not isinstance(value, bool):
        got = short(value) if isinstance(value, str) else kind_of(value)
        raise place.refused(f"expected true or false, got {got}")
    return value


def kind_of(value: object) -> str:
    """Return what a value is, in words, for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.date):
        return f"the date {value}"
    if isinstance(value, int | float):
        return f"the number {short(value)}"
    kinds: dict[type, str] = {dict: "keys and values", list: "a list"}
    return kinds.get(type(value), short(value))


def short(value: object, *, limit: int = 60) -> str:
    """Return the value quoted, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number too long to show"
    quoted = repr(value[: limit * 2]) if isinstance(value, str) else repr(value)
    return quoted if len(quoted) <= limit else f"{quoted[: limit - 1]}…{quoted[0]}"


def _size(node: yaml.Node, loader: yaml.SafeLoader, seen: dict[int, int]) -> int:
    """Return for how many values a node stands; -1 in `seen` marks the ones being counted."""
    if id(node) in seen:
        if seen[id(node)] < 0:
            raise yaml.MarkedYAMLError(problem="an alias of itself", problem_mark=node.start_mark)
        return seen[id(node)]
    seen[id(node)] = -1
    _check_tag(node, loader)
    size = 1
    if isinstance(node, yaml.MappingNode):
        _check_keys(node)
        size += sum(_size(each, loader, seen) for pair in node.value for each in pair)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_size(each, loader, seen) for each in node.value)
    seen[id(node)] = size
    return size


def _check_tag(node: yaml.Node, loader: yaml.SafeLoader) -> None:
    """Refuse tags of other types, words that are tagged as what they are not, and no UTF-8.

    An escape can write half a character, which no document could say again.
    """
    if isinstance(node, yaml.ScalarNode) and _HALF.search(node.value):
        problem = f"{short(node.value)} holds half a character"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    fits = kind in _TAGS
    if fits and isinstance(node, yaml.ScalarNode) and kind != "str":
        fits = loader.resolve(yaml.ScalarNode, node.value, (True, False)) == node.tag  # type: ignore[no-untyped-call]
    if not fits:
        raise yaml.MarkedYAMLError(
            problem=f"the tag {short(node.tag)}", problem_mark=node.start_mark
        )


def _check_keys(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in seen:
                problem = f"the key {short(key.value)} is there twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add((key.tag, key.value))


def _beside(path: Path) -> list[str]:
    try:
        return sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return []


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or "") if isinstance(error, OSError) else str(error)
