"""Devices that are a script: a clock, a queue with events, an energy counter, sensors.

They need no hardware and no waiting: time passes only where somebody works, waits or sleeps. Each
answers as the real one does, so what is measured with them is known beforehand.
"""

from workers.fakes.clock import FakeClock
from workers.fakes.power import FakeCounter, PowerCurve
from workers.fakes.sensors import Disturbance, FakeSensors
from workers.fakes.stream import FakeEvent, FakeKernels, FakeStream

__all__ = [
    "Disturbance",
    "FakeClock",
    "FakeCounter",
    "FakeEvent",
    "FakeKernels",
    "FakeSensors",
    "FakeStream",
    "PowerCurve",
]
