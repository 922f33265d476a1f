"""The numbers of a trace by name."""

from typing import Final

from msgspec import Struct

MS: Final = 1e6  # ns


class Metrics(Struct, frozen=True, kw_only=True):
    """Per step unless it says otherwise. Of several devices it is the mean over them.

    A number of a GPU is None in the trace of a CPU, and the idle split where the clocks disagree.
    Source: `traces.md` §3, which each name is of.
    """

    step_ms: float
    step_ms_mean: float
    step_ms_cv: float | None
    step_ms_source: str
    gpu_busy_ms: float | None
    gpu_util_raw: float | None
    gpu_util: float | None
    gpu_util_by_device: dict[str, float]
    gpu_active: float | None
    gpu_concurrency: float | None
    kernel_sum_ms: float | None
    kernels_per_step: float
    mean_kernel_us: float | None
    unique_kernels: int
    launches_per_step: float
    graph_launches_per_step: float
    exposed_comm_ms: float | None
    exposed_memcpy_ms: float | None
    memcpy_ms: float | None
    dataload_ms: float
    dataload_frac: float
    idle_ms: float | None
    idle_host_ms: float | None
    idle_sync_ms: float | None
    idle_dataload_ms: float | None
    idle_kernel_wait_ms: float | None
    idle_graph_ms: float | None
    idle_unknown_ms: float | None
    host_overhead_ms: float
    cuda_mallocs_per_step: float
    tensorcore_pct: float | None
    tensorcore_unknown_pct: float | None
    tensorcore_of_gemm_pct: float | None
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    peak_relative_bytes: int | None
    op_cover: float
    ops_per_step: float
    ops_self_ms: float
    ops_total_ms: float
