"""What was not measured is null in every export, with a reason, and never 0.

Sensors are taken away at random from what children leave; every number they do read is far from 0.
So a 0 that appears where a sensor is missing was made up.
"""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm import identity, interchange, schema
from farm.catalog import columns
from farm.catalog.rows import Row
from farm.export import KINDS
from farm.interchange import Origin, Request
from farm.profiles import document
from farm.report import html, making, text
from farm.store import LocalStore, card_key, manifest_key, profile_key
from farm.trace import blocks
from tests.farm import make as farm_make
from tests.workers import make, scripted
from workers.assembly import Attempt
from workers.energy import absent
from workers.measure import measure
from workers.record import Assignment, CudaPeaks, DeviceReading, MemoryReading, Record

NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
RUN = "r-20261130-101500-7f3a91"
_EDGE = ("run_ns", "steal_ticks", "psi_some_us")
_MEMORY = ("rss_after_load_bytes", "rss_peak_bytes", "rss_peak_lifetime_bytes", "pss_bytes")
_COST = (
    *("params_total", "params_unique_bytes", "flops_per_batch", "activation_peak_bytes"),
    *("bytes_lower_bound_per_batch", "flops_coverage"),
)
SENSORS = (*_EDGE, *_MEMORY, *_COST, "first", "throughput", "memory", "energy", "layers", "cost")
# Which paths of a profile a missing sensor leaves without a number.
GONE = {
    "run_ns": ["repeats.0.wait_share"],
    "steal_ticks": ["repeats.0.steal_share"],
    "psi_some_us": ["repeats.0.psi_share"],
    "rss_after_load_bytes": [
        "memory.cpu_rss_after_load_bytes",
        "memory.cpu_inference_delta_bytes",
    ],
    "rss_peak_bytes": ["memory.cpu_rss_peak_bytes", "memory.cpu_inference_delta_bytes"],
    "rss_peak_lifetime_bytes": ["memory.cpu_rss_peak_lifetime_bytes"],
    "pss_bytes": ["memory.cpu_pss_bytes"],
    "memory": ["memory.cpu_rss_peak_bytes", "memory.cpu_pss_bytes"],
    "first": ["repeats.0.first_ms"],
    "throughput": ["throughput.throughput_items_per_s", "repeats.0.throughput_items_per_s"],
    "energy": ["energy"],
    "layers": ["layers"],
    "cost": ["cost", "estimate", "bounds"],
    "params_total": ["cost.params_total"],
    "params_unique_bytes": ["cost.params_unique_bytes"],
    "flops_per_batch": ["cost.flops_per_batch", "cost.flops_per_item", "cost.macs_per_item"],
    "activation_peak_bytes": ["cost.activation_peak_bytes"],
    "bytes_lower_bound_per_batch": ["cost.bytes_lower_bound_per_batch"],
    "flops_coverage": ["cost.flops_coverage"],
}


def clean(index: int, missing: set[str]) -> Record:
    """What a clean child reads when these sensors are missing."""
    ends = []
    for at in (1.0, 2.0):
        values: dict[str, Any] = {
            "wait_ns": int(at * 1e6),
            "steal_ticks": int(at),
            "psi_some_us": 5,
        }
        values |= {"run_ns": int(at * 1e9)}
        values |= {name: None for name in _EDGE if name in missing}
        ends.append(make.edge(at, **values))
    memory = MemoryReading(
        **{name: None if name in missing else (at + 3) << 20 for at, name in enumerate(_MEMORY)}
    )
    found = make.record(
        index,
        latency_edges=tuple(ends),
        memory=None if "memory" in missing else memory,
        energy=absent("not_supported: no counter") if "energy" in missing else None,
    )
    gone: dict[str, Any] = {}
    if "first" in missing:
        gone["first_ms"] = None
    if "throughput" in missing:
        gone |= {"throughput_iterations": None, "throughput_window_s": None}
    return msgspec.structs.replace(found, **gone)


def instrumented(missing: set[str]) -> Record:
    found = make.instrumented()
    assert found.cost is not None
    unread = {name: None for name in _COST if name in missing}
    reasons = dict.fromkeys(unread, "not_supported: nothing of it was seen")
    cost = msgspec.structs.replace(found.cost, **unread, reasons=reasons)
    return msgspec.structs.replace(
        found,
        cost=None if "cost" in missing else cost,
        layers=None if "layers" in missing else found.layers,
        reasons={"flops": "error: fell over", "layers": "error: fell over"},
    )


def measured(folder: Path, missing: set[str]) -> schema.Profile:
    def run(asked: Assignment) -> tuple[Any, tuple[str, ...]]:
        is_clean = not asked.instruments
        arrays = make.arrays(seed=asked.index) if is_clean else make.layer_arrays()
        np.savez(Path(asked.folder) / "samples.npz", **dict(arrays))  # type: ignore[arg-type]
        record = clean(asked.index, missing) if is_clean else instrumented(missing)
        return scripted.ended(record=record), ()

    attempt = Attempt(
        order=make.order(1),
        run_id=RUN,
        attempt=1,
        fence=7,
        node="n1",
        worker="n1/cpu:0#a",
        device=make.device(),
        card=make.card(),
        card_id=identity.content_id(schema.encode(make.card())),
        threads=1,
        environment="default",
        flags=(),
        memory_limit="rlimit",
        queue_s=0.5,
        farm_version="0.1.0",
        folder=folder,
        instruments=("layers", "flops"),
    )
    return measure(attempt, run=run, now=lambda: NOW)


def at(plain: Any, path: str) -> Any:
    """What lies at a path; None below a null."""
    for part in path.split("."):
        if plain is None:
            return None
        plain = plain[int(part)] if isinstance(plain, list) else plain[part]
    return plain


missing_sensors = st.sets(st.sampled_from(SENSORS))
FUZZED = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@given(missing_sensors)
@FUZZED
def test_a_missing_sensor_is_null_with_a_reason_in_the_profile(
    tmp_path_factory: pytest.TempPathFactory, missing: set[str]
) -> None:
    """The null paths are the keys of `null_reasons`, and each missing sensor's are among them."""
    profile = measured(tmp_path_factory.mktemp("attempt"), missing)

    plain = json.loads(schema.encode(profile))

    for path in (path for sensor in missing for path in GONE[sensor]):
        assert at(plain, path) is None
    told = {key: value for key, value in plain.items() if key != "null_reasons"}
    assert set(schema.null_paths(told)) == set(plain["null_reasons"])


@given(missing_sensors)
@FUZZED
def test_a_flat_row_and_a_listed_one_hold_no_made_up_number(
    tmp_path_factory: pytest.TempPathFactory, missing: set[str]
) -> None:
    """Rows of `query`, `export --as rows` and `profiles list`."""
    assert {"rows", "documents", "series"} <= set(KINDS)
    profile = measured(tmp_path_factory.mktemp("attempt"), missing)
    plain, row = json.loads(schema.encode(profile)), Row("1" * 64, "k", profile)

    flat = columns.flat(row)
    listed = json.loads(msgspec.json.encode(document(row)))

    for column in columns.COLUMNS:
        if column.path and _is_null(plain, column.path):
            assert flat[column.name] is None, column.name
    assert ("throughput" in missing) == (listed["throughput_items_per_s"] is None)


@given(missing_sensors)
@settings(FUZZED, max_examples=10)
def test_a_report_holds_no_made_up_number(
    tmp_path_factory: pytest.TempPathFactory, missing: set[str]
) -> None:
    """JSON, CSV, table and page, from a store."""
    store = LocalStore(tmp_path_factory.mktemp("store"), fsync=False)
    profile = measured(tmp_path_factory.mktemp("attempt"), missing)
    expected = farm_make.manifest([profile.job], run_id=RUN)
    _put(store, profile, expected)

    report = making.made(store, expected, now=NOW)
    plain = json.loads(schema.encode(report))
    (line,) = csv.DictReader(io.StringIO(text.comma_separated(report)))

    figures = plain["cells"][0]["figures"]
    sources = {
        "throughput_items_per_s": "throughput" in missing,
        "cpu_rss_peak_bytes": bool({"memory", "rss_peak_bytes"} & missing),
    }
    for name, gone in sources.items():
        assert gone == (figures[name] is None)
        assert gone == (line[name] == "")
        assert not gone or line[f"{name}_reason"]
    assert html.page(report)


@given(missing_sensors)
@settings(FUZZED, max_examples=20)
def test_a_callable_json_holds_no_made_up_number(
    tmp_path_factory: pytest.TempPathFactory, missing: set[str]
) -> None:
    profile = measured(tmp_path_factory.mktemp("attempt"), missing)
    request = Request(model="m:f", inputs={}, inputs_sha256="0" * 64)
    unknown = dict.fromkeys(("commit", "dirty", "container_image", "host_load_1m"))
    origin = Origin(**unknown, reasons=dict.fromkeys(unknown, "not_supported"))

    made = interchange.of_profile(
        profile, [np.full(20, 1.5)], request, origin=origin, card=None, profile_id=None
    )
    plain = json.loads(interchange.encode(made))

    gone = bool({"memory", "rss_peak_lifetime_bytes"} & missing)
    assert gone == (plain["memory"]["cpu_process_lifetime_peak_mb"] is None)
    assert plain["memory"]["cuda_peak_allocated_mb_by_visible_device"] is None
    assert {None} == {
        plain["system_card"][name] for name in ("gpu_name", "gpu_memory_gb", "driver_version")
    }
    assert "NaN" not in json.dumps(plain)


def test_the_spread_of_one_iteration_is_an_empty_cell_of_the_layer_csv() -> None:
    """n = 1 has no sample deviation (C3)."""
    table = farm_make.layer_table("a", iterations=1)
    row = msgspec.structs.replace(table.rows[0], std_ms=None)

    lines = blocks.text(
        blocks.rows_of(msgspec.structs.replace(table, rows=[row])), iterations=1
    ).splitlines()

    assert "" == next(csv.DictReader(lines))["std_dev"]


def test_a_device_without_a_counter_has_no_peak_and_no_time() -> None:
    """Torch's getter answers 0 where there is no allocator: no field is made of it."""
    peaks = CudaPeaks(
        visible_index=0,
        allocated_peak_bytes=None,
        reserved_peak_bytes=None,
        requested_peak_bytes=None,
        inactive_split_peak_bytes=None,
        alloc_retries=None,
        reasons={},
    )
    from workers import figures, resources

    memory = MemoryReading(
        rss_after_load_bytes=1,
        rss_peak_bytes=2,
        rss_peak_lifetime_bytes=3,
        pss_bytes=4,
        cuda=[peaks],
    )
    reading = DeviceReading(enqueue_bound=False, reliable=False, reason="error: no events")
    arrays = {**make.arrays(), "gpu_time_ns": np.array([]), "enqueue_ns": np.array([])}
    taken = figures.taken(
        make.record(memory=memory, device=reading), arrays, batch=1, neighbours=()
    )

    block, nulls = resources.memory([taken])
    time, why = resources.gpu_time([taken])

    assert {None} == {getattr(block, name) for name in nulls if "." not in name}
    assert time is not None
    assert (0, None, None) == (time.n, time.p50_ms, time.enqueue_p50_ms)
    assert "error: no events" == why["p50_ms"]


def _is_null(plain: Any, path: str) -> bool:
    try:
        return at(plain, path) is None
    except (KeyError, IndexError):
        return True  # absent


def _put(store: LocalStore, profile: schema.Profile, expected: schema.Manifest) -> None:
    data = schema.encode(profile)
    card = schema.encode(make.card())
    store.put_new(card_key(identity.content_id(card)), card, media_type="application/json")
    key = profile_key("2026-11-30", profile.job_id, identity.content_id(data))
    store.put_new(key, data, media_type="application/json")
    manifest = schema.encode(expected)
    store.put_new(manifest_key(expected.run_id), manifest, media_type="application/json")
