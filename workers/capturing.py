"""The clean pass of a captured training: a window of unsynchronised steps over the data."""

from array import array
from collections.abc import Callable
from itertools import pairwise

from farm.schema import Capture
from workers import phases
from workers.bench import Samples
from workers.running import Run
from workers.timing import completions, without_collector


def window(run: Run, asked: Capture) -> None:
    """Run the steps of the window, and note how long each took and how long it waited for data.

    A step lasts from one completion to the next, on the device's clock where it has one: nothing
    waits for it between steps, as in a training. Throughput is that of the same window.
    """
    bench, found = run.bench, run.found
    phases.reset_peaks(bench)  # what warming up took is no part of the peak
    last = _Last(bench.step)
    with run.phase("latency"), without_collector():
        before = bench.probe.edge()
        stamps = _stamps(run, last, asked.steps)
        after = bench.probe.edge()
    _note(run.samples, stamps)
    found.update(
        latency_edges=(before, after),
        throughput_edges=(before, after),
        throughput_method=phases.throughput_method(bench),
        throughput_iterations=asked.steps,
        throughput_window_s=(stamps[-1] - stamps[0]) / 1e9,
        timer_floor_ns=phases.timer_floor_ns(bench.clock),
        memory=phases.peaks(bench),
    )
    with run.phase("check"):  # a step may go wrong after its first call, as a gradient does
        found["flags"] += run.step.check_output(last.output)


class _Last:
    """A step of which the last output is kept: no further one may run to be looked at."""

    def __init__(self, step: Callable[[], object]) -> None:
        self._step = step
        self.output: object = None

    def __call__(self) -> object:
        self.output = self._step()
        return self.output


def _stamps(run: Run, step: Callable[[], object], steps: int) -> "array[int]":
    bench, clock = run.bench, run.bench.clock
    if bench.accelerator is not None:
        return completions(
            step,
            bench.accelerator,
            steps,
            clock=clock,
            progress=lambda queued: bench.progress("latency", queued),
        )
    stamps = array("q", [clock()])
    for done in range(steps):
        step()
        stamps.append(clock())
        bench.progress("latency", done + 1)
    return stamps


def _note(samples: Samples, stamps: "array[int]") -> None:
    taken = (end - begin for begin, end in pairwise(stamps))
    samples.latency_ns = array("q", taken)
    samples.labels = bytearray(len(samples.latency_ns))
    samples.completion_ns = stamps
