"""The vocabulary on one page: every document that the farm writes, and how it is read back.

Three rules hold for all of them. A field that cannot exist here is absent; a field whose number
could not be had is `null`, and `null_reasons` names its path with a code. A number is finite. The
first key is `schema`, and a reader refuses what it does not know by name.
"""

import math
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from farm import identity
from farm.errors import Bad, Refused

# Why a number is not there (the closed list of codes; a detail may follow after ": ").
NULL_CODES: Final = frozenset(
    (
        *("not_applicable", "not_requested", "not_supported", "not_probed", "no_permission"),
        *("symbol_missing", "library_missing", "driver_not_loaded", "gpu_lost", "reset_required"),
        *("mig", "shared_device", "unknown_device", "below_resolution", "single_sample"),
        *("single_repeat", "processes_disagree", "perturbation_too_high", "counter_reset"),
        *("insufficient_history", "timed_out", "phase_failed", "error"),
    )
)
PRECISIONS: Final = ("unspecified", "fp32", "bf16", "fp16")
PROTOCOL_VERSION: Final = 1

Precision = Literal["unspecified", "fp32", "bf16", "fp16"]
Status = Literal["ok", "failed", "pruned", "infra", "cancelled"]
Validity = Literal["valid", "degraded", "invalid"]
Stability = Literal["stable", "acceptable", "noisy", "unknown"]
Compat = Literal["yasp", "rpx", "tinytorch", "libreyolo"]
Mode = Literal["inference", "train"]
Pass = Literal["latency", "throughput", "memory"]  # of a clean child
Instrument = Literal["layers", "weights", "trace", "flops"]  # of the instrumented child
# Answers that a person asked for and got; they fail nothing (rule 11 of the decisions). On a CPU
# the device's memory is the host's.
ANSWERS: Final = frozenset({"oom", "host_oom", "unsupported"})
# What each doubt does to a profile (`measurement.md` §8); its validity is the worst effect.
INVALIDATING: Final = frozenset(
    (
        *("clock_low", "contended", "device_fault", "foreign_gpu_process", "left_its_cores"),
        *("recompiling", "suspended", "throttled"),
    )
)
DEGRADING: Final = frozenset(
    (
        "allocator_growth",
        "bimodal",
        "canary_moved",
        "clock_unstable",
        "contention_unknown",
        "drifting",
        "inputs_mutated",
        "nonfinite_output",
        "not_quiet",
        "on_battery",
        "paging",
        "pass_failed",
        "precision_mismatch",
        "processes_disagree",
        "repeats_missing",
        "suspect_device",
        "too_many_threads",
        "warmup_not_converged",
    )
)


def validity(flags: Iterable[str]) -> Validity:
    """Return the worst effect of the flags; an unknown flag is a note."""
    found = frozenset(flags)
    if not INVALIDATING.isdisjoint(found):
        return "invalid"
    return "valid" if DEGRADING.isdisjoint(found) else "degraded"


class Written(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person or a submitter writes: an unknown field is a mistake."""


class Stored(Struct, frozen=True, kw_only=True, gc=False):
    """What the store holds: a newer version may have added fields.

    A document is a tree, so nobody needs to look for cycles in thousands of them.
    """


# ── what is asked ────────────────────────────────────────────────────────────────────────────────


class Tensor(Written, frozen=True, kw_only=True):
    """One input: shape of integers and named axes (`batch` is the item axis), and its dtype."""

    shape: tuple[int | str, ...]
    dtype: str = "float32"
    low: int = 0  # integers are drawn from [low, high); floats from a standard normal
    high: int | UnsetType = UNSET


class Inputs(Written, frozen=True, kw_only=True):
    """What the step is called with: generated from the specification, or an NPZ by its digest.

    samples: the ids along the batch, where a manifest names them.
    """

    spec: dict[str, Tensor]
    seed: int = 0
    digest: str | UnsetType = UNSET
    samples: tuple[str, ...] | UnsetType = UNSET


class Model(Written, frozen=True, kw_only=True):
    """A model by its stable name, and the digest of everything that makes it what it is.

    ref: `module:callable`, `path.py:callable` relative to the root of its bundle, or a graph:
    `path.onnx` in its bundle, else below an installed package.
    source: where the reference was found. kind: what the callable is; `auto` lets its first call
    decide. digest: of code, local imports and weights..
    """

    name: str
    ref: str
    source: Literal["zoo", "module", "file"]
    digest: str
    kind: Literal["auto", "factory", "step"] = "auto"
    bundled: bool = False


class Workload(Written, frozen=True, kw_only=True):
    """What a step is. mode: of `train` it is forward, backward, optimiser and gradient reset."""

    model: Model
    inputs: Inputs
    precision: Precision
    batch: int
    mode: Mode = "inference"
    backend: Literal["torch", "onnx", "fake"] = "torch"
    backend_options: dict[str, str | int | bool] = {}
    item: str = "item"


class Protocol(Written, frozen=True, kw_only=True):
    """How it is measured, as requested (`measurement.md` §2): everything here enters an id.

    compat: the preset of another tool whose numbers of iterations and output are wanted.
    """

    version: int = PROTOCOL_VERSION
    warmup: int | Literal["auto"] = "auto"
    iterations: int | Literal["auto"] = "auto"
    input_policy: Literal["fixed", "rotate"] = "fixed"
    input_scope: Literal["device", "host_pinned", "host_pageable"] = "device"
    output_scope: Literal["device", "host"] = "device"
    l2: Literal["warm", "flushed"] = "warm"
    gc: Literal["off", "on"] = "off"
    denormals: Literal["as_is", "flush"] = "as_is"
    grad: Literal["inference", "no_grad", "function"] = "inference"
    autocast_scope: Literal["iteration"] = "iteration"
    clocks: Literal["as_found", "locked_base"] = "as_found"
    compat: Compat | UnsetType = UNSET


class Selector(Written, frozen=True, kw_only=True):
    """Who may take the job: any slot, a hardware class, a node, or one slot of a node."""

    kind: Literal["any", "class", "node", "device"]
    value: str = ""
    exclusive: Literal["none", "node"] = "none"
    environment: str = "default"


class Job(Written, frozen=True, kw_only=True, tag_field="schema", tag="farm.job/v1"):
    """Identity and nothing else, so that equal jobs are equal bytes."""

    workload: Workload
    protocol: Protocol
    selector: Selector

    @property
    def job_id(self) -> str:
        plain = msgspec.to_builtins(self)
        return identity.job_id(plain["workload"], plain["protocol"], plain["selector"])

    @property
    def workload_id(self) -> str:
        return identity.workload_id(msgspec.to_builtins(self.workload))

    @property
    def cell_id(self) -> str:
        return identity.cell_id(msgspec.to_builtins(self.workload))

    @property
    def protocol_id(self) -> str:
        return identity.protocol_id(msgspec.to_builtins(self.protocol))


class Effort(Written, frozen=True, kw_only=True):
    """How long we try: in no id, so that a quick look and a nightly stay comparable.

    percentiles: in percent; 50 is always there. layer_iterations: profiled ones, 0 for as many as
    suit the engine, and fewer where layer_budget_ms (0: none) is spent before. threads: 0 for as
    many as cores are leased. memory_limit_bytes: 0 for what the machine has.
    """

    level: Literal["quick", "standard", "thorough"] = "standard"
    repeats: int = 3
    half_width_ppm: int = 5_000
    budget_ms: int = 10_000
    min_time_ms: int = 500
    tails: bool = False
    timeout_s: int = 600
    memory_limit_bytes: int = 0
    percentiles: tuple[float, ...] = (50.0, 90.0, 95.0, 99.0)
    energy: bool = False
    layers: bool = True
    flops: bool = True
    trace: bool = False
    layer_iterations: int = 0
    layer_budget_ms: int = 10_000
    threads: int = 0


class Labelled(Stored, frozen=True, kw_only=True):
    """A job of a run by its id and the words a person knows it by."""

    job_id: str
    labels: dict[str, str]


class Skipped(Stored, frozen=True, kw_only=True):
    labels: dict[str, str]
    reason: str


class Reused(Stored, frozen=True, kw_only=True):
    """A job that needed no measuring: the profile that answers it, and under what it was taken."""

    job_id: str
    profile_id: str
    system_id: str
    taken_at: str
    environment: str


class Manifest(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.manifest/v1"):
    """What a run expects; written before anything is enqueued. priority: absent for normal."""

    run_id: str
    name: str
    submitted_at: str
    submitted_by: str
    source: str
    source_sha256: str
    effort: Effort
    repeat_set: str
    jobs: list[Labelled]
    tags: dict[str, str] = {}
    skipped: list[Skipped] = []
    reused: list[Reused] = []
    priority: Literal["high", "low"] | UnsetType = UNSET


class Tag(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.tag/v1"):
    """A name that points at a run; the name is in the key, and it may point at another tomorrow."""

    run_id: str


class Order(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.order/v1"):
    """A job on its way to a slot worker: what to measure, how long to try, and for whom."""

    job: Job
    effort: Effort
    repeat_set: str
    label: str
    tags: dict[str, str] = {}


class Data(Written, frozen=True, kw_only=True):
    """What the DATA of a training stand for.

    word: as it was written. count: items of one pass, None where that is endless or not known.
    files: images, absolute. classes: how many, None if nobody says. reference, root: a function,
    and the folder that it is found from, "" for an installed one.
    """

    kind: Literal["synthetic", "yaml", "callable"]
    word: str
    count: int | None = None
    files: tuple[str, ...] = ()
    classes: int | None = None
    reference: str = ""
    root: str = ""


class Capture(Written, frozen=True, kw_only=True):
    """What `farm profile run` and `infer` say of a pipeline: its data, and how it handles them.

    data: of a training. images: what an inference reads, absolute; none for what comes along with
    the model. imgsz: pixels of a side; 0 where the inputs
    have another form. workers: loader processes. autocast: the dtype, "" for none. warmup, steps:
    iterations before a window and in it. fit: find the batch that fits, and nothing else. trace:
    without, phases are timed and no profiler runs. experimental: train a model that nobody tried.
    """

    data: Data | UnsetType = UNSET
    images: tuple[str, ...] = ()
    imgsz: int = 0
    workers: int = 0
    autocast: Literal["", "float16", "bfloat16"] = ""
    conf: float = 0.25
    iou: float = 0.45
    max_det: int = 300
    warmup: int = 0
    steps: int = 0
    fit: bool = False
    trace: bool = True
    experimental: bool = False


class Asked(Written, frozen=True, kw_only=True, tag_field="schema", tag="farm.asked/v1"):
    """One measurement by hand, as `farm` asks `farm-worker` for it: no broker, no store.

    device: a slot of this machine; `cuda` or `cuda:N` steps on the CPU slot and computes there.
    passes: of the clean children; none where only an instrument is wanted. folder: where arrays,
    log and tables are left. bundle, npz: the user's code and input arrays, "" for none. output:
    keep what the model returned as `output.npz`. capture: the step is a pipeline of this kind.
    """

    job: Job
    effort: Effort
    folder: str
    device: str = "cpu"
    passes: tuple[Pass, ...] = ("latency", "throughput", "memory")
    instruments: tuple[Instrument, ...] = ()
    bundle: str = ""
    npz: str = ""
    output: bool = False
    tags: dict[str, str] = {}
    capture: Capture | UnsetType = UNSET


# ── what was found ───────────────────────────────────────────────────────────────────────────────


class Failure(Stored, frozen=True, kw_only=True):
    """Why there is no number: the cause, where it happened, and what it printed last."""

    kind: str
    phase: str
    message: str
    hint: str = ""
    exit_code: int | UnsetType = UNSET
    signal: str | UnsetType = UNSET
    log_tail: str = ""
    retryable: bool = False


class Phase(Stored, frozen=True, kw_only=True):
    name: str
    status: Literal["done", "skipped", "failed", "timed_out"]
    duration_s: float
    iterations: int = 0
    reason: str = ""
    instrumented: bool = False


class Repeat(Stored, frozen=True, kw_only=True):
    """One fresh process: its warm-up, its median, and the doubts about it.

    compile_s: absent in older profiles, as all that may be unset here. recompiles: compile events
    after the compile phase. outlier_share: above p50 + 14.8 MAD.
    """

    index: int
    started_at: str
    import_s: float
    load_s: float
    first_ms: float | None
    compile_s: float | UnsetType | None = UNSET
    compile_iterations: int | UnsetType | None = UNSET
    recompiles: int | UnsetType | None = UNSET
    warmup_iterations: int
    warmup_s: float
    warmup_stop: Literal["fixed", "converged", "cap"]
    n: int
    n_eff: int
    mean_ms: float
    std_ms: float | None
    min_ms: float
    max_ms: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    throughput_items_per_s: float | None
    cpu_rss_peak_bytes: int | None
    drift_rel: float | None
    lag1: float | None
    outlier_share: float | UnsetType = UNSET
    wait_share: float | None
    steal_share: float | None
    psi_share: float | None
    output_digest: str | None
    flags: list[str]
    phases: list[Phase]


class Percentile(Stored, frozen=True, kw_only=True):
    """A further percentile that was asked for; q in percent."""

    q: float
    value_ms: float
    lo_ms: float | None
    hi_ms: float | None
    reliable: bool


class Latency(Stored, frozen=True, kw_only=True):
    """Statistics over every recorded iteration; intervals as `measurement.md` §7.

    The loop is closed: an iteration starts when the last one ended. of_blocks: steps per sample;
    with more than one the percentiles are of block means. p50_item_ms: the headline over the batch.
    """

    n: int
    n_eff: int
    mean_ms: float
    std_ms: float | None
    mad_ms: float
    iqr_rel: float
    min_ms: float
    max_ms: float
    timer_floor_ns: int
    of_blocks: int
    p50_ms: float
    p50_lo_ms: float | None
    p50_hi_ms: float | None
    p50_reliable: bool
    p50_item_ms: float | UnsetType = UNSET
    p90_ms: float
    p90_lo_ms: float | None
    p90_hi_ms: float | None
    p90_reliable: bool
    p95_ms: float
    p95_lo_ms: float | None
    p95_hi_ms: float | None
    p95_reliable: bool
    p99_ms: float
    p99_lo_ms: float | None
    p99_hi_ms: float | None
    p99_reliable: bool
    proc_cv: float | None
    log_mean: float
    log_std: float | None
    clean_p50_ms: float | None
    clean_share: float
    percentiles: list[Percentile] = []


class Throughput(Stored, frozen=True, kw_only=True):
    throughput_items_per_s: float | None
    lo: float | None
    hi: float | None
    window_s: float | None
    method: Literal["back_to_back", "pipelined"]


class Memory(Stored, frozen=True, kw_only=True):
    """Peaks since the memory pass began; the cuda ones are of torch's allocator, with weights.

    They are absent where the job used no such device. by_visible_device: by its index.
    """

    cpu_rss_after_load_bytes: int | None
    cpu_rss_peak_bytes: int | None
    cpu_rss_peak_lifetime_bytes: int | None
    cpu_pss_bytes: int | None
    cpu_inference_delta_bytes: int | None
    cuda_allocated_peak_bytes: int | UnsetType | None = UNSET
    cuda_reserved_peak_bytes: int | UnsetType | None = UNSET
    cuda_requested_peak_bytes: int | UnsetType | None = UNSET
    cuda_inactive_split_peak_bytes: int | UnsetType | None = UNSET
    cuda_alloc_retries: int | UnsetType | None = UNSET
    cuda_allocated_peak_bytes_by_visible_device: dict[str, int | None] | UnsetType = UNSET


class GpuTime(Stored, frozen=True, kw_only=True):
    """Time on the device between two events, in a pass of its own after the latency loop.

    enqueue: host time of a step without waiting. enqueue_bound: the queue did not run ahead, so
    the pass was repeated behind a blocking kernel.
    """

    n: int
    p50_ms: float | None
    p50_lo_ms: float | None
    p50_hi_ms: float | None
    std_ms: float | None
    enqueue_p50_ms: float | None
    enqueue_bound: bool
    reliable: bool


class Energy(Stored, frozen=True, kw_only=True):
    """What the throughput window of the repeats consumed (`measurement.md` §11)."""

    energy_gross_j: float | None
    energy_net_j: float | None
    energy_per_iteration_j: float | None
    energy_per_item_j: float | None
    energy_uncertainty_j: float | None
    power_mean_w: float | None
    power_idle_w: float | None
    window_s: float | None
    windows: int
    update_period_ms: float | None
    energy_method: Literal["counter", "integrated", "rapl"] | None
    energy_scope: Literal["device", "module", "package"] | None
    temperature_before_c: float | None
    temperature_after_c: float | None
    notes: list[str] = []


class LayerRow(Stored, frozen=True, kw_only=True):
    """One layer over the profiled iterations; its times are of a profiled pass, so shares count.

    layer: the engine's own name, `#2` where a name comes again. average_ms: arithmetic mean.
    share_pct: of totals. scaled_ms: its share of that part of a clean iteration which rows are.
    reliable: its clock is fine enough for it, and no few slow iterations carry it.
    """

    layer: str
    type: str
    calls_per_iteration: float
    share_pct: float
    average_ms: float
    median_ms: float
    std_ms: float | None
    total_ms: float
    scaled_ms: float | None
    flops_per_batch: int | None
    pct_of_peak: float | None
    reliable: bool


class LayerTable(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.layer_table/v1"):
    """Which layers took the time, in the order of their first execution.

    profiled_ms, clean_ms: medians of the profiled iterations and of the clean ones between them;
    neither is a latency. perturbation: the one over the other, less 1. unattributed_ms: of an
    iteration, in no row.
    """

    method: Literal["wrapped", "hooks", "profiler", "imported", "fake"]
    clock: Literal["wall", "device"]
    precision: str
    device: str
    warmup_iterations: int
    iterations: int
    unattributed_ms: float | None
    profiled_ms: float | None
    clean_ms: float | None
    perturbation: float | None
    rows: list[LayerRow]
    null_reasons: dict[str, str] = {}


class Captured(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.captured/v1"):
    """What a capture found beside its trace; the artefact `captured`.

    Times are of whole iterations, in ns. plain_ns: unsynchronised steps of the clean child, from
    one completion to the next. waits_ns: for the loader, in these. traced_ns: under the profiler.
    stages_ns: of each phase, synchronised at its ends, without a profiler. pipeline: whether the
    model came with its own pre- and postprocessing or loss. unused: options without any use for it.
    notes: what a person should know.
    """

    plain_ns: list[int]
    waits_ns: list[int]
    traced_ns: list[int]
    stages_ns: dict[str, list[int]]
    pipeline: Literal["detection", "plain"]
    unused: list[str]
    notes: list[str]


class Traced(Stored, frozen=True, kw_only=True):
    """What a profile says of its trace, which is the artefact `trace`: bytes before packing."""

    iterations: int
    bytes: int


class Hotspot(Stored, frozen=True, kw_only=True):
    """A layer that takes much of the time.

    share_pct: its median over the sum of all medians, since one slow iteration may carry a total.
    """

    layer: str
    type: str
    share_pct: float


class Layers(Stored, frozen=True, kw_only=True):
    """What a profile says of its layer table, which is the artefact `layers`.

    rows: how many it has. hotspots: at most five, the largest share first. The rest as there.
    """

    method: Literal["wrapped", "hooks", "profiler", "imported", "fake"]
    clock: Literal["wall", "device"]
    warmup_iterations: int
    iterations: int
    rows: int
    hotspots: list[Hotspot]
    unattributed_ms: float | None
    profiled_ms: float | None
    clean_ms: float | None
    perturbation: float | None


class WeightSpread(Stored, frozen=True, kw_only=True):
    """How the magnitudes of all n weights lie: percentiles, and the shares strictly below limits.

    used: how many were looked at; every so many of a very large model.
    """

    n: int
    used: int
    percentiles: dict[str, float]
    shares_below: dict[str, float]


class Cost(Stored, frozen=True, kw_only=True):
    """What the model needs, from the model itself: nothing here was timed.

    param_dtypes: unique bytes by the word of the dtype. A FLOP is half a multiply-accumulate.
    flops_status: measured, partial, unsupported, skipped, or `failed: why`. flops_coverage: the
    share of operator calls with a formula. attention: what computes it. weights: absent unless
    they were asked for.
    """

    params_total: int | None
    params_trainable: int | None
    params_unique_bytes: int | None
    buffers_bytes: int | None
    param_dtypes: dict[str, int] | None
    flops_per_batch: int | None
    flops_per_item: float | None
    macs_per_item: float | None
    flops_status: str
    flops_counter: str | None
    uncounted_ops: list[str]
    flops_coverage: float | None
    attention: str | None
    bytes_lower_bound_per_batch: int | None
    activation_peak_bytes: int | None
    weights: WeightSpread | UnsetType = UNSET


class Estimate(Stored, frozen=True, kw_only=True):
    """The roofline of a device for a cost: computed from peaks, and not measured.

    spec: whose peaks. dtype: which of them.
    """

    not_measured: Literal[True]
    spec: str
    dtype: str
    peak_flops_per_s: float | None
    peak_bytes_per_s: float | None
    peak_source: Literal["measured", "datasheet", "user"] | None
    arithmetic_intensity_flop_per_byte: float | None
    ridge_flop_per_byte: float | None
    attainable_flops_per_s: float | None
    compute_ms: float | None
    memory_ms: float | None
    roofline_ms: float | None
    roofline_bound: Literal["compute", "memory"] | None


class Bounds(Stored, frozen=True, kw_only=True):
    """What limits the step, from measured times against peaks, and by the old rule of thumb.

    mfu, mbu: shares of the peaks that are used. heuristic_bound and the two numbers before it
    are that rule's; memory_bandwidth_mbs is peak memory over latency, and no bandwidth.
    """

    measured_bound: (
        Literal["transfer", "launch", "overhead", "balanced", "compute", "memory"] | None
    )
    mfu: float | None
    mbu: float | None
    gflops_per_second: float | None
    memory_bandwidth_mbs: float | None
    heuristic_bound: Literal["compute", "memory"] | None
    roof_violation: bool


class Device(Stored, frozen=True, kw_only=True):
    name: str
    slot: str
    kind: Literal["cpu", "gpu", "mig"]
    cpus: list[int]


class Execution(Stored, frozen=True, kw_only=True):
    node: str
    worker: str
    started_at: str
    finished_at: str
    queue_s: float | None
    overhead_s: float
    start: Literal["cold", "standby"]
    isolation: Literal["plain"]
    memory_limit: Literal["cgroup", "rlimit", "none"]
    environment: str
    device: Device
    threads: int
    effective_threads: dict[str, int]
    simulated: bool
    farm_version: str
    tags: dict[str, str]
    effort: Effort
    resolved: dict[str, str]
    precision_observed: dict[str, str]


class Quality(Stored, frozen=True, kw_only=True):
    """The doubts about a profile, summed up: worst effect, spread class, and who disturbed."""

    validity: Validity
    stability: Stability
    quiet: Literal["true", "false", "unknown"]
    flags: list[str]
    neighbours: list[str] = []


class Throttle(Stored, frozen=True, kw_only=True):
    """For how long each reason slowed a device down in a pass, by its counters."""

    sw_power_ms: float | None
    sw_thermal_ms: float | None
    hw_thermal_ms: float | None
    power_brake_ms: float | None


class PassTelemetry(Stored, frozen=True, kw_only=True):
    """What one pass of one repeat ran under; repeat: from 0.

    samples: in the pass. Clocks are percentiles of them, power their mean, shares of them.
    event_reasons: names of every reason of the driver's mask that was seen.
    """

    repeat: int
    name: Literal["latency", "throughput"]
    samples: int
    sm_clock_median_hz: float | None
    sm_clock_p5_hz: float | None
    sm_clock_p95_hz: float | None
    mem_clock_median_hz: float | None
    temp_start_c: float | None
    temp_max_c: float | None
    power_mean_w: float | None
    power_capped_share: float | None
    idle_share: float | None
    throttle: Throttle
    event_reasons: list[str]


class Telemetry(Stored, frozen=True, kw_only=True):
    """What a device did while it was measured: pass by pass, and all latency passes as one.

    The clock is the median of the passes' medians, p5 and p95 the widest of them; temperatures are
    that of the first pass at its start and the highest. Throttle times are sums over all passes.
    base_clock_hz: what `clock_low` is held against.
    """

    passes: list[PassTelemetry]
    sm_clock_median_hz: float | None
    sm_clock_p5_hz: float | None
    sm_clock_p95_hz: float | None
    mem_clock_median_hz: float | None
    temp_start_c: float | None
    temp_max_c: float | None
    power_mean_w: float | None
    throttle: Throttle
    event_reasons: list[str]
    base_clock_hz: float | None


class GateRow(Stored, frozen=True, kw_only=True):
    """What a gate found before or after a repeat; enforced: whether that had an effect.

    repeat: from 0, −1 for the instrumented child.
    """

    id: str
    phase: Literal["static", "before", "window", "after"]
    repeat: int
    verdict: Literal["ok", "skipped", "unknown", "degraded", "defer", "quarantine"]
    reason: str = ""
    enforced: bool = True


class Artifact(Stored, frozen=True, kw_only=True):
    key: str
    sha256: str
    bytes: int
    media_type: str


class Profile(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.profile/v1"):
    """One attempt that ended, good or bad; write-once."""

    job_id: str
    cell_id: str
    workload_id: str
    protocol_id: str
    system_id: str
    system_class: str
    card_id: str
    run_id: str
    repeat_set: str
    attempt: int
    fence: int
    job: Job
    status: Status
    execution: Execution
    failure: Failure | UnsetType = UNSET
    repeats: list[Repeat] = []
    latency: Latency | UnsetType = UNSET
    throughput: Throughput | UnsetType = UNSET
    memory: Memory | UnsetType = UNSET
    gpu_time: GpuTime | UnsetType | None = UNSET
    energy: Energy | UnsetType | None = UNSET
    layers: Layers | UnsetType | None = UNSET
    trace: Traced | UnsetType | None = UNSET
    cost: Cost | UnsetType | None = UNSET
    estimate: Estimate | UnsetType | None = UNSET
    bounds: Bounds | UnsetType | None = UNSET
    quality: Quality | UnsetType = UNSET
    telemetry: Telemetry | UnsetType = UNSET
    gate: list[GateRow] | UnsetType = UNSET
    artifacts: dict[str, Artifact] = {}
    warnings: list[str] = []
    null_reasons: dict[str, str] = {}


# ── the catalogue ────────────────────────────────────────────────────────────────────────────────


class CatalogPart(Stored, frozen=True, kw_only=True):
    """One Parquet file of profiles: what it must be, and the days and times that it covers."""

    key: str
    sha256: str
    bytes: int
    rows: int
    started_min: str
    started_max: str
    received_min: str  # days of the inbox, as 2026-11-30
    received_max: str


class CatalogUnreadable(Stored, frozen=True, kw_only=True):
    """An object of the inbox that is no profile: told once, and not fetched again.

    sha256: of the bytes that were found, absent if none could be had.
    """

    key: str
    reason: str
    sha256: str | UnsetType = UNSET


class Catalog(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.catalog/v1"):
    """Which parts together hold every profile taken so far, each once; a link of a chain.

    parent_sha256: of the bytes of the manifest before, absent in the first.
    swept: the day (UTC) of the last pass over every day of the inbox, absent before the first.
    seal: SHA-256 of all bytes before it. It stays the last field: nothing else can show that the
    newest manifest, which no other one names yet, is damaged.
    """

    number: int
    parent_sha256: str | UnsetType = UNSET
    written_at: str
    writer: str
    swept: str | UnsetType = UNSET
    parts: list[CatalogPart]
    unreadable: list[CatalogUnreadable] = []
    seal: str | UnsetType = UNSET


class CatalogHead(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.catalog_head/v1"
):
    """A hint at the newest manifest; it may lag behind, and nobody takes it for the truth."""

    number: int


# ── the machine ──────────────────────────────────────────────────────────────────────────────────


class Cpu(Stored, frozen=True, kw_only=True):
    """The processor, and the part of it that is leased. boost: whether clocks above the base are
    allowed. Caches are those that one core sees. What an older card lacks is absent.
    """

    vendor: str | None
    model: str | None
    arch: str
    sockets: int | None
    physical_cores: int | None
    logical_cpus: int
    leased_cores: int
    smt: bool | None
    isa: list[str] | None
    max_hz: int | None
    governor: str | None
    l3_bytes: int | None
    numa_nodes: int | None
    base_hz: int | UnsetType | None = UNSET
    boost: bool | UnsetType | None = UNSET
    l1d_bytes: int | UnsetType | None = UNSET
    l2_bytes: int | UnsetType | None = UNSET
    microcode: str | UnsetType | None = UNSET


class System(Stored, frozen=True, kw_only=True):
    """thp: how transparent huge pages are given. mitigations: of faults of CPUs, on or off."""

    distro: str | None
    kernel: str
    libc: str | None
    clocksource: str | None
    thp: str | UnsetType | None = UNSET
    mitigations: str | UnsetType | None = UNSET


class Drivers(Stored, frozen=True, kw_only=True):
    """cuda_driver: the newest CUDA that the driver takes. cuda_runtime and what follows: packages
    of the interpreter that measures. All but nvidia is absent on a slot without a GPU.
    """

    nvidia: str | None
    cuda_driver: str | UnsetType | None = UNSET
    kernel_module: Literal["open", "proprietary"] | UnsetType | None = UNSET
    cuda_runtime: str | UnsetType | None = UNSET
    cudnn: str | UnsetType | None = UNSET
    nccl: str | UnsetType | None = UNSET
    cupti: str | UnsetType | None = UNSET


class Mig(Stored, frozen=True, kw_only=True):
    """A slice of a GPU: its form, and how many of its multiprocessors and GiB it has, `16/132`."""

    profile: str
    sm_ratio: str | None
    memory_ratio: str | None


class Accelerator(Stored, frozen=True, kw_only=True):
    """The device that a slot leases. form_factor: of the hardware table. clock_lock_hz: what its
    clock was set to; sm_max_hz, mem_max_hz: what it may reach. mig: absent for a whole GPU.
    """

    vendor: Literal["nvidia"]
    model: str
    architecture: str | None
    compute_capability: str | None
    sm_count: int | None
    core_count: int | None
    memory_bytes: int | None
    memory_bus_bits: int | None
    form_factor: str | None
    power_limit_w: int | None
    power_default_w: int | None
    sm_max_hz: int | None
    mem_max_hz: int | None
    clock_lock_hz: int | None
    ecc: bool | None
    vbios: str | None
    gsp_firmware: str | None
    pcie_gen_max: int | None
    pcie_width_max: int | None
    mig: Mig | UnsetType = UNSET


class Frameworks(Stored, frozen=True, kw_only=True):
    """onnxruntime and triton are absent without them, torch_build where its version does not say
    for what it was built.
    """

    python: str
    torch: str | None
    numpy: str | None
    onnxruntime: str | UnsetType = UNSET
    torch_build: str | UnsetType = UNSET
    triton: str | UnsetType = UNSET
    farm_protocol: int


class Stable(Stored, frozen=True, kw_only=True):
    """What a number depends on: hashed into `system_id`.

    accelerators: the leased device alone, absent on a CPU slot, so that a GPU that is not used
    labels no CPU's result.
    """

    simulated: bool
    virtualization: str | None
    memory_bytes: int | None
    cpu: Cpu
    os: System
    drivers: Drivers
    frameworks: Frameworks
    settings: dict[str, str]
    accelerators: list[Accelerator] | UnsetType = UNSET


class NodeFacts(Stored, frozen=True, kw_only=True):
    """What says where, and not what: outside `system_id`.

    device_hash: tells this device from its equals, keyed with a salt of the node; absent, as the
    place on the bus is, on a CPU slot.
    """

    node_id: str
    name: str
    collected_at: str
    lease_scope: Literal["host", "user"]
    leased_cpus: list[int]
    housekeeping_cpus: list[int]
    cgroup_cpus: int | None
    labels: dict[str, str] = {}
    device_hash: str | UnsetType = UNSET
    pci_bdf: str | UnsetType | None = UNSET
    numa_node: int | UnsetType | None = UNSET
    boot_hash: str | UnsetType | None = UNSET
    swap_bytes: int | UnsetType | None = UNSET
    hugepages_bytes: int | UnsetType | None = UNSET
    container: str | UnsetType | None = UNSET
    perf_event_paranoid: int | UnsetType | None = UNSET
    has_psi: bool | UnsetType = UNSET


class SystemCard(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.system_card/v1"):
    """The hardware and software of one slot at measuring time; nothing private in it."""

    system_id: str
    system_class: str
    stable: Stable
    node: NodeFacts
    null_reasons: dict[str, str] = {}


# ── writing and reading ──────────────────────────────────────────────────────────────────────────

Document = Job | Manifest | Profile | SystemCard
T = TypeVar("T", bound=Struct)


class _Tagged(Struct):
    """The one field that every document has, read before anything else is believed."""

    schema: Any = None


def encode(document: Struct) -> bytes:
    """Return the document as one line of JSON, keys in the order of its fields.

    Raises Bad if a number is not finite, or if the null paths and `null_reasons` do not agree:
    msgspec would write NaN as `null`, and a null without a reason is a zero in disguise.
    """
    plain = msgspec.to_builtins(document)
    _check_finite(plain, "")
    if "null_reasons" in plain:
        _check_reasons(plain)
    return msgspec.json.encode(plain)


def decode(data: bytes, kind: type[T]) -> T:
    """Return the document, or raise Bad: unreadable, without a schema, foreign, or newer."""
    wanted = str(kind.__struct_config__.tag)
    tag = _tag(data)
    if tag != wanted:
        raise Bad(f"expected a document of schema {wanted!r}, got {tag!r}")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Bad(f"not a valid {wanted}", why=str(error)) from error


def _tag(data: bytes) -> object:
    """Return what a document says that it is, None if it says nothing; Bad if it is no JSON."""
    try:
        return msgspec.json.decode(data, type=_Tagged).schema
    except (msgspec.DecodeError, RecursionError):
        pass  # no object, or no JSON at all
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Bad("the document is not JSON", why=str(error)) from error
    return None


def null_paths(plain: object, path: str = "") -> list[str]:
    """Return the dotted path of every `null`, list items by their index."""
    if plain is None:
        return [path]
    if isinstance(plain, dict):
        items = [(str(key), each) for key, each in plain.items()]
    elif isinstance(plain, list):
        items = [(str(index), each) for index, each in enumerate(plain)]
    else:
        return []
    inside = f"{path}." if path else ""
    return [found for key, each in items for found in null_paths(each, inside + key)]


def _check_finite(plain: object, path: str) -> None:
    if isinstance(plain, float) and not math.isfinite(plain):
        raise Bad(f"{path} is {plain}", why="a document holds finite numbers only")
    if isinstance(plain, dict):
        for key, each in plain.items():
            _check_finite(each, f"{path}.{key}" if path else str(key))
    elif isinstance(plain, list | tuple):
        for index, each in enumerate(plain):
            _check_finite(each, f"{path}.{index}")


def _check_reasons(plain: dict[str, Any]) -> None:
    reasons: dict[str, str] = plain["null_reasons"]
    paths = set(null_paths({key: each for key, each in plain.items() if key != "null_reasons"}))
    if missing := sorted(paths - set(reasons)):
        raise Bad(f"{missing[0]} is null without a reason", why="null_reasons must name it")
    if extra := sorted(set(reasons) - paths):
        raise Bad(f"null_reasons names {extra[0]}, which is not null")
    for path, reason in reasons.items():
        if reason.split(":")[0] not in NULL_CODES:
            raise Bad(f"unknown reason {reason!r} for {path}")


def written(data: object, kind: type[T], *, where: str) -> T:
    """Return what a person wrote as a record, or raise Refused naming the place and the value."""
    try:
        return msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as error:
        raise Refused(f"{where}: {error}") from error
