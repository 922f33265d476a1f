"""Two system cards side by side: what differs, and whether that makes another system of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from farm import answers, profiles, schema
from farm.errors import Bad, NoResult, Refused
from farm.report import words
from farm.report.table import Column, Datum, Table
from farm.schema import Profile, SystemCard
from farm.store import NotFound, Store, card_key

_ID: Final = re.compile(r"[0-9a-f]{64}")
_LIMIT_BYTES: Final = 4 << 20
_FORMS: Final = "a file of `farm-worker card`, the id of a card, a profile, or a node"
# What says when a card was made, and what follows from the rest.
_PASSING: Final = ("node.collected_at", "system_id", "system_class", "schema")


def find(store: Store, word: str, *, root: Path) -> SystemCard:
    """Return the card that a word means: a file, an id of a card, a profile's, a node's newest.

    A profile is named as everywhere, by its id, RUN/LABEL or a job. Raises Refused for a word that
    is none of these, NoResult where nothing is found, Bad for a file that is no card.
    """
    if (root / word).is_file():
        return _of_file(root / word, word)
    if _ID.fullmatch(word):
        try:
            return _stored(store, word)
        except NotFound:
            pass  # a profile may be named by 64 digits as well
    if "/" in word or re.fullmatch(r"[0-9a-f]{6,64}", word):
        try:
            return _of_profile(store, profiles.find(store, word).profile)
        except NoResult:
            if "/" in word:
                raise
    return _of_node(store, word)


def _of_file(path: Path, word: str) -> SystemCard:
    try:
        with path.open("rb") as file:
            data = file.read(_LIMIT_BYTES + 1)
    except OSError as error:
        raise Refused(f"cannot read {word!r}", why=error.strerror or "") from error
    if len(data) > _LIMIT_BYTES:
        raise Bad(f"{word!r} is no system card", why="it is larger than any")
    try:
        return schema.decode(data, SystemCard)
    except Bad as error:
        raise Bad(f"{word!r} is no system card", why=error.why or error.what) from error


def _stored(store: Store, card_id: str) -> SystemCard:
    return schema.decode(store.get(card_key(card_id), sha256=card_id), SystemCard)


def _of_node(store: Store, word: str) -> SystemCard:
    from datetime import UTC, datetime

    found = profiles.listed(
        store, [f"node={word}"], since=None, all_attempts=True, now=datetime.now(UTC)
    ).rows
    if not found:
        raise NoResult(f"no card of {word!r} in the store", why=f"a card is named by {_FORMS}")
    return _of_profile(store, found[0].profile)


def _of_profile(store: Store, profile: Profile) -> SystemCard:
    try:
        return _stored(store, profile.card_id)
    except NotFound as error:
        what = f"the card of {profile.execution.node} is not in the store"
        raise NoResult(what, why=f"its profile names {profile.card_id[:12]}") from error


def differences(a: SystemCard, b: SystemCard) -> list[answers.CardDifference]:
    """Return every leaf that the cards do not share, in the order of the schema.

    changes_system: it is part of what `system_id` is made of, so that what was measured under the
    one is measured again under the other.
    """
    left, right = (dict(_leaves(msgspec.to_builtins(each))) for each in (a, b))
    return [
        answers.CardDifference(
            path=path,
            a=_said(left, path, a),
            b=_said(right, path, b),
            changes_system=path.startswith("stable."),
        )
        for path in dict.fromkeys((*left, *right))
        if left.get(path) != right.get(path)
        and path not in _PASSING
        and not path.startswith("null_reasons.")
    ]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        inside = list(enumerate(value))
    else:
        yield path, value
    for key, each in inside:
        yield from _leaves(each, f"{path}.{key}" if path else str(key))


def _said(leaves: dict[str, Any], path: str, card: SystemCard) -> str:
    """Return a value in words: a null with its reason, and what a card lacks as a dash."""
    if path not in leaves:
        return words.UNKNOWN
    value = leaves[path]
    if value is None:
        return f"{words.UNKNOWN} ({card.null_reasons.get(path, 'unknown')})"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def table(found: list[answers.CardDifference], names: tuple[str, str]) -> Table:
    """Return the differences for a person, what makes another system first."""
    columns = (Column("what"), Column(names[0], cut=True), Column(names[1], cut=True))
    ordered = sorted(found, key=lambda each: not each.changes_system)
    rows = tuple(
        (
            Datum(
                each.path.removeprefix("stable."), each.path, "warn" if each.changes_system else ""
            ),
            Datum(each.a, each.a),
            Datum(each.b, each.b),
        )
        for each in ordered
    )
    return Table("", columns, rows)


def verdict(a: SystemCard, b: SystemCard, found: list[answers.CardDifference]) -> str:
    """Return in a sentence what the differences mean for measurements."""
    if a.system_id == b.system_id:
        same = "one system: what was measured under the one counts under the other"
        return same if found else f"{same}; the cards say the same"
    if a.system_class == b.system_class:
        return f"two systems of one class, {a.system_class}: the later one is measured again"
    return f"two classes: {a.system_class} and {b.system_class}"
