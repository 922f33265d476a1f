"""A device's power over time, and an energy counter that sees it as real ones do."""

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal

from workers.fakes.clock import FakeClock


@dataclass
class PowerCurve:
    """Power of a device over time: levels that change at moments, with a ripple upon them.

    levels: (from ns, W) in order. ripple: share of the level that a sine of that period adds.
    """

    levels: list[tuple[int, float]] = field(default_factory=lambda: [(0, 100.0)])
    ripple: float = 0.0
    ripple_ns: int = 7_000_000

    def set(self, watts: float, *, at_ns: int) -> None:
        """Change the level from a moment on, not before the last change."""
        self.levels.append((at_ns, watts))

    def power_w(self, at_ns: int) -> float:
        """Return the power at a moment."""
        index = max(0, bisect_right(self.levels, at_ns, key=lambda each: each[0]) - 1)
        return self.levels[index][1] * (1 + self.ripple * math.sin(self._phase(at_ns)))

    def joules(self, begin_ns: int, end_ns: int) -> float:
        """Return the exact energy between two moments."""
        total = 0.0
        starts = [at for at, _ in self.levels[1:]]
        for (at, watts), until in zip(self.levels, [*starts, end_ns], strict=True):
            left, right = max(at, begin_ns), min(until, end_ns)
            if right > left:
                total += watts * self._integral(left, right)
        return total

    def _integral(self, left: int, right: int) -> float:
        waves = math.cos(self._phase(left)) - math.cos(self._phase(right))
        return (right - left) / 1e9 + self.ripple * waves * self.ripple_ns / (2 * math.pi * 1e9)

    def _phase(self, at_ns: int) -> float:
        return 2 * math.pi * at_ns / self.ripple_ns


class FakeCounter:
    """An energy counter that ticks once a period, by what it saw of the power in it.

    duty: the last share of each period that it looks at. wraps_at_uj: where it starts again.
    reset_at_ns: when the driver is loaded anew and it counts from 0. reason: a null code, for a
    device without one. read_ns: what a reading costs.
    """

    def __init__(
        self,
        clock: FakeClock,
        curve: PowerCurve,
        *,
        period_ns: int,
        duty: float = 1.0,
        start_uj: int = 0,
        wraps_at_uj: int | None = None,
        reset_at_ns: int | None = None,
        reason: str = "",
        resolution_uj: int = 1_000,
        read_ns: int = 20_000,
        method: Literal["counter", "rapl"] = "counter",
        scope: Literal["device", "module", "package"] = "device",
    ) -> None:
        self.method: Literal["counter", "rapl"] = method
        self.scope: Literal["device", "module", "package"] = scope
        self.wraps_at_uj = wraps_at_uj
        self._clock, self._curve, self._period_ns, self._duty = clock, curve, period_ns, duty
        self._reset_at_ns, self._reason = reset_at_ns, reason
        self._resolution_uj, self._read_ns = resolution_uj, read_ns
        self._ticks, self._joules, self._start_uj = 0, 0.0, start_uj

    def read(self) -> tuple[int | None, str]:
        """Return the counter at its last tick, µJ, or None with the scripted code."""
        self._clock.advance(self._read_ns)
        if self._reason:
            return None, self._reason
        self._catch_up()
        counted = self._start_uj + round(self._joules * 1e6)
        counted -= counted % self._resolution_uj
        return (counted % self.wraps_at_uj if self.wraps_at_uj else counted), ""

    def _catch_up(self) -> None:
        while (self._ticks + 1) * self._period_ns <= self._clock.now_ns:
            self._ticks += 1
            tick_ns = self._ticks * self._period_ns
            self._joules += self._seen_w(tick_ns) * self._period_ns / 1e9
            if self._reset_at_ns is not None and self._reset_at_ns <= tick_ns:
                self._joules, self._start_uj, self._reset_at_ns = 0.0, 0, None

    def _seen_w(self, tick_ns: int) -> float:
        looked_ns = max(1, round(self._duty * self._period_ns))
        return self._curve.joules(tick_ns - looked_ns, tick_ns) / (looked_ns / 1e9)
