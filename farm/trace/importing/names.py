"""The names that `farm profile get` knows, whatever a file tells. Source: `seeds.md` §3."""

from typing import Final

REPORTED: Final = "reported"  # the source of a step time that another tool tells
NAMES: Final = (
    *("bound", "cuda_mallocs_per_step", "dataload_frac", "dataload_ms", "gpu_busy_ms", "gpu_util"),
    *("host_overhead_ms", "img_per_s", "kernels_per_step", "latency_p50_ms", "latency_p90_ms"),
    *("latency_p99_ms", "launches_per_step", "mean_kernel_us", "memcpy_ms", "memory_pressure"),
    *("nms_ms", "ops_per_step", "peak_vram_mb", "step_ms", "tensorcore_pct", "throughput_img_s"),
    "unique_kernels",
)
