"""Scripted sensors follow their script."""

from workers.fakes import Disturbance, FakeClock, FakeSensors

S = 1_000_000_000


def test_a_disturbance_lasts_as_long_as_its_script_says() -> None:
    """Its bits and its clock while it lasts; its counter grows meanwhile and then stays."""
    clock = FakeClock()
    sensors = FakeSensors(
        clock, [Disturbance(begin_ns=S, end_ns=3 * S, events=0x24, sm_clock_hz=1e9)]
    )

    before = sensors.read()
    clock.advance(2 * S)
    during = sensors.read()
    clock.advance(2 * S)
    after = sensors.read()

    assert (0, 1.98e9, 0) == (before["events"], before["sm_clock_hz"], before["sw_thermal_ns"])
    assert (0x24, 1e9) == (during["events"], during["sm_clock_hz"])
    assert (S, S, 0) == (during["sw_thermal_ns"], during["sw_power_ns"], during["hw_thermal_ns"])
    assert (0, 1.98e9, 2 * S) == (after["events"], after["sm_clock_hz"], after["sw_thermal_ns"])


def test_a_sensor_that_fails_or_is_absent_gives_a_code() -> None:
    """`error` while it fails, the code of the device for one that it never had."""
    clock = FakeClock()
    sensors = FakeSensors(
        clock,
        [Disturbance(begin_ns=0, end_ns=S, lost=("events",))],
        missing={"temperature_c": "not_supported"},
    )

    during = sensors.read()
    clock.advance(2 * S)

    assert ("error", "not_supported") == (during["events"], during["temperature_c"])
    assert 0 == sensors.read()["events"]
