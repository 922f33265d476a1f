"""A trace file as columns, in constant memory, whatever is wrong with it.

The list of events is cut into pieces at the ends of events, and each is decoded at once. A piece
that does not decode is walked through event by event, and only the damaged ones are mended.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from farm.errors import Bad
from farm.trace.reading import events, framing
from farm.trace.reading.collecting import Collector, TooFar
from farm.trace.reading.columns import Allocations, Events, Lane
from farm.trace.reading.events import EXACT_FROM, Event
from farm.trace.reading.inflating import chunks
from farm.trace.reading.tally import Tally
from farm.trace.reading.walking import Walk
from farm.trace.reading.window import Window

CHUNK: Final = 512 << 10
_PIECE: Final = 64 << 10  # read at a time: larger blocks of memory are got anew each time
_PATIENCE: Final = 64 << 20  # bytes that one event may have


class Trace(NamedTuple):
    """keys: of the file beside its events. categories: how many events of each there were."""

    events: Events
    names: list[str]
    lanes: list[Lane]
    allocations: Allocations
    keys: Mapping[str, Any]
    categories: Mapping[str, int]
    tally: Tally


def of(file: BinaryIO, *, chunk: int = CHUNK) -> Trace:
    """Return the trace in an open file, plain or gzip, from where it stands.

    chunk: bytes at a time; no result depends on it. Raises Bad if the file holds no event.
    """
    tally = Tally()
    pieces = chunks(file, tally, size=min(chunk, _PIECE))
    opened = framing.opening(pieces, tally)
    collector = Collector(tally)
    rest, ended = _events(opened.rest, pieces, collector, tally, chunk=chunk)
    keys = dict(opened.keys)
    if ended:
        keys |= framing.closing(rest, pieces, tally, is_object=opened.is_object)
    elif not tally.dropped["truncated"]:
        tally.repair("structure")
    if not sum(count for name, count in collector.categories.items() if name):
        raise Bad("it holds no event", why="no event in it has a category")
    found, names, lanes = collector.events()
    return Trace(
        events=found,
        names=names,
        lanes=lanes,
        allocations=collector.allocations(),
        keys=keys,
        categories=dict(collector.categories),
        tally=tally,
    )


def _events(
    rest: bytes, pieces: Iterator[bytes], collector: Collector, tally: Tally, *, chunk: int
) -> tuple[bytes, bool]:
    """Collect all events; return what follows their list, and whether that was closed."""
    window, walk, decoding = Window(rest, pieces), Walk(tally), _Decoding(collector)
    wanted = chunk
    while True:
        window.fill(wanted)
        cut = window.cut()
        if cut is not None and walk.is_at_event and window.try_list(cut, decoding.take):
            walk.past(1)
            window.drop(cut.begin)
            wanted = chunk
            continue
        text = window.text()
        walked = walk.on(
            text,
            decoding.one,
            until=len(text) if cut is None else cut.end,
            final=window.is_last or len(text) > _PATIENCE,
        )
        collector.add(walked.typed)
        collector.add(walked.loose)
        if walked.ended or (window.is_last and walked.at >= len(text)):
            return text[walked.at :], walked.ended
        if cut is not None and walked.at == cut.end:
            walk.past(1)
            window.drop(cut.begin)
        else:
            window.drop(walked.at)
        wanted = chunk if walked.at else len(text) + chunk


class _Decoding:
    """Decodes with floats, which is quick, until a time is met that they do not hold."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._many = events.many(exact=False)
        self._one = events.one(exact=False)
        self._exact_one = events.one(exact=True)

    def take(self, text: memoryview) -> bool:
        """Collect the events of a list that is whole; False if it is not, and nothing is taken."""
        try:
            found = self._many(text)
        except (msgspec.DecodeError, RecursionError):
            return False
        try:
            self._collector.add(found)
        except TooFar:
            self._many = events.many(exact=True)
            return self.take(text)
        return True

    def one(self, text: bytes) -> Event:
        """Return one event; raises msgspec.DecodeError if it is none."""
        found = self._one(text)
        return self._exact_one(text) if abs(float(found.ts)) >= EXACT_FROM else found
