"""Names that people give to runs: `tags/<name>.json`, the one document of a run that may change.

A tag points at a run as `base` or `release-2`; what it pointed at before is not kept.
"""

import re
from typing import Final, NamedTuple

from farm import schema
from farm.errors import Bad, Refused
from farm.schema import Tag
from farm.store import Conflict, NotFound, Store, tag_key

_FOLDER: Final = "tags/"
_NAME: Final = re.compile(r"(?!r-)[a-z0-9][a-z0-9_-]{0,63}")


class Tags(NamedTuple):
    """Tags by name, in the order of the names, and what is wrong with the damaged ones."""

    run_ids: dict[str, str]
    damaged: dict[str, Bad]


def is_name(word: str) -> bool:
    """Return whether a tag can have this name; no id of a run and no `@last` can."""
    return _NAME.fullmatch(word) is not None


def check_name(word: str) -> None:
    """Raise Refused for a name that no tag can have."""
    if not is_name(word):
        raise Refused(
            f"{word!r} is no name of a tag",
            why="up to 64 of a-z, 0-9, _ and -, from a letter or digit on; not `r-…`, as runs are",
        )


def read(store: Store) -> Tags:
    """Return every tag of the store; a damaged one hides no other."""
    found = Tags({}, {})
    for entry in store.list(_FOLDER):
        name = entry.key.removeprefix(_FOLDER).removesuffix(".json")
        try:
            found.run_ids[name] = _decoded(store, name)
        except Bad as error:
            found.damaged[name] = error
        except NotFound:
            continue  # somebody took it away between the listing and the reading
    return found


def pointed(store: Store, name: str) -> str | None:
    """Return the id of the run that a tag points at, None if there is no such tag.

    Raises Bad if the tag is damaged.
    """
    if not is_name(name):
        return None
    try:
        return _decoded(store, name)
    except NotFound:
        return None


def point(store: Store, name: str, run_id: str) -> str:
    """Make a tag point at a run, and return the id that it pointed at before, "" for none.

    Of two writers at once the later one wins: a lost race is repeated once, then Conflict is
    raised. Raises Refused for a name that no tag can have.
    """
    check_name(name)
    try:
        return _swapped(store, name, run_id)
    except Conflict:
        return _swapped(store, name, run_id)


def _swapped(store: Store, name: str, run_id: str) -> str:
    key = tag_key(name)
    # The etag first: if the tag changes after that, the swap fails, and `before` is told to nobody.
    etag = next((each.etag for each in store.list(key) if each.key == key), None)
    try:
        before = pointed(store, name) or ""
    except Bad:
        before = ""  # a damaged tag points nowhere; this mends it
    store.swap(key, schema.encode(Tag(run_id=run_id)), expect=etag)
    return before


def _decoded(store: Store, name: str) -> str:
    try:
        return schema.decode(store.get(tag_key(name)), Tag).run_id
    except Bad as error:
        hint = f"`farm tag {name} RUN` sets it anew"
        raise Bad(f"tag {name!r} is damaged", why=str(error), hint=hint) from error
