"""The child's side of measuring: each phase is one function, a running step in, readings out.

The order is load, first, warm-up, latency, throughput, memory (`measurement.md` §2). Nothing here
computes a figure that gets published: samples and counters leave the process as they are.
"""

import gc
import math
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from farm.schema import Effort, Phase
from farm.stats.percentiles import needed_n, published_n
from farm.stats.spread import outlier_bound
from farm.stats.warmup import WINDOW, block_is_full, half_width, steady
from workers.bench import LABEL_PREEMPTED, LABEL_UNEXPLAINED, Bench, Clock, Samples
from workers.record import Edge, MemoryReading, WarmUp

_FIRST_LOOK, _MOST = 32, 131_072
_WARM_AT_LEAST_NS = 300_000_000
_EVIDENCE_NS = 300_000  # a schedstat read costs 2.9 µs: one per 300 µs of measured time
_FLOOR_FACTOR = 100  # a step below 100 timer floors is timed in blocks


@dataclass
class LatencyPass:
    edges: tuple[Edge, Edge]
    timer_floor_ns: int
    of_blocks: int
    half_width_ppm: int | None
    flags: list[str]


@contextmanager
def phase(phases: list[Phase], name: str, clock: Clock) -> Iterator[None]:
    """Record how a phase ended and how long it took; what it raises goes on upwards."""
    began = clock()
    status, reason = "done", ""
    try:
        yield
    except BaseException as error:
        status, reason = "failed", f"{type(error).__name__}: {error}"[:500]
        raise
    finally:
        seconds = (clock() - began) / 1e9
        phases.append(
            Phase(name=name, status=status, duration_s=round(seconds, 6), reason=reason)  # type: ignore[arg-type]
        )


def first(bench: Bench) -> tuple[float, object]:
    """Run iteration 0, synchronised; return its time in ms and what it returned."""
    began = bench.clock()
    output = bench.step()
    if bench.sync is not None:
        bench.sync()
    took = bench.clock() - began
    bench.typical_ns = float(took)
    return took / 1e6, output


def warm_up(bench: Bench, samples: Samples, *, done: int) -> WarmUp:
    """Run until the step is warm; nothing measured here reaches a statistic.

    done: iterations that already ran (`first`), which a fixed number includes. With `auto` the
    steady-state rule of `measurement.md` §5 decides, within its cap; 60 s and 30 % of the job's
    time limit bound it for slow steps, so that no step is unmeasurable.
    """
    began = bench.clock()
    if bench.asked.warmup == "auto":
        stop = _until_steady(bench, samples, began)
    else:
        for _ in range(bench.asked.warmup - done):
            samples.warmup_ns.append(_timed(bench))
        stop = "fixed"
    if samples.warmup_ns:
        bench.typical_ns = median(samples.warmup_ns[-32:])
    elif not done:
        bench.typical_ns = 0.0
    return WarmUp(
        iterations=done + len(samples.warmup_ns),
        seconds=(bench.clock() - began) / 1e9,
        stop=stop,  # type: ignore[arg-type]
    )


def latency(bench: Bench, samples: Samples) -> LatencyPass:
    """Record synchronised iterations until their median is known well enough, or time is up.

    Every iteration is recorded and none is dropped; those during which the thread waited for a
    core are labelled. The scheduler is asked between blocks, never inside the timed region.
    """
    floor = timer_floor_ns(bench.clock)
    steps = 1
    if 0 < bench.typical_ns < _FLOOR_FACTOR * floor:
        steps = math.ceil(_FLOOR_FACTOR * floor / bench.typical_ns)
    span = max(bench.typical_ns, 1.0) * steps
    block = max(1, math.ceil(_EVIDENCE_NS / span)) if bench.typical_ns else 1
    width: int | None = None
    with _collector(bench.asked.gc):
        before = bench.probe.edge()
        width = _latency_loop(bench, samples, steps=steps, block=block)
        after = bench.probe.edge()
    flags = ["timer_limited"] if steps > 1 else []
    wanted = bench.asked.iterations == "auto"
    if wanted and (width is None or width > bench.effort.half_width_ppm):
        flags.append("precision_not_met")
    _label_unexplained(samples)
    return LatencyPass((before, after), floor, steps, width, flags)


@dataclass
class ThroughputPass:
    """Intervals between completions, the seconds they took, and the evidence around them."""

    edges: tuple[Edge, Edge]
    intervals: int
    seconds: float


def throughput(bench: Bench, samples: Samples) -> ThroughputPass:
    """Run back to back without a stop per iteration.

    At least 1 s and 30 iterations; slow steps until the budget of a pass, then at least 5.
    """
    step, clock, stamps = bench.step, bench.clock, samples.completion_ns
    budget_ns = max(1_000_000_000, bench.effort.budget_ms * 1_000_000)
    with _collector(bench.asked.gc):
        before = bench.probe.edge()
        began = clock()
        look = began + 1_000_000_000  # nothing but the step and its stamp before there is need
        while True:
            step()
            now = clock()
            stamps.append(now)
            if now >= look:
                n, elapsed = len(stamps), now - began
                if n >= 30 or (n >= 5 and elapsed >= budget_ns):
                    break
                bench.progress("throughput", n)
        if bench.sync is not None:
            bench.sync()
        after = bench.probe.edge()
    return ThroughputPass((before, after), len(stamps) - 1, (stamps[-1] - stamps[0]) / 1e9)


def memory(bench: Bench) -> MemoryReading:
    """Return the peaks over five iterations, counted from here and not from the start."""
    bench.probe.reset_peak()
    for _ in range(5):
        bench.step()
    if bench.sync is not None:
        bench.sync()
    return bench.probe.memory()


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


def _timed(bench: Bench) -> int:
    clock = bench.clock
    began = clock()
    output = bench.step()
    if bench.sync is not None:
        bench.sync()
    ended = clock()
    del output
    return ended - began


def _until_steady(bench: Bench, samples: Samples, began: int) -> str:
    cap_ns = min(max(10e9, 15 * bench.typical_ns), 60e9, 0.3e9 * bench.effort.timeout_s)
    medians: list[float] = []
    start = spent = 0
    while True:
        took = _timed(bench)
        samples.warmup_ns.append(took)
        spent += took
        elapsed = bench.clock() - began
        if block_is_full(len(samples.warmup_ns) - start, spent):
            medians.append(median(samples.warmup_ns[start:]))
            start, spent = len(samples.warmup_ns), 0
            if elapsed >= _WARM_AT_LEAST_NS and steady(medians[-WINDOW:]):
                return "converged"
            bench.progress("warmup", len(samples.warmup_ns))
        if elapsed > cap_ns:
            return "cap"


def _latency_loop(bench: Bench, samples: Samples, *, steps: int, block: int) -> int | None:
    fixed = None if bench.asked.iterations == "auto" else bench.asked.iterations
    most = fixed or _MOST
    into = array("q", bytes(8 * most))
    labels = bytearray(most)
    step = bench.step if steps == 1 else _several(bench.step, steps)
    look = fixed or _FIRST_LOOK
    budget_ns = bench.effort.budget_ms * 1_000_000
    began = bench.clock()
    waited = bench.probe.waited_ns()
    n, width = 0, None
    while n < most:
        end = min(n + block, look, most)
        mark = bench.clock()
        loop(step, bench.sync, bench.clock, into, n, end)
        now = bench.clock()
        waiting = bench.probe.waited_ns()
        if waited is not None and waiting is not None and waiting - waited > (now - mark) // 100:
            labels[n:end] = bytes([LABEL_PREEMPTED]) * (end - n)
        waited, n = waiting, end
        spent = now - began
        if fixed is None and n >= look:
            width = half_width(into[:n])
            if _is_enough(bench.effort, into[:n], width=width, spent_ns=spent):
                break
            look *= 2
        if fixed is None and spent >= budget_ns and n >= 6:
            break
        bench.progress("latency", n)
    samples.latency_ns = array("q", (round(each / steps) for each in into[:n]))
    samples.labels = labels[:n]
    return half_width(into[:n])


def _is_enough(effort: Effort, samples: "array[int]", *, width: int | None, spent_ns: int) -> bool:
    if width is None or width > effort.half_width_ppm or spent_ns < effort.min_time_ms * 1_000_000:
        return False
    return not effort.tails or published_n(samples, 99) >= needed_n(99)


def _several(step: Callable[[], object], count: int) -> Callable[[], object]:
    def run() -> None:
        for _ in range(count):
            step()

    return run


def _label_unexplained(samples: Samples) -> None:
    values = samples.latency_ns
    if not values:
        return
    bound = outlier_bound(values)
    for index, value in enumerate(values):
        if value > bound and not samples.labels[index]:
            samples.labels[index] = LABEL_UNEXPLAINED


@contextmanager
def _collector(policy: str) -> Iterator[None]:
    """Keep the garbage collector out of a timed loop where the protocol says so."""
    was = gc.isenabled()
    if policy == "off":
        gc.collect()
        gc.freeze()
        gc.disable()
    try:
        yield
    finally:
        if policy == "off":
            gc.unfreeze()
            if was:
                gc.enable()
