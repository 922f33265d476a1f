"""What a slot worker and its child say to each other: an assignment down, a record back.

Both are ordinary documents, so the same child runs under the queue, by hand and in a test. Sample
arrays do not travel in the record: they lie in `samples.npz` in the assignment's folder.
"""

from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType

from farm.schema import (
    Capture,
    Effort,
    Failure,
    Instrument,
    Job,
    Pass,
    PassTelemetry,
    Phase,
    WeightSpread,
)

OUTPUT: Final = "output.npz"
TRACE: Final = "trace.json"
Method = Literal["counter", "integrated", "rapl"]
Scope = Literal["device", "module", "package"]
ThroughputMethod = Literal["back_to_back", "pipelined"]


class Assignment(Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.assignment/v1"):
    """One repeat of a job: where it runs, on what, and where its artefacts go.

    folder: private to this repeat. bundle: the unpacked user code, "" for installed code.
    npz: the input arrays, "" when inputs are generated. cores: logical CPUs, one per core.
    accelerator: `cuda:N` among the visible ones, "" for the CPU. device_uuid: of the GPU that is
    leased and the only visible one, "" where nobody pins one. passes: what a clean child runs;
    an instrumented one has instruments in their place, and yields no latency. output: keep what
    the step returns, whatever its size, as OUTPUT in the folder. capture: of a pipeline.
    """

    job: Job
    effort: Effort
    index: int
    cores: list[int]
    threads: int
    folder: str
    bundle: str = ""
    npz: str = ""
    accelerator: str = ""
    device_uuid: str = ""
    passes: tuple[Pass, ...] = ("latency", "throughput", "memory")
    instruments: tuple[Instrument, ...] = ()
    output: bool = False
    capture: Capture | UnsetType = UNSET


class Edge(Struct, frozen=True, kw_only=True):
    """Scheduler evidence at one moment; None where the host does not offer it.

    run_ns, wait_ns: summed over all threads of the child. Counters only ever grow.
    """

    at_ns: int  # CLOCK_MONOTONIC
    run_ns: int | None
    wait_ns: int | None
    steal_ticks: int | None
    total_ticks: int | None
    psi_some_us: int | None
    nr_throttled: int | None
    major_faults: int | None
    involuntary_switches: int | None
    suspended_ns: int | None  # boottime − monotonic
    heat_throttles: int | None = None  # times that heat slowed these cores down


class WarmUp(Struct, frozen=True, kw_only=True):
    iterations: int
    seconds: float
    stop: Literal["fixed", "converged", "cap"]


class Compiling(Struct, frozen=True, kw_only=True):
    """The compile phase: iterations until three in a row compiled nothing, and events after it."""

    iterations: int
    seconds: float
    recompiles: int


class CudaPeaks(Struct, frozen=True, kw_only=True):
    """The allocator of one visible device since its peaks were reset, weights included.

    Memory that torch did not allocate (the context, libraries, other processes) is not in it. An
    unknown is None, with its code in `reasons`.
    """

    visible_index: int
    allocated_peak_bytes: int | None
    reserved_peak_bytes: int | None
    requested_peak_bytes: int | None
    inactive_split_peak_bytes: int | None
    alloc_retries: int | None
    reasons: dict[str, str] = {}


class DeviceReading(Struct, frozen=True, kw_only=True):
    """How the device-time pass went; its arrays lie in `samples.npz`. reason: why it has none."""

    enqueue_bound: bool
    reliable: bool
    reason: str = ""


class EnergyReading(Struct, frozen=True, kw_only=True):
    """What an energy window found, in J, W, s and °C; None has its code in reasons.

    edge_j: what the ends of the window leave open. iterations: inside it.
    """

    energy_gross_j: float | None = None
    energy_net_j: float | None = None
    energy_per_iteration_j: float | None = None
    energy_per_item_j: float | None = None
    energy_uncertainty_j: float | None = None
    power_mean_w: float | None = None
    power_idle_w: float | None = None
    window_s: float | None = None
    update_period_ms: float | None = None
    energy_method: Method | None = None
    energy_scope: Scope | None = None
    temperature_before_c: float | None = None
    temperature_after_c: float | None = None
    notes: list[str] = []
    windows: int = 0
    iterations: int | None = None
    edge_j: float | None = None
    reasons: dict[str, str] = {}

    @property
    def why(self) -> str:
        """Why there is no energy at all, or ""."""
        return self.reasons["energy_gross_j"] if self.energy_gross_j is None else ""


class MemoryReading(Struct, frozen=True, kw_only=True):
    rss_after_load_bytes: int | None
    rss_peak_bytes: int | None
    rss_peak_lifetime_bytes: int | None
    pss_bytes: int | None
    cuda: list[CudaPeaks] | None = None


class LayerReading(Struct, frozen=True, kw_only=True):
    """What a layer pass saw; its raw times lie in `layers.npz`.

    layers, types, calls: by row, in the order of their first execution; calls per iteration.
    attributed: whether the rows are all that an iteration does, so that a rest can be told.
    """

    method: Literal["wrapped", "hooks", "profiler", "fake"]
    clock: Literal["wall", "device"]
    layers: list[str]
    types: list[str]
    calls: list[float]
    warmup: int
    iterations: int
    blocks: int
    attributed: bool = True


class TraceReading(Struct, frozen=True, kw_only=True):
    """How a trace went; it lies in TRACE in the folder.

    wanted: iterations that were asked for; iterations: those in the trace, fewer where they would
    be too large. The times are those of `farm.schema.Captured`.
    """

    wanted: int
    iterations: int
    traced_ns: list[int]
    trace_bytes: int


class CostReading(Struct, frozen=True, kw_only=True):
    """What a model needs per batch, as `farm.schema.Cost`; None has its code in reasons.

    flops_by_layer: by the qualified name of the module, without what its children count.
    """

    params_total: int | None = None
    params_trainable: int | None = None
    params_unique_bytes: int | None = None
    buffers_bytes: int | None = None
    param_dtypes: dict[str, int] | None = None
    flops_per_batch: int | None = None
    flops_status: str = "skipped"
    flops_counter: str | None = None
    uncounted_ops: list[str] = []
    flops_coverage: float | None = None
    attention: str | None = None
    bytes_lower_bound_per_batch: int | None = None
    activation_peak_bytes: int | None = None
    flops_by_layer: dict[str, int] = {}
    reasons: dict[str, str] = {}


class Watched(Struct, frozen=True, kw_only=True):
    """What a device did in one pass, as whoever watched it says; reasons: by field, why it is null.

    base_clock_hz: of the device, None where nobody knows.
    """

    seen: PassTelemetry
    reasons: dict[str, str] = {}
    base_clock_hz: float | None = None


class Record(Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.record/v1"):
    """What one child found: raw readings and how far it came; no statistic that gets published.

    half_width_ppm: the half-width at which the latency pass stopped. of_blocks: steps per sample.
    throughput_method, _window_s and _iterations belong to the throughput pass. waits_ns: for the
    data of each iteration. loaders: processes of its own for that. stages_ns, pipeline, unused,
    notes: as of `farm.schema.Captured`.
    """

    index: int
    started_at: str
    phases: list[Phase]
    failure: Failure | UnsetType = UNSET
    import_s: float = 0.0
    load_s: float = 0.0
    first_ms: float | None = None
    compiling: Compiling | None = None
    warmup: WarmUp | None = None
    timer_floor_ns: int = 0
    of_blocks: int = 1
    half_width_ppm: int | None = None
    latency_edges: tuple[Edge, Edge] | None = None
    throughput_edges: tuple[Edge, Edge] | None = None
    throughput_method: ThroughputMethod = "back_to_back"
    throughput_iterations: int | None = None
    throughput_window_s: float | None = None
    memory: MemoryReading | None = None
    device: DeviceReading | None = None
    energy: EnergyReading | None = None
    effective_threads: dict[str, int] = {}
    affinity: list[int] = []
    precision_observed: dict[str, str] = {}
    resolved: dict[str, str] = {}
    subnormal_share: float | None = None
    output_digest: str = ""
    layers: LayerReading | None = None
    weights: WeightSpread | None = None
    cost: CostReading | None = None
    trace: TraceReading | None = None
    stages_ns: dict[str, list[int]] = {}
    waits_ns: list[int] = []
    loaders: int = 0
    pipeline: Literal["detection", "plain"] = "plain"
    unused: list[str] = []
    notes: list[str] = []
    reasons: dict[str, str] = {}  # of an instrument that found nothing: null code[: detail]
    flags: list[str] = []
    watched: list[Watched] = []  # filled in beside the child, which watches nothing
