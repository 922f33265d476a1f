"""The `profile.json` of LibreYOLO as it stands in the file, with every key that it has.

Source: `seeds.md` §3. A number may be null there; one that is negative or no time at all is damage.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

MOST: Final = 1e15  # ms, a count, bytes: none of the tool's is larger

Number = Annotated[float, Meta(ge=0, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Megabytes = Annotated[float, Meta(ge=0, le=1e12)]
Value = float | int | bool | str | None


class Window(Struct, frozen=True):
    """How long it was, and how many steps were in it."""

    wall_ms: Number
    real_steps: Count


class Phase(Struct, frozen=True):
    """A phase, per step."""

    phase: str
    gpu_ms_per_step: Number | None
    wall_ms_per_step: Number | None
    kernels_per_step: Number
    ops_per_step: Number
    unique_kernels: Count


class PhaseGpu(Struct, frozen=True):
    phase: str
    gpu_ms_per_step: Number | None


class Kernel(Struct, frozen=True):
    """Kernels of one name, per step."""

    kernel: str
    category: str
    tensorcore: bool
    ms_per_step: Number
    pct_of_gpu: Number
    count_per_step: Number
    raw_name: str = ""


class Op(Struct, frozen=True):
    """Operators of one name, per step; ms: with all that ran inside them."""

    op: str
    ms_per_step: Number
    pct_of_cpu_ops: Number
    count_per_step: Number


class Category(Struct, frozen=True):
    name: str
    pct: Number
    ms_per_step: Number


class Latency(Struct, frozen=True):
    p50_ms: Number
    p90_ms: Number
    p99_ms: Number
    mean_ms: Number
    min_ms: Number
    max_ms: Number
    n: Count


class Aggregation(Struct, frozen=True):
    """What several trials were put together from."""

    n: Count
    profiles: list[str]
    representative_profile: str
    note: str = ""


class Original(
    Struct, frozen=True, kw_only=True, tag_field="schema", tag="libreyolo.profile.analysis/v1"
):
    """The whole file. What an inference and what repeats add is None where it is absent."""

    trace: str | None
    model: str | None
    config: dict[str, Any]
    bound: str
    bound_why: str
    step_ms: Number | None
    img_per_s: Number | None
    dataload_ms: Number | None
    dataload_frac: Number | None
    gpu_util: Number | None
    gpu_util_raw: Number | None
    memory_pressure: bool
    cuda_mallocs_per_step: Number | None
    host_overhead_ms_per_step: Number | None
    launches_per_step: Number | None
    gpu_busy_ms_per_step: Number | None
    mean_kernel_us: Number | None
    kernels_per_step: Number | None
    unique_kernels: Count | None
    memcpy_ms_per_step: Number | None
    tensorcore_pct: Number | None
    peak_vram_mb: Megabytes | None
    window: Window
    metrics: dict[str, Value]
    categories: list[Category]
    phases: list[Phase]
    kernels_by_phase: dict[str, list[Kernel]]
    ops_by_phase: dict[str, list[Op]]
    kernels: list[Kernel]
    ops: list[Op]
    phases_gpu: list[PhaseGpu] = []
    top_kernels: list[Kernel] = []
    mode: Literal["training", "inference"] | None = None
    latency: Latency | None = None
    stages_ms: dict[str, Number | None] | None = None
    img_per_s_std: Number | None = None
    img_per_s_n: Count | None = None
    img_per_s_trials: list[Number] | None = None
    aggregation: Aggregation | None = None
