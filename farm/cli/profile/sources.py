"""What TRACE may be: a file, the id of a profile or job with a trace, or an object of a store."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from farm.cli.talk import Talk
from farm.errors import NoResult, Refused
from farm.reading import short

if TYPE_CHECKING:
    from farm.store import Store
    from farm.trace.importing.record import LayerProfile
    from farm.trace.opening import Opened

_ID: Final = re.compile("[0-9a-f]{6,64}")
_OF_RUN: Final = re.compile(r"(?:@[^/]+|r-[0-9a-f-]{6,})/.+")
_SHORT: Final = re.compile("[0-9a-f]{1,5}")
_RUN: Final = re.compile(r"@[^/]+|r-[0-9a-f-]{6,}")
_KEPT: Final = "profile.json"
_REPEATED: Final = "*_repeat.json"
_OBJECT: Final = re.compile(r"(?P<store>.+?)/(?P<key>(?:blobs|inbox)/v1/[^?#]+)(?P<options>\?.*)?")
_FORMS: Final = "write URL#PROFILE, or the URL of a profile or trace in a store"


class _Place(NamedTuple):
    """A store by its URL, and which profile or object of it is meant."""

    store: str
    wanted: str
    is_key: bool


def found(talk: Talk, word: str) -> "Opened | LayerProfile":
    """Return what a word names: a file that is there, a stored profile, or an object of a store.

    A folder stands for the profile in it, as of `in_folder`. Raises as that does, and as
    `farm.trace.opening.read` does for a file; NoResult for an id that nothing matches or a profile
    without a trace, and Unreachable for a store that is away.
    """
    from farm.trace import files, opening

    if not word:
        raise Refused("no file ''")
    if is_url(word):
        return _of_url(talk, word)
    if is_stored(word):
        return _of_word(talk, word)
    where = files.address(word)
    try:
        return opening.read(where._replace(path=in_folder(where.path)))  # which says the nearest
    except Refused as error:
        raise hinted(error, word) from error


def in_folder(path: Path) -> Path:
    """Return the file that is read for a path: of a folder the profile that a capture left there.

    That is its `profile.json`, or else its one `*_repeat.json`. Raises Refused where a folder has
    neither, saying what it has.
    """
    if not os.path.isdir(path):
        return path
    repeated = sorted(each for each in path.glob(_REPEATED) if each.is_file())
    if (path / _KEPT).is_file():
        return path / _KEPT
    if len(repeated) == 1:
        return repeated[0]
    names = ", ".join(each.name for each in repeated)
    has = f"it has {names}" if repeated else f"it has no {_KEPT} and no {_REPEATED}"
    why = f"of a folder its {_KEPT} or its one {_REPEATED} is read; {has}"
    inner = next(iter(repeated or sorted(path.glob(f"*/{_KEPT}"))), None)
    hint = f"name a file, such as {short(str(inner))}" if inner else ""
    raise Refused(f"{short(str(path))} is a folder", why=why, hint=hint)


def hinted(error: Refused, word: str) -> Refused:
    """Return the error for a word that names no file; it says what a reference would have to be."""
    hint = ""
    if _RUN.fullmatch(word):
        hint = f"a run holds several profiles: {word}/LABEL"
    elif _SHORT.fullmatch(word):
        hint = "the id of a profile or job needs 6 digits or more"
    if error.hint or not hint or not error.what.startswith("no file"):
        return error
    return Refused(error.what, why=error.why, hint=hint)


def is_url(word: str) -> bool:
    """Whether a word is a URL, and no file is called so."""
    return "://" in word and not os.path.lexists(word)


def is_stored(word: str) -> bool:
    """Whether a word has the form of the id of a profile or job, and no file is called so."""
    from farm.trace import files

    if not (_ID.fullmatch(word) or _OF_RUN.fullmatch(word)):
        return False
    return not os.path.lexists(files.address(word).path)


def analysis_of(talk: Talk, word: str, *, needs: str) -> "Opened":
    """Return the analysis of what a word names; raises as `found` does.

    needs: what the verb reads of it, for the error where only layers are known.
    """
    from farm.trace import opening
    from farm.trace.importing.record import LayerProfile

    made = found(talk, word)
    if isinstance(made, LayerProfile):
        raise opening.lacking(made, needs)
    return made


def _of_url(talk: Talk, word: str) -> "Opened | LayerProfile":
    from farm.trace import opening
    from farm.trace.files import Address

    place = _place(word)
    if place is None:
        path = _plain_file(word)
        if path is not None and not os.path.isdir(path):
            return opening.read(Address(path, None))
        raise Refused(f"{_said(word)} names no profile", why=_FORMS)
    store = talk.store(place.store)
    if place.is_key:
        return _of_object(store, place.wanted, name=_said(word))
    return _of_profile(store, place.wanted, name=_said(word))


def _plain_file(url: str) -> Path | None:
    """Return the path that a `file://` URL spells; None for any other, and for no path at all."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket that is not closed
        return None
    path = unquote(parts.path)
    return Path(path) if parts.scheme == "file" and "\0" not in path else None


def _place(word: str) -> _Place | None:
    """Return the store and what is meant of it; None for a URL that tells no such thing."""
    url, sign, wanted = word.partition("#")
    if sign:
        return _Place(url, wanted, is_key=False)
    match = _OBJECT.fullmatch(url)
    if match is None:
        return None
    return _Place(match["store"] + (match["options"] or ""), match["key"], is_key=True)


def _of_object(store: "Store", key: str, *, name: str) -> "Opened":
    from farm import schema
    from farm.profiles import traces
    from farm.store import check_key, profile_ids
    from farm.store.keys import promised_digest

    check_key(key)
    digest = promised_digest(key)
    if profile_ids(key) is None:
        return traces.fetched(store, key, sha256=digest, name=name)
    profile = schema.decode(store.get(key, sha256=digest), schema.Profile)
    if traces.KIND not in profile.artifacts:
        raise traces.without(profile, digest or "")
    return traces.opened(store, profile, name=name)


def _of_word(talk: Talk, word: str) -> "Opened":
    """Return what a profile of the store says; where none is, no file of that name is there."""
    try:
        return _of_profile(talk.store(talk.settings().store.value), word, name=word)
    except NoResult as error:
        why = error.why or "nor is there a file of that name"
        raise NoResult(error.what, why=why, hint=error.hint) from error


def _of_profile(store: "Store", wanted: str, *, name: str) -> "Opened":
    from farm.profiles import traces

    return traces.opened(store, traces.traced(store, wanted).profile, name=name)


def _said(url: str) -> str:
    """Return a URL as it may be printed."""
    from farm import address

    return address.shown(url) if url.startswith(address.SCHEME) else url
