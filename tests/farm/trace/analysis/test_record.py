"""The document that every verb reads: finite, with reasons, and as it was when it comes back."""

import json

import pytest

from farm import schema
from farm.trace.analysis.record import Analysis
from tests.farm.trace import g8

# Of the original `profile.json`, those that a trace can tell.
ORIGINAL = (
    *("trace", "model", "bound", "bound_why", "step_ms", "img_per_s", "dataload_ms"),
    *("dataload_frac", "gpu_util", "gpu_util_raw", "memory_pressure", "cuda_mallocs_per_step"),
    *("host_overhead_ms_per_step", "launches_per_step", "gpu_busy_ms_per_step"),
    *("mean_kernel_us", "kernels_per_step", "unique_kernels", "memcpy_ms_per_step"),
    *("tensorcore_pct", "peak_vram_mb", "window", "metrics", "categories", "phases"),
    *("kernels_by_phase", "ops_by_phase", "kernels", "ops"),
)


@pytest.mark.parametrize("made", [g8.events(), g8.host()], ids=["gpu", "cpu"])
def test_it_comes_back_as_it_was_with_a_reason_for_each_null(made) -> None:
    """`encode` refuses a null without its reason, and numbers that are none."""
    found = g8.analysis(made)

    data = schema.encode(found)

    assert data.startswith(b'{"schema":"farm.analysis/v1",')
    assert found == schema.decode(data, Analysis)


def test_it_has_the_keys_of_the_original() -> None:
    assert [] == [each for each in ORIGINAL if each not in Analysis.__struct_fields__]


def test_a_reason_is_an_object_with_its_names() -> None:
    """A list would say nothing to who reads the JSON."""
    plain = json.loads(schema.encode(g8.analysis(g8.events(busy=0.9))))

    (reason,) = plain["reasons"]
    assert ("gpu_util", 0.9, 0.8) == (
        reason["metric"],
        pytest.approx(reason["value"]),
        reason["threshold"],
    )
