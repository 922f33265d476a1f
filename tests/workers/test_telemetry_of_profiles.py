"""From what a device did in each pass to the block of a profile, and its samples to an artefact."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UNSET, structs, to_builtins

from farm import npz
from farm.errors import Bad
from farm.schema import PassTelemetry, Throttle, null_paths
from tests.workers import make
from workers import folders, resources
from workers.figures import Taken, taken
from workers.record import Watched

NONE = Throttle(sw_power_ms=0.0, sw_thermal_ms=0.0, hw_thermal_ms=0.0, power_brake_ms=0.0)


def seen(repeat: int, name: str = "latency", **more: Any) -> PassTelemetry:
    usual: dict[str, Any] = {
        "samples": 20,
        "sm_clock_median_hz": 1.9e9,
        "sm_clock_p5_hz": 1.8e9,
        "sm_clock_p95_hz": 1.95e9,
        "mem_clock_median_hz": 2.6e9,
        "temp_start_c": 40.0,
        "temp_max_c": 60.0,
        "power_mean_w": 500.0,
        "power_capped_share": 0.0,
        "idle_share": 0.0,
        "throttle": NONE,
        "event_reasons": [],
    }
    return PassTelemetry(repeat=repeat, name=name, **(usual | more))  # type: ignore[arg-type]


def repeats(*watched: Watched) -> list[Taken]:
    record = structs.replace(make.record(), watched=list(watched))
    return [taken(record, make.arrays(), batch=1, neighbours=())]


def test_a_slot_that_nobody_watches_has_no_such_block() -> None:
    assert (UNSET, {}) == resources.telemetry(repeats())


def test_the_whole_is_made_of_its_passes() -> None:
    """Medians of medians, the widest percentiles, the hottest moment, all time throttled."""
    slow = Throttle(sw_power_ms=5.0, sw_thermal_ms=0.0, hw_thermal_ms=120.0, power_brake_ms=0.0)
    found, nulls = resources.telemetry(
        repeats(
            Watched(seen=seen(0), base_clock_hz=1.5e9),
            Watched(
                seen=seen(
                    0,
                    "throughput",
                    sm_clock_median_hz=1.7e9,
                    sm_clock_p5_hz=1.2e9,
                    temp_max_c=71.0,
                    throttle=slow,
                    event_reasons=["sw_power_cap", "hw_thermal"],
                ),
                base_clock_hz=1.5e9,
            ),
        )
    )

    assert found is not UNSET
    assert (1.8e9, 1.2e9, 1.95e9, 40.0, 71.0, 500.0, 1.5e9) == (
        *(found.sm_clock_median_hz, found.sm_clock_p5_hz, found.sm_clock_p95_hz),
        *(found.temp_start_c, found.temp_max_c, found.power_mean_w, found.base_clock_hz),
    )
    assert (5.0, 120.0) == (found.throttle.sw_power_ms, found.throttle.hw_thermal_ms)
    assert ["hw_thermal", "sw_power_cap"] == found.event_reasons
    assert {} == nulls


def test_every_null_has_its_reason() -> None:
    """What one pass does not know the sum does not either; a median is of those that do."""
    blind = structs.replace(NONE, hw_thermal_ms=None)
    found, nulls = resources.telemetry(
        repeats(
            Watched(seen=seen(0)),
            Watched(
                seen=seen(1, power_mean_w=None, mem_clock_median_hz=None, throttle=blind),
                reasons={
                    "power_mean_w": "not_supported",
                    "mem_clock_median_hz": "no_permission",
                    "throttle.hw_thermal_ms": "counter_reset",
                },
            ),
        )
    )

    assert found is not UNSET
    assert set(null_paths(to_builtins(found))) == set(nulls)
    assert (None, "counter_reset") == (
        found.throttle.hw_thermal_ms,
        nulls["throttle.hw_thermal_ms"],
    )
    assert (500.0, 2.6e9) == (found.power_mean_w, found.mem_clock_median_hz)
    assert ("not_supported", "not_probed") == (
        nulls["passes.1.power_mean_w"],
        nulls["base_clock_hz"],
    )


# ── the samples ──────────────────────────────────────────────────────────────────────────────────


def left(folder: Path, index: int, columns: folders.Columns) -> None:
    at = folder / folders.repeat(index)
    at.mkdir()
    folders.keep_telemetry(at, columns)
    folders.keep(at, make.record(index), [])


def test_samples_are_columns_with_a_mask_each(tmp_path: Path) -> None:
    """In nanoseconds that no float could hold; a sensor without any number has no column."""
    begin = 4_503_599_627_370_497
    left(
        tmp_path,
        0,
        {"at_ns": [begin, begin + 7], "power_w": [None, 500.5], "mem_clock_hz": [None, None]},
    )
    left(tmp_path, 1, {"at_ns": [5]})

    data = folders.merged_telemetry(tmp_path)

    arrays = npz.read(io.BytesIO(data), called="it", raises=Bad)
    assert [begin, begin + 7] == arrays["at_ns_0"].tolist()
    assert np.int64 == arrays["at_ns_0"].dtype
    assert ([0.0, 500.5], [False, True]) == (
        arrays["power_w_0"].tolist(),
        arrays["power_w_valid_0"].tolist(),
    )
    assert [5] == arrays["at_ns_1"].tolist()
    assert not any(name.startswith("mem_clock") for name in arrays)


def test_a_slot_without_samples_leaves_no_artefact(tmp_path: Path) -> None:
    left(tmp_path, 0, {})

    assert b"" == folders.merged_telemetry(tmp_path)
