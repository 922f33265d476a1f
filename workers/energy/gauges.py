"""Two ways to know the energy between two moments: a counter that ticks, or power added up.

A counter is exact at its ticks and silent in between, so a window begins and ends at one. Sources:
`measurement.md` §11; "Part-time Power Measurements" (Yang et al., 2023) for the sensors that see a
quarter of the time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final, Protocol

from workers.host.rapl import growth
from workers.record import Method, Scope

Clock = Callable[[], int]
Sleep = Callable[[float], None]
Read = Callable[[], tuple[float | None, str]]
Power = tuple[int, float | None]  # at ns, W

_POLL_NS: Final = 500_000
_SEARCH_NS: Final = 2_000_000_000
_QUARTER_SIGHTED: Final = ("GA100", "GH100")  # instant power sees 25 ms of every 100 ms


class Counter(Protocol):
    """A device's own energy counter: µJ, and None with a null code where it has none.

    wraps_at_uj: where a known wrap starts it again; None if it has none.
    """

    @property
    def method(self) -> Method: ...
    @property
    def scope(self) -> Scope: ...
    @property
    def wraps_at_uj(self) -> int | None: ...
    def read(self) -> tuple[int | None, str]: ...


@dataclass(frozen=True, kw_only=True)
class Period:
    """How often a counter changes, ns; None with a reason where that could not be seen."""

    ns: int | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """One end of a window: when, what the counter said, and how long before that it may have been.

    synced: whether a tick was seen there. reason: why there is no edge, or "".
    """

    at_ns: int
    energy_uj: int | None = None
    slack_ns: int = 0
    synced: bool = False
    reason: str = ""


class Gauge(Protocol):
    """Energy between two edges."""

    @property
    def method(self) -> Method: ...
    @property
    def scope(self) -> Scope: ...
    @property
    def notes(self) -> Sequence[str]: ...
    def edge(self) -> Edge: ...
    def joules(self, begin: Edge, end: Edge, /) -> tuple[float | None, str]: ...


def update_period(
    read: Read, *, clock: Clock, sleep: Sleep, poll_ns: int = _POLL_NS, span_ns: int = _SEARCH_NS
) -> Period:
    """Return the median interval between changes of a reading, polled for 2 s.

    A counter that shows 0 throughout is one that the device does not have (some drivers say 0 in
    place of "not supported"); one that shows less than two changes is `below_resolution`. A period
    below the poll interval reads as the poll interval.
    """
    began = clock()
    last, why = read()
    changes: list[int] = []
    while last is not None and clock() - began < span_ns:
        sleep(poll_ns / 1e9)
        now, why = read()
        if now is not None and now != last:
            changes.append(clock())
        last = now
    if last is None:
        return Period(ns=None, reason=why)
    if len(changes) < 2:
        if last == 0:
            return Period(ns=None, reason="not_supported: the counter stays at 0")
        seconds = span_ns / 1e9
        return Period(ns=None, reason=f"below_resolution: fewer than two changes in {seconds:g} s")
    return Period(ns=_typical_gap(changes))


def _typical_gap(changes: Sequence[int]) -> int:
    """The median, without the grid of the polls where no tick was missed."""
    gaps = [after - before for before, after in pairwise(changes)]
    middle = median(gaps)
    if max(gaps) < 1.5 * middle:
        return round((changes[-1] - changes[0]) / len(gaps))
    return round(middle)


class CounterGauge:
    """Energy by a counter, from tick to tick."""

    notes: Sequence[str] = ()

    def __init__(
        self,
        counter: Counter,
        period: Period,
        *,
        clock: Clock,
        sleep: Sleep,
        poll_ns: int = _POLL_NS,
    ) -> None:
        self._counter, self._period_ns = counter, period.ns or 0
        self._clock, self._sleep, self._poll_ns = clock, sleep, poll_ns

    @property
    def method(self) -> Method:
        return self._counter.method

    @property
    def scope(self) -> Scope:
        return self._counter.scope

    def edge(self) -> Edge:
        """Poll until the counter changes; its value then holds within the last poll interval.

        A counter that does not tick for 4 periods and a second gives an edge that is one period
        wide, not synced.
        """
        last, why = self._counter.read()
        asked = began = self._clock()
        while last is not None and self._clock() - began < 4 * self._period_ns + 1_000_000_000:
            self._sleep(self._poll_ns / 1e9)
            now, why = self._counter.read()
            at = self._clock()
            if now is not None and now != last:
                return Edge(at_ns=at, energy_uj=now, slack_ns=at - asked, synced=True)
            last, asked = now, at
        if last is None:
            return Edge(at_ns=self._clock(), reason=why)
        return Edge(at_ns=self._clock(), energy_uj=last, slack_ns=self._period_ns)

    def joules(self, begin: Edge, end: Edge, /) -> tuple[float | None, str]:
        """Return what the counter gained; nothing at all is too little to be seen, not zero."""
        if begin.energy_uj is None or end.energy_uj is None:
            return None, begin.reason or end.reason
        gained = growth(begin.energy_uj, end.energy_uj, wraps_at_uj=self._counter.wraps_at_uj)
        if gained is None:
            return None, "counter_reset: the counter went back"
        if gained == 0:
            return None, "below_resolution: the counter did not move"
        return gained / 1e6, ""


class PowerGauge:
    """Energy by power samples that somebody else takes, at half the sensor's period or closer.

    samples: returns those between two moments, in order; the sampler must not be the thread that
    steps. chip: where it is one whose sensor sees a quarter of the time, the note `duty_25pct`.
    """

    method: Final = "integrated"

    def __init__(
        self,
        samples: Callable[[int, int], Sequence[Power]],
        period: Period,
        *,
        clock: Clock,
        scope: Scope = "device",
        chip: str = "",
    ) -> None:
        self._samples, self._period_ns, self._clock = samples, period.ns or 0, clock
        self.scope: Scope = scope
        self.notes: Sequence[str] = ("duty_25pct",) if chip in _QUARTER_SIGHTED else ()

    def edge(self) -> Edge:
        """Return this moment; the sensor's value may be a period old."""
        return Edge(at_ns=self._clock(), slack_ns=self._period_ns)

    def joules(self, begin: Edge, end: Edge, /) -> tuple[float | None, str]:
        """Return the trapezoid sum of the samples between the edges."""
        early = begin.at_ns - 2 * self._period_ns
        samples = self._samples(early, end.at_ns + 2 * self._period_ns)
        return integrated(
            samples, begin_ns=begin.at_ns, end_ns=end.at_ns, most_ns=2 * self._period_ns
        )


def integrated(
    samples: Sequence[Power], *, begin_ns: int, end_ns: int, most_ns: int
) -> tuple[float | None, str]:
    """Return the energy between two moments by the trapezoid rule, J, or None with a code.

    Power at an end is interpolated, and held where no sample lies beyond it. A stretch longer than
    `most_ns` without a sample, at an end too, is `not_probed`: nothing is made up.
    """
    known = [(at, watts) for at, watts in samples if watts is not None]
    inside = [each for each in known if begin_ns < each[0] < end_ns]
    if not inside:
        return None, "not_probed: no power sample in the window"
    before = [each for each in known if each[0] <= begin_ns][-1:] or [(begin_ns, inside[0][1])]
    after = [each for each in known if each[0] >= end_ns][:1] or [(end_ns, inside[-1][1])]
    points = [*before, *inside, *after]
    pairs = list(pairwise(points))
    widest = max(b[0] - a[0] for a, b in pairs)
    if widest > most_ns:
        return None, f"not_probed: {widest / 1e9:.3g} s without a power sample"
    total = 0.0
    for (a_ns, a_w), (b_ns, b_w) in pairs:
        left, right = max(a_ns, begin_ns), min(b_ns, end_ns)
        if right <= left:
            continue
        slope = (b_w - a_w) / (b_ns - a_ns)
        middle = a_w + slope * ((left + right) / 2 - a_ns)
        total += middle * (right - left) / 1e9
    return total, ""
