"""What an energy window found, and what several windows say together."""

from collections.abc import Callable, Sequence
from math import hypot
from statistics import median, stdev
from typing import Final

import msgspec

from workers.record import EnergyReading, Method, Scope

# What the counters of one device are wrong by alike (`measurement.md` §11): it cancels between runs
# on that device.
_GAIN_SHARE: Final = 0.05
_MEDIANS: Final = (
    *("energy_gross_j", "energy_net_j", "energy_per_iteration_j", "energy_per_item_j"),
    *("power_mean_w", "power_idle_w", "window_s", "update_period_ms"),
    *("temperature_before_c", "temperature_after_c", "edge_j"),
)


def absent(
    why: str,
    *,
    period_ms: float | None = None,
    method: Method | None = None,
    scope: Scope | None = None,
    notes: Sequence[str] = (),
) -> EnergyReading:
    """Return a reading without a number: every null carries the reason, a code with a detail."""
    return explained(
        EnergyReading(
            update_period_ms=period_ms,
            energy_method=method,
            energy_scope=scope,
            notes=list(notes),
        ),
        lambda _field: why,
    )


def explained(reading: EnergyReading, why: Callable[[str], str]) -> EnergyReading:
    """Return the reading with a reason for every null of it that has none yet."""
    nulls = [name for name in reading.__struct_fields__ if getattr(reading, name, None) is None]
    reasons = {name: reading.reasons.get(name) or why(name) for name in nulls}
    return msgspec.structs.replace(reading, reasons=reasons)


def combined(readings: Sequence[EnergyReading], *, wanted: int) -> EnergyReading:
    """Return the median of every figure over the windows that have a number, one per repeat.

    The uncertainty is √(edge² + between-window² + (0.05·gross)²), where the windows' scatter is
    that of the energy per iteration; of one window it is null, for its scatter is not known.
    wanted: windows that were asked for; fewer is the note `windows_missing`.
    """
    good = [each for each in readings if each.energy_gross_j is not None]
    if not good:
        return readings[0] if readings else absent("not_requested")
    fields: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name in _MEDIANS:
        known = [value for each in good if (value := getattr(each, name)) is not None]
        fields[name] = median(known) if known else None
        if not known:
            reasons[name] = good[0].reasons[name]
    notes = {note for each in good for note in each.notes}
    if len(good) < wanted:
        notes.add("windows_missing")
    reading = EnergyReading(
        **fields,
        energy_uncertainty_j=_uncertainty_j(good),
        energy_method=good[0].energy_method,
        energy_scope=good[0].energy_scope,
        notes=sorted(notes),
        windows=len(good),
        iterations=sum(each.iterations or 0 for each in good),
        reasons=reasons,
    )
    return explained(reading, lambda _field: "single_repeat")


def _uncertainty_j(good: Sequence[EnergyReading]) -> float | None:
    gross = median(each.energy_gross_j or 0.0 for each in good)
    each_j = [each.energy_per_iteration_j for each in good]
    known = [value for value in each_j if value]
    if len(known) < 2:
        return None
    between = stdev(known) / median(known) * gross
    edge = max(each.edge_j or 0.0 for each in good)
    return hypot(edge, between, _GAIN_SHARE * gross)
