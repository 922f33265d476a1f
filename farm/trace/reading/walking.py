"""Event after event, for a part of a file that does not decode in one go."""

import re
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from farm.trace.reading.events import Event, One, lenient
from farm.trace.reading.extents import CUT, extent
from farm.trace.reading.repairing import mended
from farm.trace.reading.tally import Tally

_GAP: Final = re.compile(rb"[ \t\n\r,]*")
# Where an event may end: a brace, then the next event, or the end of the list or of the file.
_END: Final = re.compile(rb"\}(?=\s*(?:,\s*\{|\]))")
_END_OF_ALL: Final = re.compile(rb"\}(?=\s*(?:,\s*\{|\]|\Z))")
_WITHIN: Final = re.compile(rb",\s*\{")
_NEXT: Final = re.compile(rb"[{\]]")
# A bracket with an event after it is damage: what follows the list of events is a key or nothing.
_STRAY: Final = re.compile(
    rb"[\]}]\s*[{\"\]]|[\s\]}]*,\s*[^\s\"]|[\s\]]*\}[\s\]}]*,",
)
_KEY: Final = re.compile(rb"\]\s*,\s*(?=\")")
_LAST: Final = re.compile(rb"[\]}]\s*(?:\}\s*)?(?:\Z|\{)")
_CLOSED: Final = re.compile(rb"[\s\]}]*(?P<more>,|\Z)")
_FOLLOWED: Final = re.compile(rb"\s*(?:,\s*\{|\])")
_ARRIVING: Final = re.compile(rb"[\s,]*\Z")
_UNSURE: Final = re.compile(rb"[\]}][\s\]}]*(?:,\s*)?\Z")
_CONTROL: Final = re.compile(rb"[\x00-\x20,]+")
_TRIES: Final = 8  # ends of a damaged event; the text of one may look like several


class Walked(NamedTuple):
    """typed, loose: what was decoded. at: where to go on. ended: the list ends before it."""

    typed: list[Event]
    loose: list[Event]
    at: int
    ended: bool


class Walk:
    """A walk through the text of a list of events, which arrives in pieces.

    What was not consumed of a piece begins the next one.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._first, self._commas = True, 0
        self._is_lost = False  # where an event was dropped, what follows may lie within another

    @property
    def is_at_event(self) -> bool:
        """Whether all that was seen since the last event is the comma that has to be there."""
        return self._commas == (not self._first)

    def past(self, commas: int) -> None:
        """Note that events were taken without a walk, and how many commas followed the last."""
        self._first, self._commas = False, commas

    def on(self, text: bytes, one: One, *, until: int, final: bool) -> Walked:
        """Decode the events that begin before `until`, as far as they are whole.

        final: nothing comes after this text, so that what is not whole never will be.
        """
        typed: list[Event] = []
        loose: list[Event] = []
        at = 0
        while at < until:
            gap = _GAP.match(text, at)
            assert gap is not None, "it may be empty"
            self._commas += gap[0].count(b",")
            at = gap.end()
            if at >= len(text):
                break
            if text[at] in b"]}":
                ends = self._ends(text, at, final=final)
                if ends is None:
                    break
                if ends:
                    self._tally.repair("structure", self._commas > 0 or text[at] in b"}")
                    return Walked(typed, loose, at + (text[at] in b"]"), ended=True)
                self._tally.repair("structure")
                at += 1
                continue
            found = self._event(text, at, one, typed, loose, final=final)
            if found is None:
                break
            at = found
            self._tally.repair("structure", self._commas != (not self._first))
            self._first, self._commas = False, 0
        return Walked(typed, loose, at, ended=False)

    def _ends(self, text: bytes, at: int, *, final: bool) -> bool | None:
        """Tell if a bracket ends the list; None if that cannot be told yet."""
        if not final and _UNSURE.match(text, at):
            return None
        if _STRAY.match(text, at):
            return False
        return _closes(text, at, final=final) if self._is_lost else True

    def _event(
        self, text: bytes, at: int, one: One, typed: list[Event], loose: list[Event], *, final: bool
    ) -> int | None:
        """Take or drop the event that begins there; return where to go on, None if it is cut."""
        if text[at] in b"[":  # which may only have come in here; all the others may lie behind it
            self._tally.drop("unparsable")
            self._is_lost = True
            return at + 1
        end = extent(memoryview(text)[at:])
        if end > 0:
            if at + end == len(text) and text[at] not in b"{" and not final:
                return None  # a number may go on
            self._take(text[at : at + end], one, typed, loose)
            return at + end
        if end == CUT:
            self._tally.drop("truncated", final)
            return len(text) if final else None
        return self._mend(text, at, loose, final=final)

    def _take(self, text: bytes, one: One, typed: list[Event], loose: list[Event]) -> None:
        try:
            typed.append(one(text))
            return
        except (msgspec.DecodeError, RecursionError):  # another type, or bytes that are no text
            pass
        try:
            event = lenient(text, self._tally)
        except (ValueError, RecursionError):
            event = mended(text, self._tally)
            self._tally.drop("unparsable", event is None)
        if event is not None:
            loose.append(event)

    def _mend(self, text: bytes, at: int, loose: list[Event], *, final: bool) -> int | None:
        """Take the damaged event that begins there, or drop it; return where to go on.

        None where that has not arrived.
        """
        if text[at] not in b"{":
            return self._skip(text, at, final=final)
        pattern = _END_OF_ALL if final else _END
        ends = [each.end() for each in islice(pattern.finditer(text, at), _TRIES)]
        for end in ends:
            event = mended(text[at:end], self._tally)
            if event is not None:
                loose.append(event)
                return end
        if not final and len(ends) < _TRIES:
            return None
        following = _inside(text, at, ends[0], final=final) if ends else len(text)
        self._tally.drop("unparsable", following is not None)
        self._is_lost = True
        return following

    def _skip(self, text: bytes, at: int, *, final: bool) -> int | None:
        """Leave out what is no event at all, up to the next one or the end of the list."""
        following = _NEXT.search(text, at)
        if following is None and not final:
            return None
        end = len(text) if following is None else following.start()
        self._is_lost = True
        if _CONTROL.fullmatch(text, at, end):
            self._tally.repair("control")
        else:
            self._tally.drop("unparsable")
        return end


def _closes(text: bytes, at: int, *, final: bool) -> bool | None:
    """Tell if the file goes on behind a bracket as behind a list of events; None if not yet.

    After damage a bracket may be that of a list in an event, or stand in a name.
    """
    key = _KEY.match(text, at)
    if key is None:
        return _LAST.match(text, at) is not None
    size = extent(memoryview(b"{" + text[key.end() :]))
    if size < 0:
        return None if size == CUT and not final else True
    closed = _CLOSED.match(text, key.end() + size - 1)
    if closed is None:
        return True
    if closed["more"]:
        return False
    return True if final else None


def _inside(text: bytes, at: int, end: int, *, final: bool) -> int | None:
    """Return where a whole event begins before the end of a damaged one; else that end.

    None where one begins that has not arrived as a whole.
    """
    for each in _WITHIN.finditer(text, at + 1, end):
        begin = each.end() - 1
        rest = memoryview(text)[begin:]
        size = extent(rest)
        if size == CUT and not final:
            return None
        if size > 0 and b'"ph"' in bytes(rest[:size]):
            if not final and _ARRIVING.match(text, begin + size):
                return None
            if _FOLLOWED.match(text, begin + size):
                return begin
    return end
