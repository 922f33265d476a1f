"""The parent's side of one attempt: a child per repeat, a judgement of what it found, a profile.

After the clean repeats comes one instrumented child, whose failure costs its own blocks only.
Repeats that ended lie in the attempt's folder until the profile is stored, so the next attempt on
the same system takes them over and a crash costs at most the repeat in hand. A contended repeat is
tried once more; a child that died of a signal nobody here sent is tried once more; every other
failure is the answer.
"""

import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from farm.schema import (
    Failure,
    Order,
    Profile,
)
from workers import figures, folders, readings
from workers.assembly import INFRA, Attempt, Found, profile
from workers.launch import Ended
from workers.record import Assignment

INVALID_RETRIES: Final = 1
CRASH_RETRIES: Final = 1
_LOG_TAIL = 4096

Run = Callable[[Assignment], tuple[Ended, tuple[str, ...]]]


class Interrupted(Exception):
    """The attempt was told to stop: nothing is stored, the entry goes back or is lost."""


def measure(attempt: Attempt, *, run: Run, now: Callable[[], datetime]) -> Profile:
    """Run the repeats of a job and return its profile, without artefacts yet.

    run: starts one child and returns how it ended and which neighbours disturbed it.
    Raises Interrupted if a child was stopped from outside.
    """
    started = now()
    found = Found()
    for index in range(attempt.order.effort.repeats + _retries(attempt) + CRASH_RETRIES):
        if not _is_wanted(attempt, found):
            break
        kept = _kept(attempt, index)
        if kept is not None:
            found.taken.append(kept)
        else:
            _one_repeat(attempt, index, found, run)
    if attempt.instruments and found.failure is None:
        _instrumented(attempt, found, run)
    return profile(attempt, found, started, now())


def _is_wanted(attempt: Attempt, found: Found) -> bool:
    if found.failure is not None or not attempt.passes:
        return False
    usable = sum(not each.is_invalid for each in found.taken)
    wanted = attempt.order.effort.repeats
    return usable < wanted and len(found.taken) < wanted + _retries(attempt)


def _retries(attempt: Attempt) -> int:
    """Return how many disturbed repeats are taken anew: none where a preset counts the calls.

    A function under such a preset may be a service that charges for each of them.
    """
    return INVALID_RETRIES if attempt.order.job.protocol.compat is UNSET else 0


def _one_repeat(attempt: Attempt, index: int, found: Found, run: Run) -> None:
    ended, neighbours, folder = _child(attempt, folders.repeat(index), found, run, index=index)
    record = ended.record
    if record is not None and record.failure is UNSET:
        folders.keep(folder, record, neighbours)
        taken = _read(folder, attempt.order)
        assert taken is not None
        found.taken.append(taken)
        return
    failure = _failure(ended, attempt.order)
    if failure.kind == "crashed" and found.crashes < min(CRASH_RETRIES, _retries(attempt)):
        found.crashes += 1
        return
    found.failure = failure


def _instrumented(attempt: Attempt, found: Found, run: Run) -> None:
    """Run the instrumented child, unless an earlier attempt has.

    Its failure is that of the job only where nothing else was asked for.
    """
    kept = folders.read(attempt.folder / folders.INSTRUMENTED)
    if kept is None:
        ended, neighbours, folder = _child(attempt, folders.INSTRUMENTED, found, run, index=-1)
        record = ended.record
        if record is None or record.failure is not UNSET:
            failure = _failure(ended, attempt.order)
            found.seen = readings.Seen(failure=failure)
            found.failure = None if attempt.passes else failure
            return
        folders.keep(folder, record, neighbours)
        kept = folders.read(folder)
        assert kept is not None
    found.seen = readings.Seen(record=kept[0], arrays=kept[1])


def _child(
    attempt: Attempt, name: str, found: Found, run: Run, *, index: int
) -> tuple[Ended, tuple[str, ...], Path]:
    """Run one child in a folder of this name and keep what it printed; index -1: instrumented."""
    folder = attempt.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ended, neighbours = run(
        Assignment(
            job=attempt.order.job,
            effort=attempt.order.effort,
            index=index,
            cores=attempt.device.cpus,
            threads=attempt.threads,
            folder=str(folder),
            bundle=attempt.bundle,
            npz=attempt.npz,
            accelerator=attempt.accelerator,
            device_uuid=attempt.device_uuid,
            passes=attempt.passes if index >= 0 else (),
            instruments=attempt.instruments if index < 0 else (),
            capture=attempt.capture,
            # of the first repeat that ends well, as one that broke has none that counts
            output=attempt.output and not found.taken and (index >= 0 or not attempt.passes),
        )
    )
    if ended.cause == "stopped":
        raise Interrupted
    (folder / "output.log").write_bytes(ended.output)
    found.output = ended.output
    return ended, neighbours, folder


def _failure(ended: Ended, order: Order) -> Failure:
    """Return why a child brought nothing: its own words, our clock, or the signal it died of."""
    tail = ended.output[-_LOG_TAIL:].decode(errors="replace")
    if ended.record is not None and isinstance(ended.record.failure, Failure):
        said = ended.record.failure
        return msgspec.structs.replace(said, log_tail=tail, retryable=said.kind in INFRA)
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


def _kept(attempt: Attempt, index: int) -> figures.Taken | None:
    """Return a repeat that an earlier attempt on this system finished, if there is one."""
    return _read(attempt.folder / folders.repeat(index), attempt.order)


def _read(folder: Path, order: Order) -> figures.Taken | None:
    kept = folders.read(folder)
    if kept is None:
        return None
    record, arrays, who = kept
    return figures.taken(record, arrays, batch=order.job.workload.batch, neighbours=who)
