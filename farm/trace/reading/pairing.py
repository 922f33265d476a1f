"""Begins and ends of spans, which the Chrome format also writes as two events, joined."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from farm.trace.reading.columns import Lane
from farm.trace.reading.events import Event
from farm.trace.reading.tally import Tally

Half = tuple[int, Event]  # ns


def joined(halves: Mapping[Lane, Iterable[Half]], tally: Tally) -> tuple[list[Event], list[int]]:
    """Return the begins that have an end, and when each ends in ns; what has no other is counted.

    An end closes the newest begin of its thread. Of one time, ends come first as long as something
    is open, then the begins by name: the order of the file decides nothing.
    """
    begins: list[Event] = []
    ends: list[int] = []
    for lane in halves.values():
        waiting: list[Event] = []
        for time, at_once in groupby(sorted(lane, key=itemgetter(0)), key=itemgetter(0)):
            events = [each for _, each in at_once]
            closing = sum(each.ph == "E" for each in events)
            opening = sorted((each for each in events if each.ph == "B"), key=_by_name)
            before = min(closing, len(waiting))
            for _ in range(before):
                begins.append(waiting.pop())
                ends.append(time)
            waiting += opening
            for _ in range(min(closing - before, len(waiting))):
                begins.append(waiting.pop())
                ends.append(time)
            tally.repair("unmatched", max(0, closing - before - len(opening)))
        tally.repair("unmatched", len(waiting))
    return begins, ends


def _by_name(event: Event) -> tuple[str, str, str]:
    return event.cat, event.name, repr(event.args)
