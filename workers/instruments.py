"""The instrumented child: layers and cost of a warm step, after every clean repeat has ended.

An instrument slows the step down and may leave something behind, so nothing here ever becomes a
latency (`measurement.md` §2). Counting moves the model to where it cannot run, so it comes last,
and what the step ran as is read before.
"""

from farm.stats.warmup import layer_warmup
from workers import warming
from workers.backends import LayerAsk
from workers.running import Run, keep_output, note_facts


def run(run: Run) -> None:
    """Warm up, then take each instrument that was asked for; a failed one costs its own fields."""
    warming.start(run)
    if run.asked.output:
        with run.own("output"):
            keep_output(run, run.bench.step(), most=None)
    if "layers" in run.asked.instruments:
        with run.own("layers"):
            _layers(run)
    if "weights" in run.asked.instruments:
        with run.own("weights"):
            run.found["weights"] = run.step.weights()
    note_facts(run)
    if "flops" in run.asked.instruments:
        with run.own("flops"):
            run.found["cost"] = run.step.cost()


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
