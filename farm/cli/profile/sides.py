"""The two sides of a comparison: which file each word means, and what its beginning says it is.

A trace may be larger than memory, and a table is read whole; so this is known before either is.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from farm.cli.profile import layer_files, sources
from farm.cli.talk import Talk
from farm.errors import Refused
from farm.reading import short
from farm.trace import sniffing
from farm.trace.files import Address

if TYPE_CHECKING:
    from farm.trace.analysis.record import Analysis
    from farm.trace.sniffing import Kind

_TRACES: Final = ("trace", "analysis")
_SORTS: Final = {
    "trace": "a trace",
    "analysis": "the analysis of a trace",
    "csv": "a layer CSV",
    "callable": "a callable JSON",
    "other": "none",
}


class Side(NamedTuple):
    """What a word means. where: None of a store, which keeps traces alone.

    file: all of a file, None where it cannot be read; kind is None then.
    """

    word: str
    where: Address | None
    kind: "Kind | None" = None
    file: io.BufferedReader | None = None

    @property
    def is_trace(self) -> bool:
        """Whether it is a trace, or the analysis of one."""
        return self.where is None or (self.kind is not None and self.kind.sort in _TRACES)


def looked(words: Sequence[str]) -> list[Side]:
    """Return what the words name; each file is opened once, since a pipe gives its bytes once.

    Raises Refused for a word that names no file, or no block, and for a folder without a profile.
    What cannot be read is left for its reader to say.
    """
    places = [
        None if sources.is_url(each) or sources.is_stored(each) else _place(each) for each in words
    ]
    known = {path: _begun(path) for path in dict.fromkeys(each.path for each in places if each)}
    return [
        Side(word, where, *known[where.path]) if where else Side(word, None)
        for word, where in zip(words, places, strict=True)
    ]


def _place(word: str) -> Address:
    try:
        where = layer_files.place(word)
    except Refused as error:
        raise sources.hinted(error, word) from error
    return where._replace(path=sources.in_folder(where.path))


def close(sides: Sequence[Side]) -> None:
    """Close what was opened."""
    for each in sides:
        if each.file is not None:
            each.file.close()


def analyses(talk: Talk, sides: Sequence[Side]) -> "list[Analysis]":
    """Return the analysis of each side; what stands on both is read once, and no event is kept.

    Raises Refused where one is none, saying what each is, and as `sources.analysis_of` does.
    """
    from farm.trace import opening

    one, other = sides
    for each in sides:
        if each.where is None:
            continue
        if each.is_trace and each.where.number is not None:
            raise Refused(f"{short(each.word)} names no block", why="a trace has none")
        if each.file is None:
            opening.opened(each.where.path)  # which says why it cannot be read
    if not (one.is_trace and other.is_trace):
        first, second = (one, other) if one.is_trace else (other, one)
        why = f"{short(first.word)} is {_said(first)}, and {short(second.word)} is {_said(second)}"
        raise Refused("these two cannot be compared", why=why)
    found = {
        key: _analysed(talk, side) for key, side in {_key(each): each for each in sides}.items()
    }
    return [found[_key(each)] for each in sides]


def _key(side: Side) -> str:
    return side.word if side.where is None else str(side.where.path)


def _analysed(talk: Talk, side: Side) -> "Analysis":
    from farm.trace import opening

    if side.where is None:
        return sources.analysis_of(talk, side.word, needs="the step of a trace").analysis
    return opening.opened(side.where.path, file=side.file).analysis


def _begun(path: Path) -> "tuple[Kind | None, io.BufferedReader | None]":
    try:
        file = path.open("rb")
    except (OSError, ValueError):
        return None, None
    try:
        return sniffing.begun(file)
    except OSError:
        file.close()
        return None, None


def _said(side: Side) -> str:
    """Return what a file is, for a message."""
    if side.kind is None:
        return "a stored trace"
    if side.kind.sort == "document":
        return f"of schema {short(side.kind.of)}"
    if side.kind.sort == "layers":
        return f"a layer profile of {side.kind.of}"
    return _SORTS[side.kind.sort]
