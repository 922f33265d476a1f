"""Heat of a CPU in a tree that a test writes."""

from typing import Any

import pytest

from workers.host.thermal import temperature_c, throttle_count


def test_the_hottest_package_counts(machine: Any) -> None:
    """Of the thermal zones and sensors that belong to a CPU; others are not asked."""
    machine.write("sys/class/thermal/thermal_zone0/type", "acpitz\n")
    machine.write("sys/class/thermal/thermal_zone0/temp", "99000\n")
    machine.write("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
    machine.write("sys/class/thermal/thermal_zone1/temp", "54000\n")
    machine.write("sys/class/hwmon/hwmon2/name", "k10temp\n")
    machine.write("sys/class/hwmon/hwmon2/temp1_input", "61500\n")
    machine.write("sys/class/hwmon/hwmon3/name", "nvme\n")
    machine.write("sys/class/hwmon/hwmon3/temp1_input", "80000\n")

    assert 61.5 == temperature_c(machine.host)


def test_a_host_without_sensors_has_no_temperature(machine: Any) -> None:
    """None, also for a sensor that cannot be read."""
    machine.write("sys/class/hwmon/hwmon0/name", "coretemp\n")

    assert temperature_c(machine.host) is None


def test_slowdowns_are_counted_over_the_leased_cores(machine: Any) -> None:
    """Of the cores and of their packages, since boot."""
    for cpu, core in ((0, 3), (1, 4), (2, 100)):
        folder = f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
        machine.write(f"{folder}/core_throttle_count", f"{core}\n")
        machine.write(f"{folder}/package_throttle_count", "10\n")

    assert 27 == throttle_count(machine.host, [0, 1])


@pytest.mark.parametrize("cpus", [[0, 1], []])
def test_a_count_that_is_not_whole_is_none(machine: Any, cpus: list[int]) -> None:
    """One core that does not say makes it unknown; so does no core."""
    folder = "sys/devices/system/cpu/cpu0/thermal_throttle"
    machine.write(f"{folder}/core_throttle_count", "0\n")

    assert throttle_count(machine.host, cpus) is None
