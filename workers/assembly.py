"""The profile of an attempt, put together from what its children left."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, get_args

from msgspec import UNSET, UnsetType

from farm.hardware import Roofs
from farm.schema import (
    Capture,
    Device,
    Execution,
    Failure,
    Instrument,
    Order,
    Pass,
    Profile,
    Status,
    SystemCard,
)
from workers import captured, figures, folders, readings, resources
from workers.record import Record

# Failures that are ours: the job may be measured elsewhere.
INFRA: Final = frozenset({"environment", "identity_mismatch", "worker_lost", "store"})


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What one try at a job is, before anything is measured.

    bundle, npz: where the user's code and input arrays were staged, "" where there are none.
    passes, instruments, accelerator, device_uuid, output, capture: as of an assignment; without
    passes the instrumented child is all there is. roofs: measured peaks of this system, None while
    nobody took them.
    """

    order: Order
    run_id: str
    attempt: int
    fence: int
    node: str
    worker: str
    device: Device
    card: SystemCard
    card_id: str
    threads: int
    environment: str
    flags: tuple[str, ...]
    memory_limit: str
    queue_s: float | None
    farm_version: str
    folder: Path
    bundle: str = ""
    npz: str = ""
    passes: tuple[Pass, ...] = get_args(Pass)
    instruments: tuple[Instrument, ...] = ()
    accelerator: str = ""
    device_uuid: str = ""
    output: bool = False
    capture: Capture | UnsetType = UNSET
    roofs: Roofs | None = None


@dataclass
class Found:
    """What the children of an attempt came to so far; output: what the last one printed."""

    taken: list[figures.Taken] = field(default_factory=list)
    seen: readings.Seen | None = None
    failure: Failure | None = None
    output: bytes = b""
    crashes: int = 0


def profile(attempt: Attempt, found: Found, started: datetime, ended: datetime) -> Profile:
    """Return the profile, without artefacts yet; a layer table is left in the attempt's folder."""
    order, job = attempt.order, attempt.order.job
    status, blocks, nulls = _result(attempt, found)
    for index, each in enumerate(found.taken):
        nulls |= {f"repeats.{index}.{name}": why for name, why in each.nulls.items()}
    execution = _execution(attempt, found, started, ended)
    if execution.queue_s is None:
        nulls["execution.queue_s"] = "not_probed"
    return Profile(
        job_id=job.job_id,
        cell_id=job.cell_id,
        workload_id=job.workload_id,
        protocol_id=job.protocol_id,
        system_id=attempt.card.system_id,
        system_class=attempt.card.system_class,
        card_id=attempt.card_id,
        run_id=attempt.run_id,
        repeat_set=order.repeat_set,
        attempt=attempt.attempt,
        fence=attempt.fence,
        job=job,
        status=status,
        execution=execution,
        repeats=[each.repeat for each in found.taken],
        warnings=_warnings(attempt, found),
        null_reasons=nulls,
        **blocks,
    )


def _result(attempt: Attempt, found: Found) -> tuple[Status, dict[str, Any], dict[str, str]]:
    """Return how the attempt ended, its blocks, and why something in them is null."""
    failure = found.failure
    if failure is None and attempt.passes and not found.taken:
        failure = Failure(kind="crashed", phase="start", message="no repeat ended")
    if failure is not None:
        return "infra" if failure.kind in INFRA else "failed", {"failure": failure}, {}
    blocks, nulls = _blocks(found.taken, attempt) if found.taken else ({}, {})
    on_gpu = bool(attempt.accelerator) or attempt.device.kind != "cpu"
    more = readings.found(
        found.seen,
        order=attempt.order,
        device=attempt.device,
        on_gpu=on_gpu,
        latency=blocks.get("latency"),
        gpu_time=blocks.get("gpu_time"),
        memory=blocks.get("memory"),
        roofs=None if attempt.accelerator else attempt.roofs,  # they are of the slot, a CPU
    )
    if more.table is not None:
        folders.keep_table(attempt.folder, more.table)
    if "trace" in attempt.instruments or attempt.capture is not UNSET:
        kept, traced, why = captured.beside(found.taken, found.seen)
        folders.keep_captured(attempt.folder, kept)
        blocks["trace"] = traced
        nulls |= {"trace": why} if why else {}
    return "ok", blocks | more.blocks, nulls | more.nulls


def _blocks(
    taken: Sequence[figures.Taken], attempt: Attempt
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the blocks of the passes that ran, and why something in them is null."""
    used, order = figures.counted(taken), attempt.order
    latency, why = figures.latency(
        used, batch=order.job.workload.batch, asked=order.effort.percentiles
    )
    made: dict[str, tuple[Any, dict[str, str]]] = {
        "latency": (latency, why),
        "memory": resources.memory(used),
        "gpu_time": resources.gpu_time(used),
        "energy": resources.energy(used, wanted=order.effort.repeats),
        "telemetry": resources.telemetry(used),
    }
    if "throughput" in attempt.passes:
        made["throughput"] = figures.throughput(used)
    blocks = {name: block for name, (block, _) in made.items()}
    nulls = {
        f"{name}.{path}" if path else name: reason
        for name, (_, reasons) in made.items()
        for path, reason in reasons.items()
    }
    blocks["quality"] = figures.quality(
        used, latency, wanted=order.effort.repeats, slot_flags=attempt.flags
    )
    return blocks, nulls


def _warnings(attempt: Attempt, found: Found) -> list[str]:
    """Return what a person should know that is no figure: an output that could not be kept."""
    records = _records(found)
    notes = list(dict.fromkeys(note for each in records for note in each.notes))
    why = [each.reasons["output"] for each in records if "output" in each.reasons]
    if why and folders.output(attempt.folder) is None:
        notes.append(f"the output was not kept: {why[0]}")
    return notes


def _records(found: Found) -> list[Record]:
    """Return what the children said that ended well, the instrumented one last."""
    seen = [each.record for each in found.taken]
    return seen + ([found.seen.record] if found.seen is not None and found.seen.record else [])


def _execution(attempt: Attempt, found: Found, started: datetime, ended: datetime) -> Execution:
    seen = _records(found)
    first = seen[0] if seen else None
    inside = sum(phase.duration_s for each in seen for phase in each.phases)
    return Execution(
        node=attempt.node,
        worker=attempt.worker,
        started_at=_stamp(started),
        finished_at=_stamp(ended),
        queue_s=attempt.queue_s,
        overhead_s=max(0.0, (ended - started).total_seconds() - inside),
        start="cold",
        isolation="plain",
        memory_limit=attempt.memory_limit,  # type: ignore[arg-type]
        environment=attempt.environment,
        device=attempt.device,
        threads=attempt.threads,
        effective_threads=first.effective_threads if first else {},
        simulated=attempt.card.stable.simulated,
        farm_version=attempt.farm_version,
        tags=attempt.order.tags,
        effort=attempt.order.effort,
        resolved=first.resolved if first else {},
        precision_observed=first.precision_observed if first else {},
    )


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
