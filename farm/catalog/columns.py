"""A profile as one flat row: the fixed list of columns, and how each is filled.

Columns are only ever added: a part that an older farm wrote lacks the new ones, and they read as
NULL there. What is absent and what is null are both NULL in a row; `null_reasons` tells them apart.
Raw documents stay the truth: what has no column (layers, logs, phases) is read from the inbox.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Final, Literal, NamedTuple

import msgspec

from farm.catalog import winners
from farm.catalog.rows import INBOX, Row
from farm.schema import INVALIDATING, Profile, Repeat

# text, integer (64 bits), real, boolean; time (UTC, microseconds, no zone written); texts and reals
# (lists); json (text that holds a JSON value).
Kind = Literal["text", "integer", "real", "boolean", "time", "texts", "reals", "json"]


class Column(NamedTuple):
    """path: where a profile holds it, dotted; "" for what is worked out of several places."""

    name: str
    kind: Kind
    path: str = ""


def _of(block: str, prefix: str = "", **fields: str) -> list[Column]:
    """Return columns of one block: fields by kind, `field=column` where the name is not
    prefix + field. A field that begins with the prefix is not given it twice."""
    made = []
    for kind, words in fields.items():
        for word in words.split():
            field, _, name = word.partition("=")
            name = name or (field if field.startswith(prefix) else prefix + field)
            path = f"{block}.{field}" if block else field
            made.append(Column(name, msgspec.convert(kind, Kind), path))
    return made


_PERCENTILES: Final = " ".join(f"p{q}_ms p{q}_lo_ms p{q}_hi_ms" for q in (50, 90, 95, 99))

# device: as asked, in the word of a sweep; device_name: what took it. received: the day it was
# sent. Start-up times are medians over the repeats that the figures are of.
COLUMNS: Final[Sequence[Column]] = (
    Column("profile_id", "text"),
    Column("received", "text"),
    *_of(
        "",
        text="job_id cell_id workload_id protocol_id system_id system_class card_id run_id "
        "repeat_set status",
        integer="attempt fence",
    ),
    *_of(
        "job.workload.model",
        "model_",
        text="name=model ref source digest kind",
        boolean="bundled",
    ),
    *_of(
        "job.workload",
        text="precision mode backend item",
        integer="batch",
        json="backend_options inputs",
    ),
    *_of(
        "job.protocol",
        "protocol_",
        integer="version",
        text="warmup iterations input_policy input_scope output_scope l2 gc denormals grad "
        "autocast_scope clocks compat",
    ),
    *_of("job.selector", "selector_", text="kind value exclusive environment"),
    Column("device", "text"),
    *_of(
        "execution",
        text="node worker start isolation memory_limit environment farm_version",
        time="started_at finished_at",
        real="queue_s overhead_s",
        integer="threads",
        boolean="simulated",
        json="tags resolved effective_threads precision_observed",
    ),
    *_of("execution.device", "device_", text="name slot=slot kind", json="cpus"),
    *_of(
        "execution.effort",
        "effort_",
        text="level",
        integer="repeats half_width_ppm budget_ms min_time_ms timeout_s memory_limit_bytes "
        "layer_iterations layer_budget_ms threads",
        json="percentiles",
        boolean="tails energy layers flops trace",
    ),
    *_of(
        "failure",
        "failure_",
        text="kind phase message hint signal",
        integer="exit_code",
        boolean="retryable",
    ),
    Column("repeats_n", "integer"),
    Column("repeats_usable", "integer"),
    Column("repeats_p50_ms", "reals"),
    Column("import_s", "real"),
    Column("load_s", "real"),
    Column("first_ms", "real"),
    *_of(
        "latency",
        integer="n n_eff timer_floor_ns of_blocks",
        real=f"mean_ms std_ms mad_ms iqr_rel min_ms max_ms {_PERCENTILES} proc_cv log_mean "
        "log_std clean_p50_ms clean_share p50_item_ms",
        json="percentiles",
        boolean="p50_reliable p90_reliable p95_reliable p99_reliable",
    ),
    *_of("throughput", "throughput_", real="throughput_items_per_s lo hi window_s", text="method"),
    *_of(
        "memory",
        integer="cpu_rss_after_load_bytes cpu_rss_peak_bytes cpu_rss_peak_lifetime_bytes "
        "cpu_pss_bytes cpu_inference_delta_bytes cuda_allocated_peak_bytes "
        "cuda_reserved_peak_bytes cuda_requested_peak_bytes cuda_inactive_split_peak_bytes "
        "cuda_alloc_retries",
        json="cuda_allocated_peak_bytes_by_visible_device",
    ),
    *_of(
        "gpu_time",
        "gpu_time_",
        integer="n",
        real="p50_ms p50_lo_ms p50_hi_ms std_ms enqueue_p50_ms",
        boolean="enqueue_bound reliable",
    ),
    *_of(
        "energy",
        real="energy_gross_j energy_net_j energy_per_iteration_j energy_per_item_j "
        "energy_uncertainty_j power_mean_w power_idle_w window_s=energy_window_s "
        "update_period_ms temperature_before_c temperature_after_c",
        integer="windows=energy_windows",
        text="energy_method energy_scope",
        texts="notes=energy_notes",
    ),
    *_of(
        "cost",
        integer="params_total params_trainable params_unique_bytes buffers_bytes flops_per_batch "
        "bytes_lower_bound_per_batch activation_peak_bytes",
        real="flops_per_item macs_per_item flops_coverage",
        text="flops_status flops_counter attention",
        json="param_dtypes weights",
        texts="uncounted_ops",
    ),
    *_of(
        "estimate",
        text="spec=roofline_spec dtype=roofline_dtype peak_source roofline_bound",
        real="peak_flops_per_s peak_bytes_per_s arithmetic_intensity_flop_per_byte "
        "ridge_flop_per_byte attainable_flops_per_s compute_ms memory_ms roofline_ms",
    ),
    *_of(
        "bounds",
        text="measured_bound heuristic_bound",
        real="mfu mbu gflops_per_second memory_bandwidth_mbs",
        boolean="roof_violation",
    ),
    *_of(
        "layers",
        "layers_",
        text="method clock",
        integer="warmup_iterations iterations rows",
        real="perturbation unattributed_ms profiled_ms clean_ms",
        json="hotspots",
    ),
    *_of("trace", "trace_", integer="iterations bytes"),
    *_of("quality", text="validity stability quiet", texts="flags neighbours"),
    *_of("", json="gate telemetry artifacts null_reasons", texts="warnings"),
)
NAMES: Final = tuple(each.name for each in COLUMNS)
_LARGEST: Final = 2**63


def flat(row: Row) -> dict[str, object]:
    """Return a row with a value for each column, None where there is none; never raises.

    A time that is none, and a number beyond 64 bits, are None, and `null_reasons` says so: one odd
    document of another writer must not keep the others out.
    """
    profile = row.profile
    plain = msgspec.to_builtins(profile)
    odd: dict[str, str] = {}
    made = _worked_out(row)
    for block, columns in _BY_BLOCK.items():
        inside = _block(plain, block)
        for name, field in columns:
            made[name] = inside.get(field)
    for column, read in _READ:
        if (value := made[column.name]) is not None:
            made[column.name] = read(value, column, odd)
    made["null_reasons"] = _json(profile.null_reasons | odd)
    return made


def _block(plain: Mapping[str, object], path: Sequence[str]) -> Mapping[str, object]:
    """Return what lies at a path; nothing if a part of it is absent."""
    found: object = plain
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _worked_out(row: Row) -> dict[str, object]:
    profile = row.profile
    selector = profile.job.selector
    counting = _counting(profile)
    first = [each.first_ms for each in counting if each.first_ms is not None]
    return {
        "profile_id": row.profile_id,
        "received": row.key.removeprefix(INBOX).removeprefix("date=")[:10],
        "device": selector.value or selector.kind,
        "repeats_n": len(profile.repeats),
        "repeats_usable": winners.usable(profile),
        "repeats_p50_ms": [each.p50_ms for each in counting],
        "import_s": median(each.import_s for each in counting) if counting else None,
        "load_s": median(each.load_s for each in counting) if counting else None,
        "first_ms": median(first) if first else None,
    }


def _counting(profile: Profile) -> list[Repeat]:
    """Return the repeats that the figures are of: those not invalid, or all when every one is."""
    good = [each for each in profile.repeats if INVALIDATING.isdisjoint(each.flags)]
    return good or profile.repeats


def _time(value: object, column: Column, odd: dict[str, str]) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value))
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except (ValueError, OverflowError):
        odd[column.path] = f"error: {str(value)[:40]!r} is no time"
        return None


def _integer(value: object, column: Column, odd: dict[str, str]) -> int | None:
    if isinstance(value, int) and -_LARGEST <= value < _LARGEST:
        return value
    odd[column.path] = "error: beyond 64 bits"
    return None


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _by_block() -> dict[tuple[str, ...], list[tuple[str, str]]]:
    """Return, for each block, the columns that it fills with the field of each."""
    found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for column in COLUMNS:
        if column.path:
            *block, field = column.path.split(".")
            found.setdefault(tuple(block), []).append((column.name, field))
    return found


Reader = Callable[[object, Column, dict[str, str]], object]
_READERS: Final[Mapping[str, Reader]] = {
    "integer": _integer,
    "time": _time,
    "json": lambda value, _column, _odd: _json(value),
}
_MIXED: Final = frozenset({"job.protocol.iterations", "job.protocol.warmup"})  # a number or a word


def _text(value: object, _column: Column, _odd: dict[str, str]) -> str:
    return str(value)


def _read() -> list[tuple[Column, Reader]]:
    """Return the columns that are not taken as they are, each with what reads it."""
    found: list[tuple[Column, Reader]] = []
    for column in COLUMNS:
        reader = _text if column.path in _MIXED else _READERS.get(column.kind)
        if column.path and reader:
            found.append((column, reader))
    return found


_BY_BLOCK: Final = _by_block()
_READ: Final = _read()
