"""One repeat in one fresh process: an assignment on stdin, a record and sample arrays out.

Started as `python -P -m workers.child` by `launch.py`, or by hand with an assignment on stdin. It
knows neither broker nor store. The order of the first steps matters: cores before any library that
starts threads, the memory limit before anything large, our own work before the user's code.
"""

import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback
from array import array
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

RESULT_FD, PROGRESS_FD, LIFELINE_FD = "FARM_RESULT_FD", "FARM_PROGRESS_FD", "FARM_LIFELINE_FD"
LEASE_FDS = "FARM_LEASE_FDS"
_PROGRESS_NS = 500_000_000


def main() -> int:
    """Measure what stdin assigns; 0 when a record was written, also one that tells a failure."""
    data = sys.stdin.buffer.read()
    _pin(json.loads(data)["cores"])
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    _hold_lifeline()
    _close_leases_on_exec()

    import msgspec

    from workers.record import Assignment

    assignment = msgspec.json.decode(data, type=Assignment)
    _limit_memory(assignment.effort.memory_limit_bytes)
    record, samples = measure(assignment, progress=_Progress(time.monotonic_ns))
    _write_samples(samples, Path(assignment.folder))
    _write_result(msgspec.json.encode(record), Path(assignment.folder))
    return 0


def measure(assignment: Any, *, progress: Callable[[str, int], None]) -> tuple[Any, Any]:
    """Run every phase; return the record and the samples, with a failure if one stopped it.

    All that we need of our own packages is imported here, before the user's code is loaded, which
    may bring packages of the same names.
    """
    from farm.schema import Failure
    from workers import backends, phases
    from workers.host import Host, Probe
    from workers.record import Record

    found: dict[str, Any] = {
        "index": assignment.index,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "phases": [],
        "flags": [],
    }
    samples = phases.Samples()
    evidence = Probe(Host(), cpus=assignment.cores)
    try:
        bench, step = _load(assignment, found, backends, phases, evidence, progress)
        _run(bench, step, found, samples, phases)
    # The user's code may raise anything, and whatever it is must end as a stored failure.
    except Exception as error:
        _print_trace(error)
        why = backends.explain(error)
        phase = next((p.name for p in reversed(found["phases"]) if p.status == "failed"), "load")
        found["failure"] = Failure(kind=why.kind, phase=phase, message=why.message, hint=why.hint)
    return Record(**found), samples


def _load(
    assignment: Any,
    found: dict[str, Any],
    backends: Any,
    phases: Any,
    evidence: Any,
    progress: Callable[[str, int], None],
) -> tuple[Any, Any]:
    clock = time.perf_counter_ns
    progress("load", 0)
    with phases.phase(found["phases"], "load", clock):
        loaded = backends.load(assignment, clock=clock)
    found.update(import_s=loaded.import_s, load_s=loaded.load_s)
    evidence.loaded()
    bench = phases.Bench(
        step=loaded.step,
        sync=loaded.step.sync,
        asked=assignment.job.protocol,
        effort=assignment.effort,
        batch=assignment.job.workload.batch,
        clock=clock,
        probe=evidence,
        progress=progress,
    )
    return bench, loaded.step


def _run(bench: Any, step: Any, found: dict[str, Any], samples: Any, phases: Any) -> None:
    @contextlib.contextmanager
    def phase(name: str) -> Iterator[None]:
        bench.progress(name, 0)
        with phases.phase(found["phases"], name, bench.clock):
            step.enter(name)
            yield

    ran = 0
    if bench.asked.warmup != 0:
        with phase("first"):
            found["first_ms"], output = phases.first(bench)
            found["flags"] += step.check_output(output)
            del output
        ran = 1
    _facts(step, found)
    with phase("warmup"):
        found["warmup"] = phases.warm_up(bench, samples, done=ran)
    if found["warmup"].stop == "cap":
        found["flags"].append("warmup_not_converged")
    with phase("latency"):
        result = phases.latency(bench, samples)
    found.update(
        latency_edges=result.edges,
        timer_floor_ns=result.timer_floor_ns,
        of_blocks=result.of_blocks,
        half_width_ppm=result.half_width_ppm,
    )
    found["flags"] += result.flags
    # A failure in one of these costs its own fields and nothing else. The step has just run many
    # times; what it raises now is the user's, and is recorded with the phase.
    with contextlib.suppress(Exception), phase("throughput"):
        count, seconds = phases.throughput(bench, samples)
        found.update(throughput_iterations=count, throughput_window_s=seconds)
    with contextlib.suppress(Exception), phase("memory"):
        found["memory"] = phases.memory(bench)
    if step.inputs_mutated():
        found["flags"].append("inputs_mutated")


def _facts(step: Any, found: dict[str, Any]) -> None:
    facts = step.facts()
    found.update(
        precision_observed=dict(facts.precision_observed),
        effective_threads=dict(facts.effective_threads),
        resolved=dict(facts.resolved),
        subnormal_share=facts.subnormal_share,
        output_digest=facts.output_digest,
        affinity=sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
    )
    if (facts.subnormal_share or 0.0) > 0.001:
        found["flags"].append("denormals")


def _print_trace(error: Exception) -> None:
    # Standard error is the job's log here: it is stored with the profile, not shown in a terminal.
    traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()


def _pin(cores: list[int]) -> None:
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def _limit_memory(limit: int) -> None:
    """Bound the data segment: torch imports under it, and an excess becomes a Python error."""
    if limit and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _hold_lifeline() -> None:
    """End this whole group when the slot worker is gone: nobody would read what we find."""
    if LIFELINE_FD not in os.environ:
        return
    lifeline = int(os.environ[LIFELINE_FD])
    os.set_inheritable(lifeline, False)

    def wait() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _close_leases_on_exec() -> None:
    """Keep the leases while this process and its forks live, but not in programs they exec."""
    for fd in filter(None, os.environ.get(LEASE_FDS, "").split(",")):
        os.set_inheritable(int(fd), False)


class _Progress:
    """At most two lines a second to the parent, and every change of phase."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock, self._last, self._phase = clock, 0, ""
        fd = os.environ.get(PROGRESS_FD)
        self._out: IO[str] | None = os.fdopen(int(fd), "w", buffering=1) if fd else None
        if fd:
            os.set_inheritable(int(fd), False)

    def __call__(self, phase: str, iterations: int) -> None:
        now = self._clock()
        if self._out is None or (phase == self._phase and now - self._last < _PROGRESS_NS):
            return
        self._last, self._phase = now, phase
        with contextlib.suppress(BrokenPipeError):
            self._out.write(json.dumps({"phase": phase, "iterations": iterations}) + "\n")


def _write_samples(samples: Any, folder: Path) -> None:
    """Keep the arrays of this repeat, whole or not at all."""
    import numpy as np

    arrays = {
        name: np.array(getattr(samples, name), dtype=np.int64)
        for name in ("warmup_ns", "latency_ns", "completion_ns")
        if isinstance(getattr(samples, name), array)
    }
    arrays["label_bits"] = np.frombuffer(bytes(samples.labels), dtype=np.uint8)
    partial = folder / ".samples.npz.tmp"
    with partial.open("wb") as out:
        np.savez_compressed(out, allow_pickle=False, **arrays)
    partial.rename(folder / "samples.npz")


def _write_result(data: bytes, folder: Path) -> None:
    fd = os.environ.get(RESULT_FD)
    if fd is None:
        (folder / "record.json").write_bytes(data)
        return
    with os.fdopen(int(fd), "wb") as out:
        out.write(data)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything is written. Taking a framework apart costs 0.2 s a repeat, and a thread that the
    # user's code left behind would keep us waiting for ever.
    os._exit(code)
