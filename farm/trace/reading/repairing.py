"""An event whose text is no JSON, mended where what is wrong with it is known."""

import re
from collections.abc import Callable
from typing import Final

from farm.trace.reading.events import Event, lenient
from farm.trace.reading.tally import Tally

# What a string may hold, so that the rules below leave what stands in one alone.
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_NON_FINITE: Final = re.compile(
    _STRING + r"|(?P<word>[-+]?\b(?:nan|inf(?:inity)?|n/?a)\b)", re.IGNORECASE | re.DOTALL
)
_COMMA: Final = re.compile(_STRING + r"|(?P<word>,(?=\s*[,}\]]))", re.DOTALL)
_ESCAPE: Final = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<word>\\)')
_CONTROL: Final = re.compile(r"[\x00-\x1f]+")
_WHITE: Final = re.compile(r"[\t\n\r]+")


def mended(text: bytes, tally: Tally) -> Event | None:
    """Return the event that a damaged text still means, and count what was mended.

    None where it means none; nothing is counted then.
    """
    trial = Tally()
    found = text.decode("utf-8", "replace")
    trial.repair("utf8", found.encode() != text)
    for name, rule in _RULES.items():
        changed = rule(found)
        trial.repair(name, changed != found and (name != "control" or not _is_white(found)))
        found = changed
    try:
        event = lenient(found.encode(), trial)
    except (ValueError, RecursionError):
        return None
    if event is not None:
        for name, times in trial.repaired.items():
            tally.repair(name, times)
    return event


def _is_white(text: str) -> bool:
    """Tell if the control characters of a text all stand between its words, as they may."""
    strings = re.findall(_STRING, text, re.DOTALL)
    outside = re.sub(_STRING, "", text, flags=re.DOTALL)
    return not any(map(_CONTROL.search, strings)) and not _CONTROL.search(_WHITE.sub("", outside))


def _without_control(text: str) -> str:
    """Return it without control characters; a line end inside a string becomes a space."""
    return _CONTROL.sub(lambda run: " " if _WHITE.fullmatch(run[0]) else "", text)


def _with_escapes(text: str) -> str:
    """Return it with a backslash that escapes nothing, as in a path of Windows, doubled."""
    return _ESCAPE.sub(lambda found: r"\\" if found["word"] else found[0], text)


def _finite(text: str) -> str:
    return _NON_FINITE.sub(lambda found: "null" if found["word"] else found[0], text)


def _without_commas(text: str) -> str:
    return _COMMA.sub(lambda found: "" if found["word"] else found[0], text)


# In this order: a string is only told once what is in it is mended.
_RULES: Final[dict[str, Callable[[str], str]]] = {
    "control": _without_control,
    "escape": _with_escapes,
    "non_finite": _finite,
    "structure": _without_commas,
}
