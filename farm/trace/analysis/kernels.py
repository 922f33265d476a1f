"""What a kernel does, and whether it uses matrix units, by the rules of `categories.toml`."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple

Unit = Literal["yes", "no", "unknown"]
OTHER: Final = "other"
_MATRIX: Final = ("gemm", "attention")  # no other kind of work can use a matrix unit
_ANONYMOUS: Final = "(anonymous namespace)"
_CUTLASS: Final = re.compile(r"cutlass\w*::(?:device_)?kernel\d*")
_OPEN, _CLOSE = "<(", ">)"


class Kind(NamedTuple):
    """category: one of `categories`. unit: whether a matrix unit did it, as far as names tell."""

    category: str
    unit: Unit


@cache
def kind(name: str) -> Kind:
    """Return what a kernel of this name does; the work grows with the length of the name."""
    full = name.lower()
    core = core_name(full)
    rules = _rules()
    category = OTHER
    for each in rules.categories:
        if each.pattern.search(core if each.in_core else full):
            category = each.word
            break
    if category == OTHER:
        return Kind(category, "unknown")
    if category not in _MATRIX:
        return Kind(category, "no")
    for word, pattern in rules.units:
        if pattern.search(core):
            return Kind(category, word)
    return Kind(category, "unknown")


def categories() -> tuple[str, ...]:
    """Return all categories, as the rules name them first, and `other` last."""
    return (*dict.fromkeys(each.word for each in _rules().categories), OTHER)


def core_name(full: str) -> str:
    """Return what a name in lower case says the kernel is: without templates and arguments.

    The last word of what is left counts, which drops a return type. A name that is mangled stays
    whole; of a generic CUTLASS kernel the first template argument tells what it is.
    """
    if full.startswith("_z"):
        return full
    plain, argument = _outside(full.replace(_ANONYMOUS, ""))
    words = plain.split()
    core = words[-1] if words else ""
    return argument if _CUTLASS.fullmatch(core) and argument else core


def _outside(text: str) -> tuple[str, str]:
    """Return what stands outside of brackets, and the first argument of the first template.

    A bracket that nothing closes is text, and so is one that closes nothing.
    """
    partner = _partners(text)
    plain: list[str] = []
    argument, at = "", 0
    while at < len(text):
        end = partner.get(at)
        if end is None:
            plain.append(text[at])
            at += 1
            continue
        if text[at] == "<" and not argument:
            argument = _first(text, at + 1, end, partner)
        at = end + 1
    return "".join(plain), argument


def _partners(text: str) -> dict[int, int]:
    """Return for each bracket that is closed where that is."""
    found: dict[int, int] = {}
    waiting: list[int] = []
    for at, each in enumerate(text):
        if each in _OPEN:
            waiting.append(at)
        elif each in _CLOSE and waiting and _OPEN.index(text[waiting[-1]]) == _CLOSE.index(each):
            found[waiting.pop()] = at
    return found


def _first(text: str, begin: int, end: int, partner: dict[int, int]) -> str:
    at = begin
    while at < end and text[at] != ",":
        at = partner.get(at, at) + 1
    return text[begin:at].strip()


class _Rule(NamedTuple):
    word: str
    pattern: re.Pattern[str]
    in_core: bool


class _Rules(NamedTuple):
    categories: tuple[_Rule, ...]
    units: tuple[tuple[Unit, re.Pattern[str]], ...]


@cache
def _rules() -> _Rules:
    found = tomllib.loads((files(__package__) / "categories.toml").read_text())
    return _Rules(
        tuple(
            _Rule(each["is"], re.compile(each.get("core") or each["name"]), "core" in each)
            for each in found["category"]
        ),
        tuple((each["is"], re.compile(each["core"])) for each in found["matrix_unit"]),
    )
