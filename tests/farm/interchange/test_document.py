"""The laws of the file: its keys in their order, whole numbers of sense, nothing but JSON."""

import json
import math

import msgspec
import pytest

from farm.errors import Bad
from farm.interchange import encode, is_callable, realtime_budget
from tests.farm.interchange import calls

THEIRS = [
    *("timing_scope", "device", "unit", "warmup_calls", "measured_calls", "inputs", "latency"),
    *("latency_samples_ms", "memory", "system_card", "notes", "model_callable", "inputs_sha256"),
]
OURS = [
    *("schema", "latency_detail", "realtime_budget", "flags", "null_reasons", "card"),
    *("profile_id", "tags", "provenance", "cost"),
]


@pytest.mark.seed("S1.25", "S1.27", "S1.28")
def test_the_keys_of_the_other_tool_come_first_in_its_order_and_ours_behind():
    """Exact names, two spaces of indent."""
    data = encode(calls.document())

    plain = json.loads(data)
    assert [*THEIRS, *OURS] == list(plain)
    assert ["p50_ms", "p95_ms", "p99_ms", "mean_ms"] == list(plain["latency"])
    assert {"rgb": {"shape": [4, 6, 3], "dtype": "uint8"}} == plain["inputs"]
    assert [
        *("cpu_process_lifetime_peak_mb", "cuda_peak_allocated_mb_by_visible_device"),
    ] == list(plain["memory"])
    assert [
        *("gpu_name", "gpu_memory_gb", "gpu_count", "cpu_name", "ram_gb", "cuda_version"),
        *("pytorch_version", "python_version", "precision", "batch_size", "input_resolution"),
        *("os", "driver_version"),
    ] == list(plain["system_card"])
    assert data.startswith(b'{\n  "timing_scope": "')
    assert data.endswith(b"\n}\n")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.seed("S1.43")
def test_no_file_holds_nan_or_infinity(value):
    good = calls.document()
    bad = msgspec.structs.replace(
        good, memory=msgspec.structs.replace(good.memory, cpu_process_lifetime_peak_mb=value)
    )

    with pytest.raises(Bad):
        encode(bad)


def test_a_null_without_a_reason_is_not_written():
    """One map tells them all, those of the card inside too."""
    good = calls.document()

    for path in ("cost", "card.stable.cpu.governor", "system_card.gpu_name"):
        reasons = {key: why for key, why in good.null_reasons.items() if key != path}
        with pytest.raises(Bad, match=path):
            encode(msgspec.structs.replace(good, null_reasons=reasons))


@pytest.mark.seed("S1.46")
def test_the_share_of_a_period_is_p50_over_it_and_feasible_up_to_1():
    """G6: 142.7 ms at 5, 10 and 30 Hz."""
    found = realtime_budget(142.7)

    assert {"5": 0.7135, "10": 1.427, "30": 4.281} == {
        hz: pytest.approx(each.beta) for hz, each in found.items()
    }
    assert [True, False, False] == [each.feasible for each in found.values()]


@pytest.mark.seed("S1.46")
def test_a_whole_period_is_still_feasible():
    just_over = math.nextafter(100.0, 101.0)

    assert [True, False] == [realtime_budget(p50)["10"].feasible for p50 in (100.0, just_over)]


def test_a_file_is_known_by_its_schema_or_by_the_other_tools_keys():
    assert is_callable(json.loads(encode(calls.document())))
    assert is_callable(calls.FOREIGN)
    assert not is_callable({"schema": "farm.profile/v1", **calls.FOREIGN})
    assert not is_callable({"timing_scope": "callable"})
    assert not is_callable([])
