"""A scripted counter ticks, wraps and resets as real ones do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.fakes import FakeClock, FakeCounter, PowerCurve

MS, S = 1_000_000, 1_000_000_000


@settings(max_examples=30)
@given(
    levels=st.lists(st.tuples(st.integers(1, 400), st.floats(1, 700)), min_size=1, max_size=5),
    ripple=st.floats(0, 0.9),
)
def test_a_curve_knows_its_energy(levels: list[tuple[int, float]], ripple: float) -> None:
    """The exact integral is the sum of the power over small steps."""
    curve = PowerCurve([(0, 50.0)], ripple=ripple, ripple_ns=13 * MS)
    at = 0
    for gap_ms, watts in levels:
        at += gap_ms * MS
        curve.set(watts, at_ns=at)
    begin, end = 3 * MS, at + 50 * MS
    edges = np.linspace(begin, end, 8_001)
    middles = (edges[:-1] + edges[1:]) / 2

    summed = sum(curve.power_w(int(each)) for each in middles) * (end - begin) / 8_000 / 1e9

    assert curve.joules(begin, end) == pytest.approx(summed, rel=2e-3)


def test_a_counter_is_silent_between_ticks() -> None:
    """It shows the energy up to its last tick, in its own resolution."""
    clock = FakeClock()
    counter = FakeCounter(clock, PowerCurve([(0, 100.0)]), period_ns=20 * MS, read_ns=0)

    shown = []
    for _ in range(5):
        clock.advance(9 * MS)
        shown.append(counter.read()[0])

    assert [0, 0, 2_000_000, 2_000_000, 4_000_000] == shown


def test_a_quarter_sighted_counter_takes_the_last_quarter_for_all() -> None:
    """Power that ended before it is not seen."""
    clock = FakeClock()
    curve = PowerCurve([(0, 400.0), (70 * MS, 100.0)])
    counter = FakeCounter(clock, curve, period_ns=100 * MS, duty=0.25)

    clock.advance(100 * MS)

    assert (10_000_000, "") == counter.read()


def test_a_counter_wraps_and_is_reset() -> None:
    """A wrap starts it again at its range; a reset at 0, from the tick after."""
    clock = FakeClock()
    curve = PowerCurve([(0, 1.0)])
    wrapping = FakeCounter(clock, curve, period_ns=S, start_uj=8_000_000, wraps_at_uj=10_000_000)
    reset = FakeCounter(clock, curve, period_ns=S, start_uj=8_000_000, reset_at_ns=2 * S)

    clock.advance(3 * S)

    assert 1_000_000 == wrapping.read()[0]
    assert 1_000_000 == reset.read()[0]


def test_a_device_without_a_counter_says_why() -> None:
    """The scripted code."""
    counter = FakeCounter(FakeClock(), PowerCurve(), period_ns=S, reason="no_permission")

    assert (None, "no_permission") == counter.read()
