"""The passes of a clean child: each is one function, a warm step in, readings out.

The order is latency, throughput, memory (`measurement.md` §2), after `warming`. Nothing here
computes a figure that gets published: samples and counters leave the process as they are.
"""

import math
from array import array
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Final

from msgspec import UNSET, structs

from farm.schema import Effort
from farm.stats.stopping import MOST, enough, next_look, out_of_time
from farm.stats.warmup import half_width
from workers.backends import Accelerator
from workers.bench import LABEL_ALLOC, LABEL_COMPILE, Bench, Clock, Samples
from workers.energy import measure as energy_of
from workers.labels import Watch, label_unexplained
from workers.record import DeviceReading, Edge, EnergyReading, MemoryReading, ThroughputMethod
from workers.timing import (
    gpu_time_pass,
    is_long_enough,
    pass_iterations,
    pipelined,
    timed_after,
    without_collector,
)

_FLOW_NS: Final = 1_000_000_000
_EVIDENCE_NS = 300_000  # a schedstat read costs 2.9 µs: one per 300 µs of measured time
_FLOOR_FACTOR = 100  # a step below 100 timer floors is timed in blocks


@dataclass
class LatencyPass:
    edges: tuple[Edge, Edge]
    timer_floor_ns: int
    of_blocks: int
    half_width_ppm: int | None
    flags: list[str]


def latency(bench: Bench, samples: Samples) -> LatencyPass:
    """Record synchronised iterations until their median is known well enough, or time is up.

    Every iteration is recorded and none is dropped; those with a known cause of being slow are
    labelled. Counters are read between blocks, never inside the timed region.
    """
    floor = timer_floor_ns(bench.clock)
    steps = 1
    # Another tool's count of iterations is a count of calls: no block of several stands for one.
    if bench.asked.compat is UNSET and 0 < bench.typical_ns < _FLOOR_FACTOR * floor:
        steps = math.ceil(_FLOOR_FACTOR * floor / bench.typical_ns)
    span = max(bench.typical_ns, 1.0) * steps
    block = max(1, math.ceil(_EVIDENCE_NS / span)) if bench.typical_ns else 1
    width: int | None = None
    watch = Watch(bench)
    with _collector(bench.asked.gc):
        before = bench.probe.edge()
        width = _latency_loop(bench, samples, steps=steps, block=block, watch=watch)
        after = bench.probe.edge()
    flags = ["timer_limited"] if 0 < bench.typical_ns < _FLOOR_FACTOR * floor else []
    flags += ["recompiling"] if watch.seen & LABEL_COMPILE else []
    flags += ["allocator_growth"] if watch.seen & LABEL_ALLOC else []
    wanted = bench.asked.iterations == "auto"
    if wanted and (width is None or width > bench.effort.half_width_ppm):
        flags.append("precision_not_met")
    label_unexplained(samples)
    return LatencyPass((before, after), floor, steps, width, flags)


def device_time(bench: Bench, device: Accelerator, samples: Samples) -> DeviceReading:
    """Time the step on its device between events, and how long queueing it takes the host."""
    fitting = pass_iterations(bench.typical_ns, budget_ns=bench.effort.budget_ms * 1_000_000)
    with _collector(bench.asked.gc):
        found = gpu_time_pass(
            bench.step,
            device,
            clock=bench.clock,
            iterations=fitting,
            prepare=bench.prepare,
        )
    samples.gpu_time_ns = found.gpu_time_ns or array("q")
    samples.enqueue_ns = found.enqueue_ns or array("q")
    return DeviceReading(
        enqueue_bound=found.enqueue_bound, reliable=found.reliable, reason=found.reason
    )


def throughput_method(bench: Bench) -> ThroughputMethod:
    """Return how a throughput pass runs there: pipelined where the device works by itself."""
    return "back_to_back" if bench.accelerator is None else "pipelined"


@dataclass
class ThroughputPass:
    """Intervals between completions, the seconds they took, and the evidence around them."""

    edges: tuple[Edge, Edge]
    intervals: int
    seconds: float
    energy: EnergyReading | None = None


def throughput(bench: Bench, samples: Samples) -> ThroughputPass:
    """Run back to back without a stop per iteration; on a device with events, pipelined.

    At least 1 s and 30 iterations; slow steps until the budget of a pass, then at least 5. Where
    energy was asked for, the pass is as long as its window.
    """
    edges: list[Edge] = []

    def flow(at_least_ns: int) -> int:
        # Here and not around the meter, which idles for seconds before its window.
        edges.append(bench.probe.edge())
        done = _flow(bench, samples, at_least_ns)
        edges.append(bench.probe.edge())
        return done

    energy = None
    with _collector(bench.asked.gc):
        if bench.meter is None:
            flow(_FLOW_NS)
        else:
            energy = energy_of(bench.meter, flow, batch=bench.batch)
    stamps = samples.completion_ns
    seconds = (stamps[-1] - stamps[0]) / 1e9
    return ThroughputPass((edges[0], edges[1]), len(stamps) - 1, seconds, energy)


def _flow(bench: Bench, samples: Samples, at_least_ns: int) -> int:
    """Fill the completion stamps for so long, and for 1 s in any case; return the iterations."""
    least_ns = max(_FLOW_NS, at_least_ns)
    budget_ns = max(least_ns, bench.effort.budget_ms * 1_000_000)
    if bench.accelerator is not None:
        samples.completion_ns = pipelined(
            bench.step,
            bench.accelerator,
            clock=bench.clock,
            at_least_ns=least_ns,
            budget_ns=budget_ns,
            progress=lambda done: bench.progress("throughput", done),
        )
        return len(samples.completion_ns)
    step, clock, stamps = bench.step, bench.clock, array("q")
    samples.completion_ns = stamps
    began = clock()
    look = began + least_ns  # nothing but the step and its stamp before there is need
    while True:
        step()
        now = clock()
        stamps.append(now)
        if now >= look:
            n, elapsed = len(stamps), now - began
            if is_long_enough(n, elapsed, at_least_ns=least_ns, budget_ns=budget_ns):
                return n
            bench.progress("throughput", n)


def memory(bench: Bench) -> MemoryReading:
    """Return the peaks over five iterations, counted from here and not from the start."""
    reset_peaks(bench)
    for _ in range(5):
        bench.step()
    if bench.sync is not None:
        bench.sync()
    return peaks(bench)


def reset_peaks(bench: Bench) -> None:
    """Start the peaks of host and device memory anew."""
    bench.probe.reset_peak()
    if bench.accelerator is not None:
        bench.accelerator.reset_peaks()


def peaks(bench: Bench) -> MemoryReading:
    """Return the peaks of host and device memory since they were reset."""
    found = bench.probe.memory()
    if bench.accelerator is None:
        return found
    return structs.replace(found, cuda=bench.accelerator.peaks())


def loop(
    step: Callable[[], object],
    sync: Callable[[], None] | None,
    clock: Clock,
    into: "array[int]",
    begin: int,
    end: int,
) -> None:
    """Time steps one by one, each synchronised, and write them to `into[begin:end]` in ns."""
    # Two loops, because a call of an empty sync would stand inside the timed region. The output
    # is released after the clock stopped.
    if sync is None:
        for i in range(begin, end):
            t0 = clock()
            y = step()
            t1 = clock()
            into[i] = t1 - t0
            y = None
    else:
        for i in range(begin, end):
            t0 = clock()
            y = step()
            sync()
            t1 = clock()
            into[i] = t1 - t0
            y = None
    del y


def timer_floor_ns(clock: Clock) -> int:
    """Return what the loop records for a step that does nothing: the median of 10,000."""
    samples = array("q", bytes(8 * 10_000))
    loop(lambda: None, None, clock, samples, 0, 10_000)
    return int(median(samples))


def _latency_loop(
    bench: Bench, samples: Samples, *, steps: int, block: int, watch: Watch
) -> int | None:
    fixed = None if bench.asked.iterations == "auto" else bench.asked.iterations
    most = fixed or MOST
    into = array("q", bytes(8 * most))
    labels = bytearray(most)
    step = bench.step if steps == 1 else _several(bench.step, steps)
    look = fixed or next_look(0)
    budget_ns = bench.effort.budget_ms * 1_000_000
    began = bench.clock()
    watch.start()
    n = 0
    while n < most:
        end = min(n + block, look, most)
        mark = bench.clock()
        if bench.prepare is None:
            loop(step, bench.sync, bench.clock, into, n, end)
        else:
            timed_after(
                bench.prepare, step, bench.sync, clock=bench.clock, into=into, begin=n, end=end
            )
        now = bench.clock()
        if cause := watch.cause(now - mark):
            labels[n:end] = bytes([cause]) * (end - n)
        n = end
        spent = now - began
        if fixed is None and n >= look:
            if _is_enough(bench.effort, into[:n], spent_ns=spent):
                break
            look = next_look(n)
        if fixed is None and out_of_time(n, spent_ns=spent, budget_ns=budget_ns):
            break
        bench.progress("latency", n)
    samples.latency_ns = array("q", (round(each / steps) for each in into[:n]))
    samples.labels = labels[:n]
    return half_width(into[:n])


def _is_enough(effort: Effort, samples: "array[int]", *, spent_ns: int) -> bool:
    return enough(
        samples,
        half_width_ppm=effort.half_width_ppm,
        spent_ns=spent_ns,
        min_time_ns=effort.min_time_ms * 1_000_000,
        tail=max(effort.percentiles) if effort.tails else None,
    ).enough


def _several(step: Callable[[], object], count: int) -> Callable[[], object]:
    def run() -> None:
        for _ in range(count):
            step()

    return run


def _collector(policy: str) -> AbstractContextManager[None]:
    """Keep the garbage collector out of a timed loop where the protocol says so."""
    return without_collector() if policy == "off" else nullcontext()
