"""One repeat from loading to memory: every phase in its order, and what they found as a record.

This is the inside of the child, imported after its cores are settled. All that we need of our own
packages is imported here, before the user's code is loaded, which may bring packages of the same
names.
"""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from farm.schema import Failure, Phase
from workers import backends, phases
from workers.backends import Step
from workers.bench import Bench, Samples
from workers.host import Host, Probe
from workers.record import Assignment, Record

_SUBNORMAL_LIMIT: Final = 0.001


def measure(
    assignment: Assignment, *, progress: Callable[[str, int], None]
) -> tuple[Record, Samples]:
    """Run every phase; return the record and the samples, with a failure if one stopped it.

    progress: hears the phase and its iterations.
    """
    found: dict[str, Any] = {
        "index": assignment.index,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "flags": [],
    }
    done: list[Phase] = []
    samples = Samples()
    try:
        step, bench = _load(assignment, found, done, progress)
        _run(step, bench, found, done, samples)
        _note_facts(step, assignment, found)
    # The user's code may raise anything, also what means to end a process, and whatever it is must
    # end as a stored failure.
    except BaseException as error:
        found["failure"] = _failure(error, done)
    return Record(phases=done, **found), samples


def _load(
    assignment: Assignment,
    found: dict[str, Any],
    done: list[Phase],
    progress: Callable[[str, int], None],
) -> tuple[Step, Bench]:
    clock = time.perf_counter_ns
    evidence = Probe(Host(), cpus=assignment.cores)
    progress("load", 0)
    with phases.phase(done, "load", clock):
        loaded = backends.load(assignment, clock=clock)
    found.update(import_s=loaded.import_s, load_s=loaded.load_s)
    evidence.loaded()
    bench = Bench(
        step=loaded.step,
        sync=loaded.step.sync,
        asked=assignment.job.protocol,
        effort=assignment.effort,
        batch=assignment.job.workload.batch,
        clock=clock,
        probe=evidence,
        progress=progress,
    )
    return loaded.step, bench


def _run(
    step: Step, bench: Bench, found: dict[str, Any], done: list[Phase], samples: Samples
) -> None:
    @contextlib.contextmanager
    def phase(name: str) -> Iterator[None]:
        bench.progress(name, 0)
        with phases.phase(done, name, bench.clock):
            step.enter(name)
            yield

    ran = 0
    if bench.asked.warmup != 0:
        with phase("first"):
            found["first_ms"], output = phases.first(bench)
            found["flags"] += step.check_output(output)
            del output
        ran = 1
    with phase("warmup"):
        found["warmup"] = phases.warm_up(bench, samples, done=ran)
    with phase("latency"):
        _note_latency(phases.latency(bench, samples), found)
    # A failure in one of these costs its own fields and nothing else, and is told. The step has
    # just run many times; what it raises now is the user's.
    with _told(found), phase("throughput"):
        flow = phases.throughput(bench, samples)
        found.update(
            throughput_edges=flow.edges,
            throughput_iterations=flow.intervals,
            throughput_window_s=flow.seconds,
        )
    with _told(found), phase("memory"):
        found["memory"] = phases.memory(bench)
    with phase("check"):  # a step may go wrong after its first call
        found["flags"] += step.check_output(bench.step())


@contextlib.contextmanager
def _told(found: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _print_trace(error)
        found["flags"].append("pass_failed")


def _note_latency(latency: phases.LatencyPass, found: dict[str, Any]) -> None:
    found.update(
        latency_edges=latency.edges,
        timer_floor_ns=latency.timer_floor_ns,
        of_blocks=latency.of_blocks,
        half_width_ppm=latency.half_width_ppm,
    )
    found["flags"] += latency.flags
    if found["warmup"].stop == "cap":
        found["flags"].append("warmup_not_converged")


def _note_facts(step: Step, assignment: Assignment, found: dict[str, Any]) -> None:
    """Note what the step ran as at the end, and where that is not what was leased to it."""
    facts = step.facts()
    affinity = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    found.update(
        precision_observed=dict(facts.precision_observed),
        effective_threads=dict(facts.effective_threads),
        resolved=dict(facts.resolved),
        subnormal_share=facts.subnormal_share,
        output_digest=facts.output_digest,
        affinity=affinity,
    )
    if (facts.subnormal_share or 0.0) > _SUBNORMAL_LIMIT:
        found["flags"].append("denormals")
    if affinity and assignment.cores and not set(affinity) <= set(assignment.cores):
        found["flags"].append("left_its_cores")
    if max(facts.effective_threads.values(), default=0) > assignment.threads:
        found["flags"].append("too_many_threads")
    if step.inputs_mutated():
        found["flags"].append("inputs_mutated")


def _failure(error: BaseException, done: list[Phase]) -> Failure:
    _print_trace(error)
    why = backends.explain(error)
    phase = next((each.name for each in reversed(done) if each.status == "failed"), "load")
    return Failure(kind=why.kind, phase=phase, message=why.message, hint=why.hint)


def _print_trace(error: BaseException) -> None:
    # Standard error is the job's log here: it is stored with the profile, not shown in a terminal.
    traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()
