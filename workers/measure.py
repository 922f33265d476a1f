"""The parent's side of one attempt: a child per repeat, a judgement of what it found, a profile.

Repeats that ended lie in the attempt's folder until the profile is stored, so the next attempt on
the same system takes them over and a crash costs at most the repeat in hand. A contended repeat is
tried once more; a child that died of a signal nobody here sent is tried once more; every other
failure is the answer.
"""

import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import msgspec
import numpy as np
from msgspec import UNSET

from farm.schema import (
    Device,
    Execution,
    Failure,
    Order,
    Profile,
    Status,
    SystemCard,
)
from workers import figures
from workers.launch import Ended
from workers.record import Assignment, Record

INVALID_RETRIES: Final = 1
CRASH_RETRIES: Final = 1
_LOG_TAIL = 4096
_INFRA: Final = frozenset({"environment", "worker_lost", "store"})

Run = Callable[[Assignment], tuple[Ended, tuple[str, ...]]]


class Interrupted(Exception):
    """The attempt was told to stop: nothing is stored, the entry goes back or is lost."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What one try at a job is, before anything is measured.

    bundle, npz: where the user's code and input arrays were staged, "" where there are none.
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


@dataclass
class _Found:
    taken: list[figures.Taken] = field(default_factory=list)
    failure: Failure | None = None
    output: bytes = b""
    crashes: int = 0


def measure(attempt: Attempt, *, run: Run, now: Callable[[], datetime]) -> Profile:
    """Run the repeats of a job and return its profile, without artefacts yet.

    run: starts one child and returns how it ended and which neighbours disturbed it.
    Raises Interrupted if a child was stopped from outside.
    """
    started = now()
    found = _Found()
    for index in range(attempt.order.effort.repeats + INVALID_RETRIES + CRASH_RETRIES):
        if not _is_wanted(attempt, found):
            break
        kept = _kept(attempt, index)
        if kept is not None:
            found.taken.append(kept)
        else:
            _one_repeat(attempt, index, found, run)
    return _profile(attempt, found, started, now())


def merged_samples(folder: Path) -> bytes:
    """Return one npz with the arrays of every repeat, named `<array>_<repeat>`; b"" for none."""
    arrays: dict[str, Any] = {}
    for each in sorted(folder.glob("repeat-*/samples.npz")):
        index = int(each.parent.name.split("-")[1])
        arrays |= {f"{name}_{index}": found for name, found in _arrays(each).items()}
    if not arrays:
        return b""
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


def merged_log(folder: Path) -> bytes:
    """Return what the children of the attempt printed, repeat after repeat."""
    parts = []
    for each in sorted(folder.glob("repeat-*/output.log")):
        parts.append(f"── {each.parent.name} ──\n".encode() + each.read_bytes())
    return b"\n".join(parts)


def _is_wanted(attempt: Attempt, found: _Found) -> bool:
    if found.failure is not None:
        return False
    usable = sum(not each.is_invalid for each in found.taken)
    wanted = attempt.order.effort.repeats
    return usable < wanted and len(found.taken) < wanted + INVALID_RETRIES


def _one_repeat(attempt: Attempt, index: int, found: _Found, run: Run) -> None:
    folder = attempt.folder / f"repeat-{index}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    order = attempt.order
    ended, neighbours = run(
        Assignment(
            job=order.job,
            effort=order.effort,
            index=index,
            cores=attempt.device.cpus,
            threads=attempt.threads,
            folder=str(folder),
            bundle=attempt.bundle,
            npz=attempt.npz,
        )
    )
    if ended.cause == "stopped":
        raise Interrupted
    (folder / "output.log").write_bytes(ended.output)
    found.output = ended.output
    record = ended.record
    if record is not None and record.failure is UNSET:
        _keep(folder, record, neighbours)
        taken = _read(folder, order)
        assert taken is not None
        found.taken.append(taken)
        return
    failure = _failure(ended, order)
    if failure.kind == "crashed" and found.crashes < CRASH_RETRIES:
        found.crashes += 1
        return
    found.failure = failure


def _failure(ended: Ended, order: Order) -> Failure:
    """Return why a child brought nothing: its own words, our clock, or the signal it died of."""
    tail = ended.output[-_LOG_TAIL:].decode(errors="replace")
    if ended.record is not None and isinstance(ended.record.failure, Failure):
        said = ended.record.failure
        return msgspec.structs.replace(said, log_tail=tail, retryable=said.kind in _INFRA)
    common: dict[str, Any] = {"phase": ended.phase, "log_tail": tail}
    if ended.exit_code is not None:
        common["exit_code"] = ended.exit_code
    if ended.signal is not None:
        common["signal"] = ended.signal
    if ended.cause in ("timeout", "silent"):
        limit = f"{order.effort.timeout_s} s" if ended.cause == "timeout" else "its silence limit"
        return Failure(
            kind="timeout",
            message=f"still in phase {ended.phase} after {limit}; stopped",
            hint="raise measure.timeout, or look at the stacks in the log",
            retryable=True,
            **common,
        )
    if ended.cause == "not_ready":
        return Failure(
            kind="environment",
            message="the child did not say a word; the framework may not import",
            retryable=True,
            **common,
        )
    how = f"died of {ended.signal}" if ended.signal else f"exited with {ended.exit_code}"
    return Failure(
        kind="crashed",
        message=f"the process {how} in phase {ended.phase} and left no result",
        hint="look at the last lines it printed",
        **common,
    )


def _keep(folder: Path, record: Record, neighbours: Sequence[str]) -> None:
    partial = folder / ".record.tmp"
    kept = {"record": msgspec.to_builtins(record), "neighbours": list(neighbours)}
    partial.write_text(json.dumps(kept))
    partial.rename(folder / "record.json")


def _kept(attempt: Attempt, index: int) -> figures.Taken | None:
    """Return a repeat that an earlier attempt on this system finished, if there is one."""
    return _read(attempt.folder / f"repeat-{index}", attempt.order)


def _read(folder: Path, order: Order) -> figures.Taken | None:
    try:
        kept = json.loads((folder / "record.json").read_text())
        record = msgspec.convert(kept["record"], Record)
        arrays = _arrays(folder / "samples.npz")
    except (OSError, EOFError, ValueError, KeyError, BadZipFile, msgspec.ValidationError):
        return None
    who = tuple(str(each) for each in kept["neighbours"])
    return figures.taken(record, arrays, batch=order.job.workload.batch, neighbours=who)


def _arrays(path: Path) -> dict[str, Any]:
    # numpy leaves a file that it opened itself open when it is no archive
    with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def _profile(attempt: Attempt, found: _Found, started: datetime, ended: datetime) -> Profile:
    order, job = attempt.order, attempt.order.job
    status: Status = "ok"
    blocks: dict[str, Any] = {}
    nulls: dict[str, str] = {}
    if found.failure is not None or not found.taken:
        failure = found.failure or Failure(kind="crashed", phase="start", message="no repeat ended")
        status = "infra" if failure.kind in _INFRA else "failed"
        blocks["failure"] = failure
    else:
        blocks, nulls = _blocks(found.taken, order.effort.repeats, attempt.flags)
    for index, each in enumerate(found.taken):
        nulls |= {f"repeats.{index}.{name}": why for name, why in each.nulls.items()}
    inside = sum(sum(p.duration_s for p in each.repeat.phases) for each in found.taken)
    execution = _execution(attempt, found, started, ended, inside)
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
        null_reasons=nulls,
        **blocks,
    )


def _blocks(
    taken: Sequence[figures.Taken], wanted: int, flags: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    used = figures.counted(taken)
    latency, latency_nulls = figures.latency(used)
    throughput, throughput_nulls = figures.throughput(used)
    memory, memory_nulls = figures.memory(used)
    nulls = {f"latency.{name}": why for name, why in latency_nulls.items()}
    nulls |= {f"throughput.{name}": why for name, why in throughput_nulls.items()}
    nulls |= {f"memory.{name}": why for name, why in memory_nulls.items()}
    return {
        "latency": latency,
        "throughput": throughput,
        "memory": memory,
        "quality": figures.quality(used, latency, wanted=wanted, slot_flags=flags),
    }, nulls


def _execution(
    attempt: Attempt, found: _Found, started: datetime, ended: datetime, inside: float
) -> Execution:
    first = found.taken[0].record if found.taken else None
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
