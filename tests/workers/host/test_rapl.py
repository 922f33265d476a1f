"""The energy counters of CPU packages in a powercap tree that a test writes."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.host.rapl import Rapl, growth

RANGE = 262_143_328_850


def package(machine: Any, name: str, energy_uj: int, *, title: str, wraps_at: int = RANGE) -> None:
    folder = f"sys/class/powercap/{name}"
    machine.write(f"{folder}/name", f"{title}\n")
    machine.write(f"{folder}/energy_uj", f"{energy_uj}\n")
    machine.write(f"{folder}/max_energy_range_uj", f"{wraps_at}\n")


def test_packages_are_added_and_their_parts_are_not(machine: Any) -> None:
    """Neither cores nor memory, nor the whole platform, nor the second path to one counter."""
    for energy in (1_000, 6_000):
        package(machine, "intel-rapl:0", energy, title="package-0")
        package(machine, "intel-rapl:0:0", energy, title="core")
        package(machine, "intel-rapl:1", 2 * energy, title="package-1")
        package(machine, "intel-rapl:2", 7 * energy, title="psys")
        package(machine, "intel-rapl-mmio:0", energy, title="package-0")
        if energy == 1_000:
            rapl = Rapl(machine.host)
            first = rapl.read()

    assert ((0, ""), (15_000, "")) == (first, rapl.read())
    assert ("rapl", "package", None) == (rapl.method, rapl.scope, rapl.wraps_at_uj)


def test_each_package_wraps_by_itself(machine: Any) -> None:
    """Their sum goes on, although neither is where it was."""
    package(machine, "intel-rapl:0", RANGE - 100, title="package-0")
    package(machine, "intel-rapl:1", 500, title="package-1", wraps_at=1_000)
    rapl = Rapl(machine.host)
    rapl.read()
    package(machine, "intel-rapl:0", 400, title="package-0")
    package(machine, "intel-rapl:1", 900, title="package-1", wraps_at=1_000)
    second = rapl.read()
    package(machine, "intel-rapl:1", 200, title="package-1", wraps_at=1_000)

    assert ((900, ""), (1_200, "")) == (second, rapl.read())


def test_a_package_that_starts_from_zero_is_a_reset(machine: Any) -> None:
    """A suspend sets it to 0: no wrap explains that, and the reading after goes on from there."""
    package(machine, "intel-rapl:0", RANGE // 3, title="package-0")
    rapl = Rapl(machine.host)
    rapl.read()
    package(machine, "intel-rapl:0", 10, title="package-0")
    value, why = rapl.read()
    package(machine, "intel-rapl:0", 60, title="package-0")

    assert (None, "counter_reset") == (value, why.partition(":")[0])
    assert (50, "") == rapl.read()


def test_a_host_without_packages_has_no_counter(machine: Any) -> None:
    """Virtual machines, containers and other systems: `not_supported`."""
    energy, why = Rapl(machine.host).read()

    assert (None, "not_supported") == (energy, why.partition(":")[0])


def test_a_counter_that_may_not_be_read_is_no_permission(machine: Any) -> None:
    """The folder is there and the file does not open: the usual case for a user."""
    package(machine, "intel-rapl:0", 5, title="package-0")
    package(machine, "intel-rapl:1", 5, title="package-1")
    hidden = machine.root / "sys/class/powercap/intel-rapl:1/energy_uj"
    hidden.unlink()
    os.symlink(machine.root / "nowhere", hidden)

    value, why = Rapl(machine.host).read()

    assert (None, "no_permission") == (value, why.partition(":")[0])
    assert "intel-rapl:1/energy_uj" in why


@given(st.lists(st.integers(0, 400), min_size=1, max_size=30))
def test_growth_over_wraps_is_what_was_used(steps: list[int]) -> None:
    """Added up over any readings that are less than half a range apart."""
    true = shown = found = 0
    for step in steps:
        true += step
        now = true % 1_000
        grown = growth(shown, now, wraps_at_uj=1_000)
        assert grown is not None
        found, shown = found + grown, now

    assert true == found


@pytest.mark.parametrize("wraps_at", [None, 0])
def test_a_counter_without_a_range_never_goes_back(wraps_at: int | None) -> None:
    """Then a smaller value is a reset."""
    assert growth(10, 9, wraps_at_uj=wraps_at) is None
    assert 0 == growth(10, 10, wraps_at_uj=wraps_at)
