"""One energy window around a pipelined pass: idle power before, a tick at both ends, a reading."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from workers.energy.gauges import Clock, Edge, Gauge, Period, Sleep
from workers.energy.reading import absent, explained
from workers.record import EnergyReading

_WINDOW_NS, _LEAST_NS, _IDLE_NS = 5_000_000_000, 1_000_000_000, 5_000_000_000
_IDLE_TRIES: Final = 6
_IDLE_DRIFT_C: Final = 3.0


@dataclass(frozen=True, kw_only=True)
class Meter:
    """What a window needs of its surroundings.

    others: whether another process uses the device, None if that cannot be known. is_slice: a MIG
    slice, which has no energy of its own. temperature_c: of the device, None if it has no sensor.
    """

    gauge: Gauge
    period: Period
    clock: Clock
    sleep: Sleep
    rng: random.Random
    others: Callable[[], bool | None]
    temperature_c: Callable[[], float | None]
    is_slice: bool = False


@dataclass(frozen=True, kw_only=True)
class Idle:
    """Power of the device doing nothing just before a window; None with its reason."""

    power_w: float | None
    reason: str = ""


def window_ns(period: Period) -> int:
    """Return how long a window must be: 5 s, or 50 periods of the counter; whole periods.

    A window that begins at a tick then ends near one. A sensor that sees the last quarter of each
    period would be blind to work that ends in the middle: at 100 ms that is up to 1.2 % of 5 s.
    """
    period_ns = max(1, period.ns or 0)
    return -(-max(_WINDOW_NS, 50 * period_ns) // period_ns) * period_ns


def least_ns(period: Period) -> int:
    """Return below which length a window says nothing: 1 s, or 5 periods of the counter."""
    return max(_LEAST_NS, 5 * (period.ns or 0))


@dataclass(frozen=True, kw_only=True)
class Window:
    """A window that has ended. finished_ns: when the device had; it idled until the last edge."""

    begin: Edge
    end: Edge
    iterations: int
    finished_ns: int
    idle: Idle
    before_c: float | None
    after_c: float | None

    @property
    def span_ns(self) -> int:
        return self.end.at_ns - self.begin.at_ns


def measure(meter: Meter, run: Callable[[int], int], *, batch: int) -> EnergyReading:
    """Return the energy of one run of the step, with a reason for every figure that it lacks.

    run: works for at least so many ns, returns when the device has finished, and says how many
    iterations that were. It runs in any case: the pass is a throughput pass as well. Where there is
    energy to be read, it takes 5 s more of idling, and at most 30 s more to cool down.
    """
    if why := _why_not(meter):
        run(0)
        return _absent(meter, why)
    idle = _idle(meter)
    # Without this every window would begin at the same place of the sensor's period.
    meter.sleep(meter.rng.uniform(0.0, (meter.period.ns or 0) / 1e9))
    before_c = meter.temperature_c()
    begin = meter.gauge.edge()
    iterations = run(window_ns(meter.period))
    finished_ns = meter.clock()
    window = Window(
        begin=begin,
        end=meter.gauge.edge(),
        iterations=iterations,
        finished_ns=finished_ns,
        idle=idle,
        before_c=before_c,
        after_c=meter.temperature_c(),
    )
    alone = meter.others()
    if alone:
        return _absent(meter, "shared_device: another process used the device")
    found = reading(meter, window, batch=batch)
    if alone is None:
        found = msgspec.structs.replace(found, notes=[*found.notes, "sharing_unknown"])
    return found


def reading(meter: Meter, window: Window, *, batch: int) -> EnergyReading:
    """Return the figures of a window, or why there are none.

    `edge_j` bounds what the edges are wrong by: their slack, what the device used while it idled
    until the closing tick, and what of its last work a sensor may not have seen.
    """
    if why := _too_short(meter.period, window.span_ns):
        return _absent(meter, why)
    gross, why = meter.gauge.joules(window.begin, window.end)
    if gross is None:
        return _absent(meter, why)
    seconds = window.span_ns / 1e9
    net, why_not_net = _net(gross, window.idle, seconds)
    each_j = gross / window.iterations if window.iterations else None
    done = EnergyReading(
        energy_gross_j=gross,
        energy_net_j=net,
        energy_per_iteration_j=each_j,
        energy_per_item_j=None if each_j is None else each_j / batch,
        power_mean_w=gross / seconds,
        power_idle_w=window.idle.power_w,
        window_s=seconds,
        update_period_ms=(meter.period.ns or 0) / 1e6,
        energy_method=meter.gauge.method,
        energy_scope=meter.gauge.scope,
        temperature_before_c=window.before_c,
        temperature_after_c=window.after_c,
        notes=_notes(meter.gauge, window),
        windows=1,
        iterations=window.iterations,
        edge_j=_edge_j(window, period_ns=meter.period.ns or 0, mean_w=gross / seconds),
    )
    reasons = {
        "energy_net_j": why_not_net,
        "power_idle_w": window.idle.reason,
        "energy_uncertainty_j": "single_repeat",
        "temperature_before_c": "not_supported: no temperature sensor",
        "temperature_after_c": "not_supported: no temperature sensor",
    }
    return explained(done, lambda name: reasons.get(name, "below_resolution: no iteration ended"))


def _why_not(meter: Meter) -> str:
    if meter.is_slice:
        return "shared_device: a MIG slice has no energy of its own"
    if meter.period.ns is None:
        return meter.period.reason
    return "shared_device: another process uses the device" if meter.others() else ""


def _idle(meter: Meter) -> Idle:
    """Return the power over 5 s in which the temperature moved by 3 °C at most.

    A device that has just worked cools down first, and its idle power with it: up to 30 s.
    """
    moved = 0.0
    for _ in range(_IDLE_TRIES):
        before_c = meter.temperature_c()
        begin = meter.gauge.edge()
        meter.sleep(_IDLE_NS / 1e9)
        end = meter.gauge.edge()
        after_c = meter.temperature_c()
        if before_c is not None and after_c is not None:
            moved = abs(after_c - before_c)
        if moved <= _IDLE_DRIFT_C:
            joules, why = meter.gauge.joules(begin, end)
            span_ns = end.at_ns - begin.at_ns
            if joules is None or span_ns <= 0:
                return Idle(power_w=None, reason=why or "error: the clock went backwards")
            return Idle(power_w=joules / (span_ns / 1e9))
    return Idle(power_w=None, reason=f"timed_out: the idle device still moved by {moved:.1f} °C")


def _too_short(period: Period, span_ns: int) -> str:
    if span_ns <= 0:
        return "error: the clock went backwards"
    if span_ns < least_ns(period):
        least_s = least_ns(period) / 1e9
        return f"below_resolution: a window of {span_ns / 1e9:.3g} s, below {least_s:g} s"
    return ""


def _edge_j(window: Window, *, period_ns: int, mean_w: float) -> float:
    idle_w = mean_w if window.idle.power_w is None else min(window.idle.power_w, mean_w)
    tail_ns = max(0, window.end.at_ns - window.finished_ns)
    slack_ns = window.begin.slack_ns + window.end.slack_ns
    unseen_ns = _unseen_ns(max(0, period_ns - tail_ns), period_ns)
    return (mean_w * slack_ns + idle_w * tail_ns + (mean_w - idle_w) * unseen_ns) / 1e9


def _unseen_ns(busy_ns: int, period_ns: int) -> float:
    """How much work at the start of the last period a sensor misses that sees its last quarter."""
    return busy_ns - max(0.0, busy_ns - 0.75 * period_ns) / 0.25


def _notes(gauge: Gauge, window: Window) -> list[str]:
    synced = window.begin.synced and window.end.synced
    missed = gauge.method != "integrated" and not synced
    unknown = window.before_c is None and window.idle.power_w is not None
    return [
        *gauge.notes,
        *(["edges_not_synced"] if missed else []),
        *(["idle_temperature_unknown"] if unknown else []),
    ]


def _net(gross: float, idle: Idle, seconds: float) -> tuple[float | None, str]:
    if idle.power_w is None:
        return None, idle.reason
    net = gross - idle.power_w * seconds
    if net < 0.0:
        return None, "below_resolution: the window used less than the idle device"
    return net, ""


def _absent(meter: Meter, why: str) -> EnergyReading:
    period_ms = None if meter.period.ns is None else meter.period.ns / 1e6
    return absent(
        why,
        period_ms=period_ms,
        method=meter.gauge.method,
        scope=meter.gauge.scope,
        notes=meter.gauge.notes,
    )
