"""An energy window over a scripted counter, power and clock (T10)."""

from dataclasses import replace

import msgspec
import pytest

from tests.workers.energy.rig import BUSY_W, IDLE_W, MS, Rig, S, Told, codes, nulls, window
from workers.energy import EnergyReading, Period, PowerGauge, least_ns, measure, reading, window_ns
from workers.energy.gauges import Edge


@pytest.mark.parametrize("period_ms", [20, 100])
@pytest.mark.parametrize("step_ms", [0.3, 7.0, 29.0])
def test_a_window_of_five_seconds_is_within_one_percent(
    seed: int, period_ms: int, step_ms: float
) -> None:
    """A sensor that sees a quarter of the time, a load that it does not know, any phase (T10).

    The bound: an edge is off by 0.6 ms of 5 s, the last period by one step of (300 − 60) W, and the
    ripple, whose beat with the period is 7 ticks, by under 0.2 %.
    """
    rig = Rig(seed, period_ms, step_ms)

    found = measure(rig.meter(), rig.run, batch=4)

    begin, end = rig.edges[-2:]
    true_j = rig.curve.joules(begin.at_ns, end.at_ns)
    assert found.energy_gross_j == pytest.approx(true_j, rel=0.01)
    assert found.edge_j is not None
    assert found.energy_gross_j is not None
    assert abs(found.energy_gross_j - true_j) <= found.edge_j + 0.002 * true_j
    assert {"energy_uncertainty_j"} == nulls(found)


def test_what_one_item_costs_is_the_load_alone(seed: int) -> None:
    """Per iteration and per item as the load was scripted, mean and idle power, net of idling."""
    rig = Rig(seed, period_ms=20)

    found = measure(rig.meter(), rig.run, batch=4)

    step_j = BUSY_W * 7e-3
    assert found.energy_per_iteration_j == pytest.approx(step_j, rel=0.01)
    assert found.energy_per_item_j == pytest.approx(step_j / 4, rel=0.01)
    assert found.power_idle_w == pytest.approx(IDLE_W, rel=0.01)
    assert found.power_mean_w == pytest.approx(BUSY_W, rel=0.01)
    assert found.energy_net_j == pytest.approx((BUSY_W - IDLE_W) * 5.0, rel=0.015)
    assert found.window_s == pytest.approx(5.03, abs=0.03)
    assert ("counter", "device", 1) == (found.energy_method, found.energy_scope, found.windows)
    assert (50.0, 50.0) == (found.temperature_before_c, found.temperature_after_c)


def test_a_window_ends_where_the_counter_ticks() -> None:
    """5 s or 50 periods, in whole periods; at least 1 s or 5 periods say something."""
    assert [5 * S, 5 * S, 10 * S] == [window_ns(Period(ns=n * MS)) for n in (20, 100, 200)]
    assert 5_010 * MS == window_ns(Period(ns=30 * MS))
    assert [S, 2 * S] == [least_ns(Period(ns=n * MS)) for n in (20, 400)]


def test_a_window_begins_at_a_random_place_of_the_period(seed: int) -> None:
    """Else every repeat would see the same part of a sensor's period."""
    rig = Rig(seed)
    idles: list[float] = []
    meter = rig.meter()

    def sleep(seconds: float) -> None:
        idles.append(seconds)
        rig.clock.sleep(seconds)

    for _ in range(40):
        measure(replace(meter, sleep=sleep), rig.run, batch=1)

    random_idles = [each for each in idles if each not in (5.0, 0.0005)]
    assert 40 == len(random_idles)
    assert 0.0 <= min(random_idles) <= max(random_idles) <= 0.1004
    # 40 uniform draws all in one half: 2 · 2^-40.
    assert min(random_idles) < 0.0502 < max(random_idles)


@pytest.mark.parametrize("period_ms", [20, 100])
@pytest.mark.parametrize("short_of", [1, 0.2])
def test_a_window_below_five_periods_or_a_second_is_null(
    seed: int, period_ms: int, short_of: float
) -> None:
    """`below_resolution`, and every figure of the block with it (T10)."""
    rig = Rig(seed, period_ms)
    meter = rig.meter()
    span = round(least_ns(meter.period) * short_of) - 1

    found = reading(meter, window(span), batch=1)

    assert {"below_resolution"} == {codes(found)[name] for name in nulls(found)}
    assert found.energy_gross_j is None


def test_a_wrap_is_undone_and_a_reset_is_null(seed: int) -> None:
    """The known range explains one step back; a reloaded driver is `counter_reset` (T10)."""
    plain = Rig(seed, period_ms=20)
    expected = measure(plain.meter(), plain.run, batch=1)
    begin_uj = plain.edges[-2].energy_uj or 0
    range_uj = 262_144_000_000
    start = {"wraps_at_uj": range_uj, "start_uj": range_uj - begin_uj - 700_000_000}
    wrapping = Rig(seed, period_ms=20, counted=start)
    reload_ns = plain.edges[-2].at_ns + 2 * S
    old = {"reset_at_ns": reload_ns, "start_uj": 10**12}
    broken = Rig(seed, period_ms=20, counted=old)

    wrapped = measure(wrapping.meter(), wrapping.run, batch=1)
    reset = measure(broken.meter(), broken.run, batch=1)

    assert (wrapping.edges[-1].energy_uj or 0) < (wrapping.edges[-2].energy_uj or 0)
    assert wrapped.energy_gross_j == pytest.approx(expected.energy_gross_j, abs=0.002)
    assert (None, "counter_reset") == (reset.energy_gross_j, codes(reset)["energy_gross_j"])


def test_a_clock_that_went_backwards_gives_no_energy(seed: int) -> None:
    """`error`, and no negative power (pitfall 14)."""
    rig = Rig(seed)

    found = reading(rig.meter(), window(-3 * S), batch=1)

    assert (None, "error") == (found.energy_gross_j, codes(found)["energy_gross_j"])


@pytest.mark.parametrize(
    ("others", "is_slice", "ran"),
    [([True], False, [0]), ([False, True], False, None), ([False], True, [0])],
)
def test_a_shared_device_has_no_energy_of_ours(
    seed: int, others: list[bool | None], is_slice: bool, ran: list[int] | None
) -> None:
    """Another process before or after, or a MIG slice: `shared_device`; the load runs anyway."""
    rig = Rig(seed, others=others)

    found = measure(rig.meter(is_slice=is_slice), rig.run, batch=1)

    assert "shared_device" == found.why.partition(":")[0]
    assert {"shared_device"} == {codes(found)[name] for name in nulls(found)}
    assert ran is None or ran == rig.asked
    assert 1 == len(rig.asked)


def test_not_knowing_who_else_is_there_is_told(seed: int) -> None:
    """An unknown never passes for a no: the figure stands, with the note."""
    rig = Rig(seed, others=[None])

    found = measure(rig.meter(), rig.run, batch=1)

    assert found.energy_gross_j is not None
    assert "sharing_unknown" in found.notes


@pytest.mark.parametrize("why", ["not_supported: no counter", "no_permission: energy_uj"])
def test_a_device_without_a_counter_has_no_energy(seed: int, why: str) -> None:
    """Null with the code of the sensor, never a zero, and the load still runs."""
    rig = Rig(seed, counted={"reason": why})

    found = measure(rig.meter(), rig.run, batch=1)

    assert why == found.why
    assert 1 == len(rig.asked)
    assert 0 not in [getattr(found, name) for name in found.__struct_fields__ if name != "windows"]


def test_idle_power_waits_for_the_device_to_cool(seed: int) -> None:
    """The 5 s count in which the temperature moved by 3 °C at most."""
    rig = Rig(seed, temperatures=[70.0, 60.0, 60.0, 55.0, 55.0, 53.0])
    began = rig.clock.now_ns

    found = measure(rig.meter(), rig.run, batch=1)

    assert found.power_idle_w == pytest.approx(IDLE_W, rel=0.01)
    assert rig.edges[-2].at_ns - began > 3 * 5 * S


def test_a_device_that_never_cools_has_no_idle_power(seed: int) -> None:
    """Null with `timed_out` for idle and net; the gross energy stands."""
    rig = Rig(seed, temperatures=[float(t) for t in range(100, 20, -4)])

    found = measure(rig.meter(), rig.run, batch=1)

    assert {"power_idle_w", "energy_net_j", "energy_uncertainty_j"} == nulls(found)
    assert ("timed_out", "timed_out") == (
        codes(found)["power_idle_w"],
        codes(found)["energy_net_j"],
    )


def test_a_device_without_a_thermometer_says_so(seed: int) -> None:
    """Both temperatures null, and that idling was not watched."""
    rig = Rig(seed, temperatures=[None])

    found = measure(rig.meter(), rig.run, batch=1)

    assert "not_supported" == codes(found)["temperature_after_c"]
    assert "idle_temperature_unknown" in found.notes
    assert found.power_idle_w is not None


def test_a_load_below_idling_has_no_net_energy(seed: int) -> None:
    """A negative joule would be an answer to nothing."""
    rig = Rig(seed)
    on = rig.meter()

    found = reading(on, window(5 * S, gained_uj=100_000_000, idle_w=IDLE_W), batch=1)

    assert (100.0, None) == (found.energy_gross_j, found.energy_net_j)
    assert "below_resolution" == codes(found)["energy_net_j"]


def test_a_window_that_missed_its_ticks_is_wider(seed: int) -> None:
    """Unsynced edges are a period wide each, and the note says so."""
    rig = Rig(seed)
    on = rig.meter()
    synced = reading(on, window(5 * S), batch=1)

    wide = reading(on, window(5 * S, synced=False, slack_ns=100 * MS), batch=1)

    assert ([], ["edges_not_synced"]) == (synced.notes, wide.notes)
    assert synced.edge_j is not None
    assert wide.edge_j is not None
    assert wide.edge_j - synced.edge_j == pytest.approx(300.0 * 2 * 0.0995)


@pytest.mark.parametrize("period_ms", [20, 100])
def test_power_samples_give_the_energy_too(seed: int, period_ms: int) -> None:
    """The trapezoid at half the period is within 1 % at 5 s, and its method is `integrated`."""
    rig = Rig(seed, period_ms, step_ms=1.0)
    period = Period(ns=period_ms * MS)
    half = period_ms * MS // 2

    def samples(begin_ns: int, end_ns: int) -> list[tuple[int, float | None]]:
        # What a sensor with a window of its whole period would have said at each moment.
        first = begin_ns // half * half
        return [
            (at, rig.curve.joules(at - half, at + half) / (2 * half / S))
            for at in range(first, end_ns + half, half)
        ]

    gauge = PowerGauge(samples, period, clock=rig.clock, chip="GA100")
    edges: list[Edge] = []
    meter = replace(rig.meter(), gauge=Told(gauge, edges), period=period)

    found = measure(meter, rig.run, batch=1)

    true_j = rig.curve.joules(edges[-2].at_ns, edges[-1].at_ns)
    assert found.energy_gross_j == pytest.approx(true_j, rel=0.01)
    assert ("integrated", ["duty_25pct"]) == (found.energy_method, found.notes)


def test_a_reading_travels_as_json(seed: int) -> None:
    """It goes from the child to its parent as a document."""
    rig = Rig(seed)
    found = measure(rig.meter(), rig.run, batch=2)

    assert found == msgspec.json.decode(msgspec.json.encode(found), type=EnergyReading)
