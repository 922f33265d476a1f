"""From lists of decoded events to columns: what is of use is kept, the rest only counted."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal
from itertools import compress
from math import nan
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from farm.trace.reading import columns
from farm.trace.reading.columns import ABSENT, GPU, NONE, Allocations, Events, Lane
from farm.trace.reading.events import EXACT_FROM, UNNAMED, Args, Event, Id
from farm.trace.reading.pairing import joined
from farm.trace.reading.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farm.trace.reading.columns import Whole

# What an event is, by its category; those of 2021 begin with capitals. The rest is only counted.
KINDS: Final = {
    "kernel": columns.KERNEL,
    "gpu_memcpy": columns.MEMCPY,
    "gpu_memset": columns.MEMSET,
    "cuda_runtime": columns.RUNTIME,
    "xpu_runtime": columns.RUNTIME,
    "cuda_driver": columns.DRIVER,
    "xpu_driver": columns.DRIVER,
    "cpu_op": columns.OP,
    "user_annotation": columns.ANNOTATION,
    "Kernel": columns.KERNEL,
    "Memcpy": columns.MEMCPY,
    "Memset": columns.MEMSET,
    "Runtime": columns.RUNTIME,
    "Driver": columns.DRIVER,
    "Operator": columns.OP,
}
_LOOKED_AT: Final = {*KINDS, "", "cpu_instant_event"}  # ends and old allocations have no category
_ANNOTATIONS: Final = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#")
_ALLOCATION: Final = "[memory]"
_OLD_STREAM: Final = "stream "
_NO_ARGS: Final = Args()
_DTYPES: Final = ("i8", "i8", "u1", "i4", "i4", "i8", "i8", "f4")
_DAY_NS: Final = 24 * 3600 * 10**9
_LONGEST_US: Final = 1e12
_FARTHEST_US: Final = 2**52
_WIDE: Final = 2**62
NO_TIME: Final = -(2**63)
Word = TypeVar("Word", str, Lane)


class TooFar(Exception):
    """A time that a float does not hold to the nanosecond: decode again, exactly."""


class Collector:
    """Takes events as they come; `events` and `allocations` return what was kept."""

    def __init__(self, tally: Tally) -> None:
        self.categories: Counter[str] = Counter()
        self._tally = tally
        self._parts: list[Events] = []
        self._memory = array("q")
        self._halves: dict[Lane, list[tuple[int, Event]]] = {}
        self._names, self._lanes, self._words = _Numbers(), _Numbers(), _Numbers()

    def add(self, found: Sequence[Event]) -> None:
        """Keep what is of use; raises TooFar for floats that are too large, and keeps nothing."""
        categories = [each.cat for each in found]
        kept = list(compress(found, map(_LOOKED_AT.__contains__, categories)))
        spans = [each for each in kept if each.ph == "X"]
        others = [] if len(spans) == len(kept) else [each for each in kept if each.ph != "X"]
        starts = nanoseconds([each.ts for each in spans])
        times = nanoseconds([each.ts for each in others]).tolist()
        self.categories.update(categories)
        if spans:
            self._spans(spans, starts)
        for time, each in zip(times, others, strict=True):
            self._other(time, each)

    def events(self) -> tuple[Events, list[str], list[Lane]]:
        """Return all spans with the tables of names and lanes; nothing may be added after it."""
        whole, ends = joined(self._halves, self._tally)
        if whole:
            self._spans(whole, nanoseconds([each.ts for each in whole]), ends=ends)
        found = self._concatenated()
        names, number = _in_order(list(self._names))
        found = found._replace(name=number[found.name])
        marks = np.array([each.startswith(_ANNOTATIONS) for each in names] or [False])
        found.kind[(found.kind == columns.OP) & marks[found.name]] = columns.ANNOTATION
        # A stream is the same whether a dialect writes 7, "7" or "stream 7".
        lanes = _Numbers()
        told = [
            lanes[Lane(str(outer), str(inner).removeprefix(_OLD_STREAM))]
            for outer, inner in self._lanes
        ]
        known, place = _in_order(list(lanes))
        return found._replace(lane=place[np.array(told or [0], "i4")][found.lane]), names, known

    def allocations(self) -> Allocations:
        """Return all memory events."""
        table = np.array(self._memory, "i8").reshape(-1, len(Allocations._fields))
        return Allocations(*table.T)

    def _concatenated(self) -> Events:
        """Return the columns of all parts; of each the parts are let go before the next."""
        parts = [list(each) for each in self._parts]
        self._parts = []
        made = []
        for dtype in _DTYPES:
            column = [each.pop(0) for each in parts]
            made.append(np.concatenate([np.zeros(0, dtype), *column]))
        return Events(*made)

    def _spans(
        self, spans: Sequence[Event], starts: "Whole", *, ends: Sequence[int] | None = None
    ) -> None:
        args = [each.args or _NO_ARGS for each in spans]
        kind = np.array([KINDS.get(each.cat, 0) for each in spans], "u1")
        on_gpu = np.isin(kind, GPU)
        length = _lengths(spans) if ends is None else np.array(ends, "i8") - starts
        names = self._names
        found = Events(
            start=starts,
            end=starts + length,
            kind=kind,
            name=np.array([names[each.name or UNNAMED] for each in spans], "i4"),
            lane=self._lane(spans, args, on_gpu.tolist()),
            correlation=self._ids(
                [each.cid if each.correlation is None else each.correlation for each in args]
            ),
            external=self._ids(
                [
                    each.old_external_id if each.external_id is None else each.external_id
                    for each in args
                ]
            ),
            occupancy=np.clip(
                [nan if each.occupancy is None else each.occupancy for each in args], -1e9, 1e9
            ).astype("f4"),
        )
        good = kind > 0
        for name, fault in (
            ("no_ts", starts == NO_TIME),
            ("negative_dur", length < 0),
            ("absurd_dur", length > _DAY_NS),
            ("zero_ts", on_gpu & (starts == 0)),
        ):
            self._tally.drop(name, int(np.count_nonzero(good & fault)))
            good &= ~fault
        self._parts.append(found if good.all() else found.where(good))

    def _lane(
        self, spans: Sequence[Event], args: Sequence[Args], on_gpu: Sequence[bool]
    ) -> "NDArray[np.int32]":
        lanes = self._lanes
        found = [
            lanes[
                each.pid if told.device is None else told.device,
                each.tid if told.stream is None else told.stream,
            ]
            if gpu
            else lanes[each.pid, each.tid]
            for each, told, gpu in zip(spans, args, on_gpu, strict=True)
        ]
        return np.array(found, "i4")

    def _other(self, time: int, event: Event) -> None:
        """Take a begin, an end or a memory event; the rest has no use."""
        if not event.ph:
            self._tally.drop("no_phase")
        elif event.ph in ("B", "E"):
            if time == NO_TIME:
                self._tally.drop("no_ts")
            elif event.ph == "E" or event.cat in KINDS:
                lane = Lane(str(event.pid), str(event.tid))
                self._halves.setdefault(lane, []).append((time, event))
        elif event.name == _ALLOCATION and event.ph in ("i", "I") and time != NO_TIME:
            told = event.args or _NO_ARGS
            numbers = (told.bytes, told.allocated, told.reserved, told.device_type, told.device_id)
            self._memory.append(time)
            self._memory.extend(
                ABSENT if each is None or abs(each) >= _WIDE else each for each in numbers
            )

    def _ids(self, found: list[Id]) -> "Whole":
        """Return numbers for ids: the same for text and a number, NONE for 0, −1 and none."""
        try:
            numbers = np.array([each or NONE for each in found], "i8")
            is_plain = not np.any((numbers < -1) | (numbers >= _WIDE))
        except (TypeError, ValueError, OverflowError):
            is_plain = False
        if not is_plain:
            numbers = np.array([self._id(each) for each in found], "i8")
        numbers[numbers == -1] = NONE
        return numbers

    def _id(self, found: Id) -> int:
        try:
            number = int(found or NONE)
        except ValueError:
            return -2 - self._words[found]
        return number if -1 <= number < _WIDE else -2 - self._words[str(number)]


class _Numbers(dict[Any, int]):
    """The number of each key, given out as they come."""

    def __missing__(self, key: object) -> int:
        self[key] = number = len(self)
        return number


def _in_order(words: Sequence[Word]) -> tuple[list[Word], "NDArray[np.int32]"]:
    """Return a table in order with the new number of each row, which tells nothing of the file."""
    order = sorted(range(len(words)), key=words.__getitem__)
    number = np.zeros(max(1, len(words)), "i4")
    number[order] = np.arange(len(words))
    return [words[each] for each in order], number


def nanoseconds(times: Sequence[float | Decimal]) -> "Whole":
    """Return µs as ns, rounded half up, NO_TIME for NaN; raises TooFar for floats of 2⁴³ and more.

    A time gives the same number whether it comes as a float or as a decimal.
    """
    found = np.array(times)
    if found.dtype == object:
        return np.array([_exactly(each) for each in times], "i8")
    found = found.astype("f8")
    if np.any(np.abs(found) >= EXACT_FROM):
        raise TooFar
    unknown = np.isnan(found)
    whole = _half_up(np.where(unknown, 0.0, found) * 1000)
    whole[unknown] = NO_TIME
    return whole


def _exactly(time: float | Decimal) -> int:
    rough = float(time)
    if rough != rough or abs(rough) >= _FARTHEST_US:
        return NO_TIME
    if abs(rough) < EXACT_FROM:
        return int(_half_up(np.array([rough * 1000]))[0])
    if isinstance(time, float):
        raise TooFar
    return int((time * 1000 + Decimal("0.5")).to_integral_value(ROUND_FLOOR))


def _lengths(spans: Iterable[Event]) -> "Whole":
    """Return the lengths in ns; one that no clock could give is longer than a day."""
    found = np.nan_to_num(np.array([each.dur for each in spans], "f8"), nan=0.0)
    return _half_up(np.clip(found, -_LONGEST_US, _LONGEST_US) * 1000)


def _half_up(found: "NDArray[np.float64]") -> "Whole":
    """Return whole numbers; a half that is added instead is no longer exact from 2⁵² on."""
    below = np.floor(found)
    whole: Whole = below.astype("i8") + (found - below >= 0.5)
    return whole
