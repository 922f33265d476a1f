"""A device whose power, counter and load are known, for tests of what a window makes of them."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from workers.energy import (
    CounterGauge,
    EnergyReading,
    Idle,
    Meter,
    Period,
    PowerGauge,
    Window,
    update_period,
)
from workers.energy.gauges import Edge
from workers.fakes import FakeClock, FakeCounter, PowerCurve

T = TypeVar("T")

MS, S = 1_000_000, 1_000_000_000
IDLE_W, BUSY_W = 60.0, 300.0


@dataclass
class Rig:
    """A device that idles at 60 W and works at 300 W, its counter, and a load of so many ms."""

    seed: int
    period_ms: int = 100
    step_ms: float = 7.0
    counted: dict[str, object] = field(default_factory=dict)
    others: list[bool | None] = field(default_factory=lambda: [False])
    temperatures: list[float | None] = field(default_factory=lambda: [50.0])

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.clock = FakeClock(self.rng.randrange(10 * S))
        self.curve = PowerCurve([(0, IDLE_W)], ripple=0.2)
        self.counter = FakeCounter(
            self.clock,
            self.curve,
            period_ns=self.period_ms * MS,
            duty=0.25,
            **self.counted,  # type: ignore[arg-type]
        )
        self.edges: list[Edge] = []
        self.asked: list[int] = []

    def run(self, at_least_ns: int) -> int:
        self.asked.append(at_least_ns)
        step_ns = round(self.step_ms * MS)
        count = max(1, -(-at_least_ns // step_ns))
        self.curve.set(BUSY_W, at_ns=self.clock.now_ns)
        self.clock.advance(count * step_ns)
        self.curve.set(IDLE_W, at_ns=self.clock.now_ns)
        return count

    def meter(self, *, is_slice: bool = False) -> Meter:
        period = update_period(self.counter.read, clock=self.clock, sleep=self.clock.sleep)
        return Meter(
            gauge=Spy(self.counter, period, self.clock, self.edges),
            period=period,
            clock=self.clock,
            sleep=self.clock.sleep,
            rng=self.rng,
            others=taking_turns(self.others),
            temperature_c=taking_turns(self.temperatures),
            is_slice=is_slice,
        )


class Spy(CounterGauge):
    """Tells the edges that it gave."""

    def __init__(
        self, counter: FakeCounter, period: Period, clock: FakeClock, edges: list[Edge]
    ) -> None:
        super().__init__(counter, period, clock=clock, sleep=clock.sleep)
        self._edges = edges

    def edge(self) -> Edge:
        self._edges.append(super().edge())
        return self._edges[-1]


def taking_turns(values: list[T]) -> Callable[[], T]:
    """Return the values in order, the last one for ever."""
    left = list(values)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def codes(found: EnergyReading) -> dict[str, str]:
    return {name: why.partition(":")[0] for name, why in found.reasons.items()}


def nulls(found: EnergyReading) -> set[str]:
    return {name for name in found.__struct_fields__ if getattr(found, name) is None}


class Told(PowerGauge):
    """A power gauge that tells its edges."""

    def __init__(self, inner: PowerGauge, edges: list[Edge]) -> None:
        self.__dict__ = inner.__dict__
        self._edges = edges

    def edge(self) -> Edge:
        self._edges.append(super().edge())
        return self._edges[-1]


def window(
    span_ns: int,
    *,
    gained_uj: int = 1_500_000_000,
    idle_w: float | None = None,
    synced: bool = True,
    slack_ns: int = 500_000,
) -> Window:
    """A window by hand: 300 W over 5 s unless it says otherwise."""
    begin = Edge(at_ns=100 * S, energy_uj=7, slack_ns=slack_ns, synced=synced)
    end = Edge(at_ns=100 * S + span_ns, energy_uj=7 + gained_uj, slack_ns=slack_ns, synced=synced)
    return Window(
        begin=begin,
        end=end,
        iterations=10,
        finished_ns=end.at_ns,
        idle=Idle(power_w=idle_w, reason="not_probed"),
        before_c=50.0,
        after_c=60.0,
    )
