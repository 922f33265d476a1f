"""A sample tells a number from a sensor that has none."""

from workers.fakes import FakeClock, FakeSensors
from workers.telemetry import take


def test_a_sensor_without_a_number_is_none_with_its_code() -> None:
    """What the source does not name was not asked for; nothing becomes 0."""
    sensors = FakeSensors(
        FakeClock(), usual={"sm_clock_hz": 1.5e9, "events": 0}, missing={"power_w": "gpu_lost"}
    )

    sample = take(sensors, at_ns=17)

    assert (17, 1.5e9, 0) == (sample.at_ns, sample.sm_clock_hz, sample.events)
    assert (None, None) == (sample.power_w, sample.temperature_c)
    assert ("gpu_lost", "not_probed") == (
        sample.missing["power_w"],
        sample.missing["temperature_c"],
    )
