"""`farm.analysis/v1`: what a trace says, with every key of the original `profile.json`.

Units are those of the original: `_mb` is decimal MB (C8). What only a capture knows, such as
throughput and stages, is null with its reason in the analysis of a trace file.
"""

from typing import Literal

from farm.schema import Stored
from farm.trace.analysis.bounds import Reason
from farm.trace.analysis.diagnostics import Diagnostics
from farm.trace.analysis.quality import Confidence, Quality
from farm.trace.analysis.tables import CategoryRow, KernelRow, OpRow, PhaseRow


class Over(Stored, frozen=True, kw_only=True):
    """The window: wall_ms, and how many steps are in it."""

    wall_ms: float
    real_steps: int


class Analysis(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.analysis/v1"):
    """What a trace says. The numbers that the original had stand beside each other, and all of them
    by the names of `farm profile get` in `metrics`. mode: of a capture.
    """

    trace: str
    model: str | None
    mode: Literal["training", "inference"] | None
    bound: str
    bound_why: str
    reasons: list[Reason]
    confidence: Confidence
    attribution: Literal["launch", "kernel_ts"]
    inferred_forward: bool
    step_ms: float
    img_per_s: float | None
    dataload_ms: float
    dataload_frac: float
    gpu_util: float | None
    gpu_util_raw: float | None
    memory_pressure: bool
    cuda_mallocs_per_step: float
    host_overhead_ms_per_step: float
    launches_per_step: float
    gpu_busy_ms_per_step: float | None
    mean_kernel_us: float | None
    kernels_per_step: float
    unique_kernels: int
    memcpy_ms_per_step: float | None
    tensorcore_pct: float | None
    peak_vram_mb: float | None
    window: Over
    metrics: dict[str, float | int | bool | str | None]
    categories: list[CategoryRow]
    phases: list[PhaseRow]
    kernels: list[KernelRow]
    kernels_by_phase: dict[str, list[KernelRow]]
    ops: list[OpRow]
    ops_by_phase: dict[str, list[OpRow]]
    counts: dict[str, int]
    diagnostics: Diagnostics
    quality: Quality
    null_reasons: dict[str, str]
