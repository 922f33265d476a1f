"""Counters that tick and power that is sampled, against known power."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.energy import CounterGauge, Edge, Period, PowerGauge, integrated, update_period
from workers.fakes import FakeClock, FakeCounter, PowerCurve

MS, S = 1_000_000, 1_000_000_000


def counter(clock: FakeClock, period_ms: int = 20, **changes: object) -> FakeCounter:
    curve = PowerCurve([(0, 100.0)])
    return FakeCounter(clock, curve, period_ns=period_ms * MS, **changes)  # type: ignore[arg-type]


def gauge(clock: FakeClock, ticking: FakeCounter, period_ms: int = 20) -> CounterGauge:
    period = Period(ns=period_ms * MS)
    return CounterGauge(ticking, period, clock=clock, sleep=clock.sleep)


@pytest.mark.parametrize("period_ms", [1, 20, 100])
def test_the_period_of_a_counter_is_found(seed: int, period_ms: int) -> None:
    """Within 1 % from 20 ms on, wherever in its period the search begins."""
    clock = FakeClock(random.Random(seed).randrange(S))

    found = update_period(counter(clock, period_ms).read, clock=clock, sleep=clock.sleep)

    assert found.ns == pytest.approx(period_ms * MS, rel=0.01 if period_ms >= 20 else 0.1)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"reason": "no_permission: energy_uj"}, "no_permission"),
        ({"period_ns": 3 * S}, "below_resolution"),
        ({"period_ns": 3_600 * S}, "not_supported"),
    ],
)
def test_a_counter_without_a_period_says_why(changes: dict[str, object], code: str) -> None:
    """It has none, it ticks too rarely, or it shows 0 for ever and is not there (pitfall 14)."""
    clock = FakeClock()
    if changes.get("period_ns") == 3 * S:
        clock.advance(100 * S)
    silent = FakeCounter(
        clock,
        PowerCurve(),
        **{"period_ns": 20 * MS} | changes,  # type: ignore[arg-type]
    )

    found = update_period(silent.read, clock=clock, sleep=clock.sleep)

    assert found.ns is None
    assert code == found.reason.partition(":")[0]


def test_an_edge_lies_just_after_a_tick(seed: int) -> None:
    """Within the poll interval that it names."""
    clock = FakeClock(random.Random(seed).randrange(S))

    edge = gauge(clock, counter(clock)).edge()

    past_ns = edge.at_ns % (20 * MS)
    assert edge.synced
    assert past_ns <= edge.slack_ns <= MS


def test_a_counter_that_stops_ticking_gives_a_wide_edge() -> None:
    """One period wide, not synced, after four periods and a second."""
    clock = FakeClock(S)

    edge = gauge(clock, counter(clock, 3_600_000)).edge()

    assert (False, 20 * MS) == (edge.synced, edge.slack_ns)
    assert 2 * S + 80 * MS <= edge.at_ns <= 2 * S + 82 * MS


@pytest.mark.parametrize(
    ("before", "after", "wraps_at", "joules", "code"),
    [
        (1_000_000, 3_500_000, None, 2.5, ""),
        (9_000_000, 500_000, 10_000_000, 1.5, ""),
        (9_000_000, 500_000, None, None, "counter_reset"),
        (2_000_000, 1_000_000, 10_000_000, None, "counter_reset"),
        (1_000_000, 1_000_000, None, None, "below_resolution"),
    ],
)
def test_a_gain_is_a_difference_a_known_wrap_or_nothing(
    before: int, after: int, wraps_at: int | None, joules: float | None, code: str
) -> None:
    """Backwards without a wrap is a reset; no gain at all is no zero joules (pitfall 14)."""
    clock = FakeClock()
    on = gauge(clock, counter(clock, wraps_at_uj=wraps_at))

    found, why = on.joules(Edge(at_ns=0, energy_uj=before), Edge(at_ns=S, energy_uj=after))

    assert (joules, code) == (found, why.partition(":")[0])


@given(
    begin=st.integers(0, 500 * MS),
    span=st.integers(200 * MS, 3 * S),
    slope=st.floats(-20, 20),
    level=st.floats(50, 700),
)
def test_the_trapezoid_is_exact_for_power_that_changes_evenly(
    begin: int, span: int, slope: float, level: float
) -> None:
    """Samples 10 ms apart, window ends between them."""
    samples = [(at, level + slope * at / S) for at in range(0, 4 * S, 10 * MS)]

    found, why = integrated(samples, begin_ns=begin, end_ns=begin + span, most_ns=20 * MS)

    middle = level + slope * (begin + span / 2) / S
    assert "" == why
    assert found == pytest.approx(middle * span / S, rel=1e-9)


@pytest.mark.parametrize("lost", [range(0, 4), range(40, 44), range(97, 101)])
def test_power_is_not_made_up_where_samples_are_missing(lost: range) -> None:
    """A gap at the start, in the middle and at the end: null, `not_probed`."""
    samples = [(at * 10 * MS, None if at in lost else 100.0) for at in range(101)]

    found, why = integrated(samples, begin_ns=0, end_ns=S, most_ns=20 * MS)

    assert (None, "not_probed") == (found, why.partition(":")[0])


def test_power_samples_stand_in_for_a_counter() -> None:
    """A quarter-sighted chip carries the note, and the samples are asked for around the window."""
    clock = FakeClock()
    asked: list[tuple[int, int]] = []

    def samples(begin_ns: int, end_ns: int) -> list[tuple[int, float | None]]:
        asked.append((begin_ns, end_ns))
        return [(at, 250.0) for at in range(0, 10 * S, 10 * MS)]

    on = PowerGauge(samples, Period(ns=20 * MS), clock=clock, chip="GH100")
    begin = on.edge()
    clock.advance(5 * S)
    end = on.edge()

    assert (pytest.approx(1250.0), "") == on.joules(begin, end)
    assert ("integrated", ("duty_25pct",)) == (on.method, on.notes)
    assert [(-40 * MS, 5 * S + 40 * MS)] == asked
    assert () == PowerGauge(samples, Period(ns=20 * MS), clock=clock, chip="AD102").notes
