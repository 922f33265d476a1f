"""What a slot worker and its child say to each other: an assignment down, a record back.

Both are ordinary documents, so the same child runs under the queue, by hand and in a test. Sample
arrays do not travel in the record: they lie in `samples.npz` in the assignment's folder.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from farm.schema import Effort, Failure, Job, Phase


class Assignment(Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.assignment/v1"):
    """One repeat of a job: where it runs, on what, and where its artefacts go.

    folder: private to this repeat. bundle: the unpacked user code, "" for installed code.
    npz: the input arrays, "" when inputs are generated. cores: logical CPUs, one per core.
    """

    job: Job
    effort: Effort
    index: int
    cores: list[int]
    threads: int
    folder: str
    bundle: str = ""
    npz: str = ""


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


class WarmUp(Struct, frozen=True, kw_only=True):
    iterations: int
    seconds: float
    stop: Literal["fixed", "converged", "cap"]


class MemoryReading(Struct, frozen=True, kw_only=True):
    rss_after_load_bytes: int | None
    rss_peak_bytes: int | None
    rss_peak_lifetime_bytes: int | None
    pss_bytes: int | None


class Record(Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.record/v1"):
    """What one child found: raw readings and how far it came; no statistic that gets published.

    half_width_ppm: the half-width at which the latency pass stopped. of_blocks: steps per sample.
    throughput_window_s and _iterations belong to the pipelined pass.
    """

    index: int
    started_at: str
    phases: list[Phase]
    failure: Failure | UnsetType = UNSET
    import_s: float = 0.0
    load_s: float = 0.0
    first_ms: float | None = None
    warmup: WarmUp | None = None
    timer_floor_ns: int = 0
    of_blocks: int = 1
    half_width_ppm: int | None = None
    latency_edges: tuple[Edge, Edge] | None = None
    throughput_edges: tuple[Edge, Edge] | None = None
    throughput_iterations: int | None = None
    throughput_window_s: float | None = None
    memory: MemoryReading | None = None
    effective_threads: dict[str, int] = {}
    affinity: list[int] = []
    precision_observed: dict[str, str] = {}
    resolved: dict[str, str] = {}
    subnormal_share: float | None = None
    output_digest: str = ""
    flags: list[str] = []
