"""`farm.analysis/v1`: what a trace says, with every key of the original `profile.json`.

Units are those of the original: `_mb` is decimal MB (C8). What only a capture knows, such as
throughput and stages, is null with its reason in the analysis of a trace file.
"""

from typing import Literal

from msgspec import UNSET, UnsetType, field

from farm.schema import Stored, SystemCard
from farm.trace.analysis.bounds import Reason
from farm.trace.analysis.diagnostics import Diagnostics
from farm.trace.analysis.quality import Confidence, Quality
from farm.trace.analysis.tables import CategoryRow, KernelRow, OpRow, PhaseRow
from farm.trace.analysis.timings import Timings

Setting = float | int | bool | str | list[str] | None


class Over(Stored, frozen=True, kw_only=True):
    """The window: wall_ms, and how many steps are in it."""

    wall_ms: float
    real_steps: int


class Percentiles(Stored, frozen=True, kw_only=True):
    """How long an iteration took, synchronised at both ends, over all n of them."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    mean_ms: float
    min_ms: float
    max_ms: float
    n: int


class PhaseGpu(Stored, frozen=True, kw_only=True):
    """The device time of a phase alone, as the original lists it too."""

    phase: str
    gpu_ms_per_step: float | None


class Spread(Stored, frozen=True, kw_only=True):
    """A number over several trials; std: the sample standard deviation (ddof 1) of all n."""

    std: float | None
    n: int
    trials: list[float]


class Aggregation(Stored, frozen=True, kw_only=True):
    """What several trials were put together from.

    n: trials. profiles: their files. representative_profile: the one that the lists are of.
    bounds: of each trial.
    """

    n: int
    profiles: list[str]
    representative_profile: str
    note: str
    bounds: list[str]


class Analysis(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.analysis/v1"):
    """What a trace says. The numbers that the original had stand beside each other, and all of them
    by the names of `farm profile get` in `metrics`.

    What only a capture has is empty or absent for a trace alone: mode, config (what was asked, and
    under what it ran), latency and stages_ms of an inference, card. intervals: 95 % ones of metrics
    by name. spread, aggregation: of several trials, whose metrics are means. bound_reported: what
    another tool said. timings: the events of the window, None where they are too many.
    """

    trace: str | None
    model: str | None
    mode: Literal["training", "inference"] | None
    bound: str
    bound_why: str
    reasons: list[Reason]
    confidence: Confidence
    attribution: Literal["launch", "kernel_ts"] | None
    inferred_forward: bool
    step_ms: float | None
    img_per_s: float | None
    dataload_ms: float | None
    dataload_frac: float | None
    gpu_util: float | None
    gpu_util_raw: float | None
    memory_pressure: bool
    cuda_mallocs_per_step: float | None
    host_overhead_ms_per_step: float | None
    launches_per_step: float | None
    gpu_busy_ms_per_step: float | None
    mean_kernel_us: float | None
    kernels_per_step: float | None
    unique_kernels: int | None
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
    diagnostics: Diagnostics | None
    quality: Quality
    null_reasons: dict[str, str]
    config: dict[str, Setting] = field(default_factory=dict)
    phases_gpu: list[PhaseGpu] = field(default_factory=list)
    top_kernels: list[KernelRow] = field(default_factory=list)
    intervals: dict[str, tuple[float, float] | None] = field(default_factory=dict)
    latency: Percentiles | UnsetType = UNSET
    stages_ms: dict[str, float | None] | UnsetType = UNSET
    card: SystemCard | UnsetType = UNSET
    bound_reported: str | UnsetType = UNSET
    spread: dict[str, Spread] | UnsetType = UNSET
    img_per_s_std: float | UnsetType | None = UNSET
    img_per_s_n: int | UnsetType = UNSET
    img_per_s_trials: list[float] | UnsetType = UNSET
    aggregation: Aggregation | UnsetType = UNSET
    timings: Timings | UnsetType | None = UNSET
