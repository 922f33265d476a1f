"""Energy of a pipelined pass: a counter's ticks or power samples, a window, what windows say."""

from workers.energy.gauges import (
    Counter,
    CounterGauge,
    Edge,
    Gauge,
    Period,
    PowerGauge,
    integrated,
    update_period,
)
from workers.energy.reading import absent, combined
from workers.energy.window import Idle, Meter, Window, least_ns, measure, reading, window_ns
from workers.record import EnergyReading

__all__ = [
    "Counter",
    "CounterGauge",
    "Edge",
    "EnergyReading",
    "Gauge",
    "Idle",
    "Meter",
    "Period",
    "PowerGauge",
    "Window",
    "absent",
    "combined",
    "integrated",
    "least_ns",
    "measure",
    "reading",
    "update_period",
    "window_ns",
]
