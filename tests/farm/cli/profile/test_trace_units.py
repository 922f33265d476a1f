"""Every metric of a trace has the unit that its name tells."""

import pytest

from farm.cli.profile import trace_units
from tests.farm.trace import g8

UNITS = {
    "step_ms": "ms",
    "step_ms_mean": "ms",
    "step_ms_cv": "of 1",
    "step_ms_source": "",
    "bound": "",
    "memory_pressure": "",
    "unique_kernels": "",
    "gpu_concurrency": "",
    "gpu_util": "of 1",
    "gpu_util_0": "of 1",
    "gpu_active": "of 1",
    "op_cover": "of 1",
    "dataload_frac": "of 1",
    "mean_kernel_us": "µs",
    "tensorcore_pct": "%",
    "tensorcore_of_gemm_pct": "%",
    "peak_allocated_bytes": "bytes",
    "peak_vram_mb": "MB",
    "img_per_s": "images/s",
    "throughput_img_s": "images/s",
    "launches_per_step": "per step",
    "cuda_mallocs_per_step": "per step",
    "forward_kernels": "per step",
    "forward_ops": "per step",
    "forward_gpu_ms": "ms",
}


@pytest.mark.parametrize(("metric", "unit"), UNITS.items())
def test_the_name_of_a_metric_tells_its_unit(metric: str, unit: str) -> None:
    assert unit == trace_units.unit(metric)


def test_only_words_and_plain_numbers_have_none() -> None:
    without = {name for name in g8.analysis(g8.events()).metrics if not trace_units.unit(name)}

    assert {
        *("bound", "memory_pressure", "step_ms_source", "unique_kernels", "gpu_concurrency"),
    } == without
