"""One repeat from loading to memory: every phase in its order, and what they found as a record.

This is the inside of the child, imported after its cores are settled. All that we need of our own
packages is imported here, before the user's code is loaded, which may bring packages of the same
names.
"""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import UNSET

from farm.schema import Capture, Failure, Phase
from workers import backends, capturing, instruments, phases, warming
from workers.bench import Bench, Samples
from workers.energy import CounterGauge, Meter, update_period
from workers.host import Host, Probe
from workers.host.rapl import Rapl
from workers.host.thermal import temperature_c
from workers.record import Assignment, Record
from workers.running import Run, keep_output, note_facts, print_trace, printable, recorded

_OUTPUT_BYTES: Final = 1 << 20  # that a job keeps without being asked, for `farm verify`


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
        "reasons": {},
    }
    done: list[Phase] = []
    samples = Samples()
    try:
        run = _load(assignment, found, done, samples, progress)
        if assignment.instruments:
            instruments.run(run)
        else:
            _clean(run)
            note_facts(run)
    # The user's code may raise anything, also what means to end a process, and whatever it is must
    # end as a stored failure.
    except BaseException as error:
        found["failure"] = _failure(error, done)
    return Record(phases=done, **found), samples


def _load(
    assignment: Assignment,
    found: dict[str, Any],
    done: list[Phase],
    samples: Samples,
    progress: Callable[[str, int], None],
) -> Run:
    clock = time.perf_counter_ns
    evidence = Probe(Host(), cpus=assignment.cores)
    progress("load", 0)
    with recorded(done, "load", clock, instrumented=bool(assignment.instruments)):
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
        prepare=loaded.step.prepare,
        compiles=loaded.step.compiles,
        accelerator=loaded.step.accelerator,
        meter=_meter(assignment, found, on_gpu=loaded.step.accelerator is not None),
    )
    return Run(assignment, loaded.step, bench, found, done, samples)


def _meter(assignment: Assignment, found: dict[str, Any], *, on_gpu: bool) -> Meter | None:
    """Return what reads the energy of the CPU packages, if it was asked for.

    Nobody knows which part of a package's energy is ours, so the reading says whom it may count.
    """
    if not assignment.effort.energy or assignment.instruments:
        return None
    if "throughput" not in assignment.passes:
        found["reasons"]["energy"] = "not_requested: it is read in a throughput pass, and none ran"
        return None
    if on_gpu:  # what the packages take is not what the device takes
        found["reasons"]["energy"] = "not_supported: no counter of this device is read"
        return None
    host, clock = Host(), time.monotonic_ns
    counter = Rapl(host)
    period = update_period(counter.read, clock=clock, sleep=time.sleep)
    return Meter(
        gauge=CounterGauge(counter, period, clock=clock, sleep=time.sleep),
        period=period,
        clock=clock,
        sleep=time.sleep,
        rng=random.Random(f"{assignment.job.job_id} {assignment.index}"),
        others=lambda: None,
        temperature_c=lambda: temperature_c(host),
    )


def _clean(run: Run) -> None:
    """Run the passes that were asked for; a step is called no more often than they say."""
    asked, bench, found = run.asked.passes, run.bench, run.found
    warming.start(run)
    capture = run.asked.capture
    if isinstance(capture, Capture) and run.asked.job.workload.mode == "train":
        capturing.window(run, capture)  # its data are as long as that, and no pass may follow
        if bench.accelerator is not None:
            found["reasons"]["gpu_time"] = "not_requested"
        return
    if "memory" not in asked:
        phases.reset_peaks(bench)  # what warming up took is no part of the peak
    if "latency" in asked:
        with run.phase("latency"):
            _note_latency(phases.latency(bench, run.samples), found)
        _time_device(run)
    if "throughput" in asked:
        _flow(run)
    else:
        found["reasons"]["throughput"] = "not_requested"
    if "memory" in asked:
        with run.own("memory"):
            found["memory"] = phases.memory(bench)
        with run.phase("check"):  # a step may go wrong after its first call
            output = bench.step()
            found["flags"] += run.step.check_output(output)
        if not run.asked.output:
            keep_output(run, output, most=_OUTPUT_BYTES)
    else:
        found["memory"] = phases.peaks(bench)
    if run.asked.output:
        with run.own("output"):
            keep_output(run, bench.step(), most=None)


def _flow(run: Run) -> None:
    """Take the throughput, and the energy in the same window if that was asked for."""
    found, bench = run.found, run.bench
    found["throughput_method"] = phases.throughput_method(bench)
    with run.own("throughput"):
        flow = phases.throughput(bench, run.samples)
        found.update(
            throughput_edges=flow.edges,
            throughput_iterations=flow.intervals,
            throughput_window_s=flow.seconds,
            energy=flow.energy,
        )
    if bench.meter is not None and "throughput" in found["reasons"]:
        found["reasons"]["energy"] = found["reasons"]["throughput"]


def _time_device(run: Run) -> None:
    """Time the device itself, where it has events to tell by."""
    found, bench = run.found, run.bench
    if bench.accelerator is None:
        found["reasons"]["gpu_time"] = "not_supported: this device has no events"
        return
    if bench.asked.compat is not UNSET:  # its count of iterations is a count of calls
        found["reasons"]["gpu_time"] = "not_requested"
        return
    with run.own("gpu_time"):
        found["device"] = phases.device_time(bench, bench.accelerator, run.samples)
        found["flags"] += ["enqueue_bound"] if found["device"].enqueue_bound else []


def _note_latency(latency: phases.LatencyPass, found: dict[str, Any]) -> None:
    found.update(
        latency_edges=latency.edges,
        timer_floor_ns=latency.timer_floor_ns,
        of_blocks=latency.of_blocks,
        half_width_ppm=latency.half_width_ppm,
    )
    found["flags"] += latency.flags


def _failure(error: BaseException, done: list[Phase]) -> Failure:
    print_trace(error)
    why = backends.explain(error)
    phase = next((each.name for each in reversed(done) if each.status == "failed"), "load")
    message, hint = printable(why.message), printable(why.hint)
    return Failure(kind=why.kind, phase=phase, message=message, hint=hint)
