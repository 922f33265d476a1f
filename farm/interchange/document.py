"""What a callable JSON holds, key by key, and how it is laid out in a file.

The first keys, up to `inputs_sha256`, are those of the other tool in its order; `schema` and what
follows are ours. `…_mb` is MiB and `…_gb` GiB there, both powers of two.
"""

import json
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from farm import schema
from farm.schema import Cost, Stability, Stored, Validity

TAG: Final = "farm.callable/v1"
TIMING_SCOPE: Final = (
    "wall time of one call, with every visible CUDA device synchronised before and after it; "
    "whatever the function does inside is timed"
)
RATES_HZ: Final = (5, 10, 30)
# The other tool's own keys; a file that has these is one of its files.
_ITS_MARKS: Final = ("timing_scope", "latency_samples_ms", "model_callable")
_OURS_BEGIN_AT: Final = "latency_detail"


class Array(Stored, frozen=True, kw_only=True):
    shape: list[int]
    dtype: str


class Times(Stored, frozen=True, kw_only=True):
    """Percentiles by linear interpolation, and the arithmetic mean, over all samples."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float


class Peaks(Stored, frozen=True, kw_only=True):
    """MiB: resident memory since the process began; the torch allocator's after warm-up."""

    cpu_process_lifetime_peak_mb: float | None
    cuda_peak_allocated_mb_by_visible_device: dict[str, float | None] | None


class SystemCard(Stored, frozen=True, kw_only=True):
    """The hardware and software that was measured on, as found; what is unknown is null.

    precision: as declared. batch_size, input_resolution: as somebody said them with a tag.
    """

    gpu_name: str | None
    gpu_memory_gb: float | None
    gpu_count: int | None
    cpu_name: str | None
    ram_gb: float | None
    cuda_version: str | None
    pytorch_version: str | None
    python_version: str | None
    precision: str | None
    batch_size: int | None
    input_resolution: str | None
    os: str | None
    driver_version: str | None


class Interval(Stored, frozen=True, kw_only=True):
    low_ms: float
    high_ms: float
    confidence: float
    n_eff: int


class Detail(Stored, frozen=True, kw_only=True):
    """How far to trust the times. process_p50_ms: the median of each process, in their order.

    of_blocks: calls that one sample stands for.
    """

    n: int
    p90_ms: float
    std_ms: float | None
    min_ms: float
    max_ms: float
    mad_ms: float
    intervals: dict[str, Interval | None]
    reliable: dict[str, bool]
    process_p50_ms: list[float]
    timer_floor_ns: int | None
    of_blocks: int
    stability: Stability | None
    validity: Validity | None


class Budget(Stored, frozen=True, kw_only=True):
    """beta: the share of a period that one call takes at this rate; feasible: at most 1."""

    beta: float
    feasible: bool


class Provenance(Stored, frozen=True, kw_only=True):
    """Which code ran, when, and beside what; times in UTC.

    dirty: whether the code differs from its commit. host_load_1m: before it began.
    visible_devices: CUDA_VISIBLE_DEVICES as it was set, `all` if it was not.
    """

    code_digest: str | None
    commit: str | None
    dirty: bool | None
    container_image: str | None
    host_load_1m: float | None
    started_at: str | None
    finished_at: str | None
    visible_devices: str | None
    threads: int | None
    precision_observed: dict[str, str]


class CallableProfile(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.callable/v1"
):
    """One function, called again and again with the same arrays.

    latency_samples_ms: every measured call in order. cost: null for a function whose inside nobody
    sees. card: the whole system card, the reasons of its nulls standing in `null_reasons`.
    """

    timing_scope: str
    device: str
    unit: str
    warmup_calls: int
    measured_calls: int
    inputs: dict[str, Array]
    latency: Times
    latency_samples_ms: list[float]
    memory: Peaks
    system_card: SystemCard
    notes: list[str]
    model_callable: str
    inputs_sha256: str | None
    latency_detail: Detail
    realtime_budget: dict[str, Budget]
    flags: list[str]
    null_reasons: dict[str, str]
    card: schema.SystemCard | None
    profile_id: str | None
    tags: dict[str, str]
    provenance: Provenance
    cost: Cost | None


class RosterValidation(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.roster_validation/v1"
):
    """Whether a roster is complete and sound. headline_fields: the columns of the table.

    expected_models, profiles_found: counts. errors: each names the model; any of them is a FAIL.
    """

    roster: str
    expected_models: int
    profiles_found: int
    headline_fields: list[str]
    errors: list[str]
    notes: list[str]
    status: Literal["PASS", "FAIL"]


def encode(document: CallableProfile) -> bytes:
    """Return the document as it lies in a file: its keys in their order, two spaces of indent.

    Raises Bad if a number is not finite, or if the nulls and their reasons do not agree.
    """
    plain: dict[str, object] = msgspec.json.decode(schema.encode(document))
    tag = plain.pop("schema")
    ordered: dict[str, object] = {}
    for key, value in plain.items():
        if key == _OURS_BEGIN_AT:
            ordered["schema"] = tag
        ordered[key] = value
    text = json.dumps(ordered, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def is_callable(data: object) -> bool:
    """Return whether plain data is a callable JSON, ours or the other tool's."""
    if not isinstance(data, Mapping):
        return False
    if "schema" in data:
        return bool(data["schema"] == TAG)
    return all(key in data for key in _ITS_MARKS)


def is_gpu(device: str) -> bool:
    """Return whether what was measured ran on a GPU, by the name of its device."""
    return device.partition(":")[0] != "cpu"


def realtime_budget(p50_ms: float) -> dict[str, Budget]:
    """Return by rate in Hz the share of a period that a call takes: p50 / (1000 / hz).

    At most 1 is feasible. Source: S1.46, G6.
    """
    found = {}
    for hz in RATES_HZ:
        beta = p50_ms * hz / 1000
        found[str(hz)] = Budget(beta=beta, feasible=beta <= 1)
    return found
