"""What several energy windows say together."""

from math import hypot

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.energy import EnergyReading, absent, combined


def window(gross_j: float, *, iterations: int = 100, **changes: object) -> EnergyReading:
    """One window of 5 s with everything known but its uncertainty."""
    reading = EnergyReading(
        energy_gross_j=gross_j,
        energy_net_j=gross_j - 300.0,
        energy_per_iteration_j=gross_j / iterations,
        energy_per_item_j=gross_j / iterations / 4,
        power_mean_w=gross_j / 5,
        power_idle_w=60.0,
        window_s=5.0,
        update_period_ms=20.0,
        energy_method="counter",
        energy_scope="device",
        temperature_before_c=50.0,
        temperature_after_c=60.0,
        windows=1,
        iterations=iterations,
        edge_j=2.0,
        reasons={"energy_uncertainty_j": "single_repeat"},
    )
    return msgspec.structs.replace(reading, **changes)


IDLE_UNKNOWN = window(
    1400.0,
    power_idle_w=None,
    energy_net_j=None,
    reasons={
        "power_idle_w": "timed_out",
        "energy_net_j": "timed_out",
        "energy_uncertainty_j": "single_repeat",
    },
)


def test_the_headline_is_the_median_over_windows() -> None:
    """Of every figure; windows and iterations are counted."""
    found = combined([window(1500.0), window(1560.0), window(1530.0)], wanted=3)

    assert (1530.0, 1230.0, 15.3, 3.825) == (
        found.energy_gross_j,
        found.energy_net_j,
        found.energy_per_iteration_j,
        found.energy_per_item_j,
    )
    assert (3, 300, [], {}) == (found.windows, found.iterations, found.notes, found.reasons)


def test_the_uncertainty_adds_edge_scatter_and_gain() -> None:
    """√(edge² + between-window² + (0.05·gross)²), the scatter with n − 1."""
    found = combined([window(1500.0), window(1560.0)], wanted=2)

    between = 1530.0 * (30.0 * 2**0.5) / 1530.0
    assert found.energy_uncertainty_j == pytest.approx(hypot(2.0, between, 0.05 * 1530.0))


def test_windows_of_different_length_scatter_by_what_an_iteration_costs() -> None:
    """Twice the iterations for twice the energy is no scatter."""
    found = combined([window(1500.0), window(3000.0, iterations=200)], wanted=2)

    assert found.energy_uncertainty_j == pytest.approx(hypot(2.0, 0.05 * 2250.0))


def test_one_window_has_no_known_scatter() -> None:
    """Null, `single_repeat`: leaving the term out would call it zero."""
    found = combined([window(1500.0)], wanted=1)

    assert (None, "single_repeat") == (
        found.energy_uncertainty_j,
        found.reasons["energy_uncertainty_j"],
    )


def test_windows_without_energy_are_left_out_and_told() -> None:
    """The rest is the headline, with the note; of none the first reason is that of all."""
    lost = absent("counter_reset: the counter went back", period_ms=20.0, method="counter")

    found = combined([lost, window(1500.0), window(1560.0)], wanted=3)
    nothing = combined([lost, lost], wanted=2)

    assert (1530.0, 2, ["windows_missing"]) == (found.energy_gross_j, found.windows, found.notes)
    assert (None, "counter_reset: the counter went back") == (nothing.energy_gross_j, nothing.why)


def test_no_window_at_all_was_not_asked_for() -> None:
    """Null with `not_requested`."""
    assert "not_requested" == combined([], wanted=3).why


@given(
    st.lists(
        st.sampled_from(
            [
                window(1500.0),
                IDLE_UNKNOWN,
                absent("shared_device: another process"),
                absent("not_supported: no counter", notes=["duty_25pct"]),
            ]
        ),
        max_size=5,
    )
)
def test_every_null_has_a_reason_and_every_reason_a_null(readings: list[EnergyReading]) -> None:
    """And no figure is a zero that nobody measured."""
    found = combined(readings, wanted=3)

    figures = [name for name in found.__struct_fields__ if name not in ("windows", "notes")]
    assert {name for name in figures if getattr(found, name) is None} == set(found.reasons)
    assert 0 not in [getattr(found, name) for name in figures]
