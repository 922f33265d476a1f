"""From what an instrumented child read to blocks of a profile: layers, cost, and what limits it.

A block that could not be had is null with its reason; a reason of a field inside is told by its
path. Nothing here was a latency, and none becomes one.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct, UnsetType, structs

from farm import hardware
from farm.hardware import Roofs
from farm.schema import (
    Cost,
    Device,
    Estimate,
    Failure,
    GpuTime,
    Hotspot,
    Latency,
    Layers,
    LayerTable,
    Memory,
    Order,
)
from farm.trace import layers, shares
from workers.figures import Arrays
from workers.record import CostReading, Record

_BLOCKS: Final = ("layers", "cost", "estimate", "bounds")
_MOVED: Final = "bytes_lower_bound_per_batch"
_HOTSPOTS: Final = 5
_NO_ROOFS: Final = "not_probed: `farm-worker roofs` measures the peaks of this machine"
_READ: Final = set(CostReading.__struct_fields__)


@dataclass(frozen=True, kw_only=True)
class Found:
    """Blocks of a profile by name, why something in them is null, and the whole layer table."""

    blocks: dict[str, Any]
    nulls: dict[str, str]
    table: LayerTable | None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the instrumented child left, or why it left nothing."""

    record: Record | None = None
    arrays: Arrays = field(default_factory=dict)
    failure: Failure | None = None

    def reason(self, instrument: str) -> str:
        """Return why this instrument found nothing: a code, with what the child said of it."""
        if self.record is not None:
            return self.record.reasons.get(instrument, "not_requested")
        assert self.failure is not None, "no record means a failure"
        code = "timed_out" if self.failure.kind == "timeout" else "phase_failed"
        return f"{code}: {self.failure.kind} in phase {self.failure.phase}"


def found(
    seen: Seen | None,
    *,
    order: Order,
    device: Device,
    on_gpu: bool,
    latency: Latency | None,
    gpu_time: GpuTime | None,
    memory: Memory | None,
    roofs: Roofs | None,
) -> Found:
    """Return what the instrumented child is worth, beside what the clean ones measured.

    seen: None where nothing was asked of it. device: the slot; on_gpu: whether a GPU computed, also
    where the slot is a CPU. roofs: measured peaks of what computed, if there are.
    """
    seen = seen or Seen(record=Record(index=-1, started_at="", phases=[]))
    workload, reading = order.job.workload, seen.record.cost if seen.record else None
    name = seen.record.resolved.get("cuda_device", device.name) if seen.record else device.name
    made: dict[str, tuple[Struct, dict[str, str]] | None] = dict.fromkeys(_BLOCKS)
    peak, no_peak = None, ""
    if reading is not None:
        work = _work(reading)
        told, why = _estimate(
            work, seen, workload.precision, device=name, on_gpu=on_gpu, roofs=roofs
        )
        peak, no_peak = told.peak_flops_per_s, why.get("peak_source", "")
        needs, why_not = cost(reading, batch=workload.batch)
        spread = seen.record.weights if seen.record else None
        needs = needs if spread is None else structs.replace(needs, weights=spread)
        made["cost"] = needs, why_not
        made["estimate"] = (told, why) if told.peak_source is not None else None
        if latency is not None:
            times = _times(latency, memory, reading, on_gpu=on_gpu, gpu_time=gpu_time)
            made["bounds"] = hardware.bounds(work, told, times, reasons=why)
    table = _table(seen, workload.precision, device=name, peak_flops_per_s=peak)
    made["layers"] = None if table is None else summary(table)
    nothing = {**dict.fromkeys(_BLOCKS, seen.reason("flops")), "layers": seen.reason("layers")}
    if reading is not None:
        nothing |= {"bounds": "not_requested", "estimate": no_peak}
    blocks = {name: None if each is None else each[0] for name, each in made.items()}
    nulls = {name: nothing[name] for name, each in made.items() if each is None}
    for name, each in made.items():
        nulls |= {f"{name}.{path}": why for path, why in each[1].items()} if each else {}
    return Found(blocks=blocks, nulls=nulls, table=table)


def _work(reading: CostReading) -> hardware.Work:
    unknown = {
        name: reading.reasons[field]
        for name, field in (("flops", "flops_per_batch"), ("moved_bytes", _MOVED))
        if field in reading.reasons
    }
    return hardware.Work(
        flops=reading.flops_per_batch,
        moved_bytes=reading.bytes_lower_bound_per_batch,
        reasons=unknown,
    )


def _estimate(
    work: hardware.Work,
    seen: Seen,
    precision: str,
    *,
    device: str,
    on_gpu: bool,
    roofs: Roofs | None,
) -> tuple[Estimate, dict[str, str]]:
    """Return the roofline of the device: of its measured peaks, and on a GPU else of the table."""
    observed = seen.record.precision_observed if seen.record else {}
    listed = _listed(seen, device) if on_gpu else hardware.Found(row=None, reason=_NO_ROOFS)
    dtype = "fp32" if precision == "unspecified" else precision
    spec = hardware.chosen(
        on_gpu=on_gpu,
        measured=None if roofs is None else hardware.peaks(roofs, moved_bytes=work.moved_bytes),
        listed=None if listed.row is None else listed.row.spec,
        dtype=dtype,
    )
    return hardware.estimate(
        work,
        spec,
        dtype=dtype,
        tf32=on_gpu and hardware.uses_tf32(observed.get("matmul_fp32", "")),
        device=device,
        reason=listed.reason,
    )


def _listed(seen: Seen, name: str) -> hardware.Found:
    """Return the row of a GPU by its whole name, checked by the memory that the child saw."""
    held = seen.record.resolved.get("cuda_memory_bytes", "") if seen.record else ""
    memory_bytes = int(held) if held.isdecimal() else None
    return hardware.lookup(hardware.table(), name, memory_bytes=memory_bytes)


def _times(
    latency: Latency,
    memory: Memory | None,
    reading: CostReading,
    *,
    on_gpu: bool,
    gpu_time: GpuTime | None,
) -> hardware.Times:
    """Return what the limits are judged by; the model's own memory where all of it is known.

    The interpreter and the framework, some 200 MiB, are no memory of the model.
    """
    parts = (reading.params_unique_bytes, reading.buffers_bytes, reading.activation_peak_bytes)
    own = None if None in parts else sum(each or 0 for each in parts)
    peak: int | UnsetType | None = None
    if memory is not None:
        peak = memory.cuda_allocated_peak_bytes if on_gpu else memory.cpu_rss_peak_bytes
    whole = peak if isinstance(peak, int) else None
    return hardware.Times(
        p50_ms=latency.p50_ms,
        gpu_time_ms=None if gpu_time is None else gpu_time.p50_ms,
        on_gpu=on_gpu,
        peak_memory_bytes=whole if own is None else own,
    )


def _table(
    seen: Seen, precision: str, *, device: str, peak_flops_per_s: float | None
) -> LayerTable | None:
    record = seen.record
    if record is None or record.layers is None:
        return None
    return layers.reduce(
        record.layers,
        seen.arrays["layer_ns"],
        profiled_ns=seen.arrays["profiled_ns"],
        clean_ns=seen.arrays["clean_ns"],
        precision=precision,
        device=device,
        flops_by_layer=record.cost.flops_by_layer if record.cost is not None else None,
        peak_flops_per_s=peak_flops_per_s,
    )


def cost(reading: CostReading, *, batch: int) -> tuple[Cost, dict[str, str]]:
    """Return the cost of a step with its items: per batch and per item; and why a field is null.

    MACs are half the FLOPs (S1.3, C7).
    """
    flops = reading.flops_per_batch
    per_item = None if flops is None else flops / batch
    named = {name: getattr(reading, name) for name in Cost.__struct_fields__ if name in _READ}
    made = Cost(
        **named,
        flops_per_item=per_item,
        macs_per_item=None if per_item is None else per_item / 2,
    )
    why = dict(reading.reasons)
    for name in ("flops_per_item", "macs_per_item"):
        why[name] = reading.reasons.get("flops_per_batch", "not_supported")
    nulls = [name for name in Cost.__struct_fields__ if getattr(made, name) is None]
    return made, {name: why.get(name, "not_supported") for name in nulls}


def summary(table: LayerTable) -> tuple[Layers, dict[str, str]]:
    """Return what a profile keeps of a layer table, and why a field of it is null.

    Its hotspots are ranked by their shares by medians, which no few slow iterations carry.
    """
    largest = shares.by_median(table)[:_HOTSPOTS]
    hotspots = [Hotspot(layer=row.layer, type=row.type, share_pct=pct) for row, pct in largest]
    shared = set(LayerTable.__struct_fields__) & set(Layers.__struct_fields__) - {"rows"}
    made = Layers(
        **{name: getattr(table, name) for name in shared},
        rows=len(table.rows),
        hotspots=hotspots,
    )
    nulls = [name for name in Layers.__struct_fields__ if getattr(made, name) is None]
    return made, {name: table.null_reasons[name] for name in nulls}
