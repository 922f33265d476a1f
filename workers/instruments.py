"""The instrumented child: layers and cost of a warm step, after every clean repeat has ended.

An instrument slows the step down and may leave something behind, so nothing here ever becomes a
latency (`measurement.md` §2). Counting moves the model to where it cannot run, so it comes last,
and what the step ran as is read before.
"""

from pathlib import Path
from typing import Final

from msgspec import UNSET

from farm.schema import Capture
from farm.stats.warmup import layer_warmup
from workers import warming
from workers.backends import LayerAsk, StageAsk, TraceAsk
from workers.record import TRACE
from workers.running import Run, keep_output, note_facts

ITERATIONS: Final = 10  # in a trace, and timed apart after it
STORED_BYTES: Final = 128_000_000  # of a trace before it is packed: a sweep makes many of them
BY_HAND_BYTES: Final = 1_000_000_000


def run(run: Run) -> None:
    """Warm up, then take each instrument that was asked for; a failed one costs its own fields."""
    warming.start(run)
    if run.asked.output:
        with run.own("output"):
            keep_output(run, run.bench.step(), most=None)
    if "layers" in run.asked.instruments:
        with run.own("layers"):
            _layers(run)
    if "trace" in run.asked.instruments:
        if not isinstance(capture := run.asked.capture, Capture) or capture.trace:
            with run.own("trace"):
                _trace(run)
        with run.own("stages"):  # without a profiler, whatever became of the trace
            run.found["stages_ns"] = run.step.stages(
                StageAsk(iterations=ITERATIONS, clock=run.bench.clock, progress=run.bench.progress)
            )
    if "weights" in run.asked.instruments:
        with run.own("weights"):
            run.found["weights"] = run.step.weights()
    note_facts(run)
    if "flops" in run.asked.instruments:
        with run.own("flops"):
            run.found["cost"] = run.step.cost()


def _trace(run: Run) -> None:
    """Trace the step: as many iterations as a training has in its window, else a few."""
    asked = run.asked.capture
    by_hand = isinstance(asked, Capture)
    steps, warmup = ITERATIONS, 1
    if isinstance(asked, Capture) and asked.data is not UNSET:
        steps, warmup = asked.steps or steps, asked.warmup
    run.found["trace"] = run.step.trace(
        TraceAsk(
            iterations=steps,
            warmup=warmup,
            file=Path(run.asked.folder) / TRACE,
            limit_bytes=BY_HAND_BYTES if by_hand else STORED_BYTES,
            clock=run.bench.clock,
            progress=run.bench.progress,
        )
    )


def _layers(run: Run) -> None:
    effort = run.bench.effort
    iterations = effort.layer_iterations or run.step.layer_iterations
    found = run.step.layers(
        LayerAsk(
            iterations=iterations,
            warmup=layer_warmup(iterations),
            budget_ns=effort.layer_budget_ms * 1_000_000 or None,
            clock=run.bench.clock,
            progress=run.bench.progress,
        )
    )
    run.found["layers"] = found.reading
    run.samples.layers = found
