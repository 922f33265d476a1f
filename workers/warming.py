"""Before anything counts: the first call, compiling, and iterations until the step is warm."""

from statistics import median

from farm.stats.warmup import Block, block_is_full, converged, warmup_cap_ns
from workers.bench import Bench, Samples
from workers.record import Compiling, WarmUp
from workers.running import Run
from workers.timing import Compiles, until_compiled


def start(run: Run) -> None:
    """Bring a loaded step to where it may be measured, and note how that went."""
    found, bench = run.found, run.bench
    ran = 0
    if bench.asked.warmup != 0:
        with run.phase("first"):
            found["first_ms"], output = first(bench)
            found["flags"] += run.step.check_output(output)
            del output
        ran = 1
    if bench.asked.warmup == "auto" and bench.compiles is not None:
        ran += _compile(run, bench.compiles)
    with run.phase("warmup"):
        found["warmup"] = warm_up(bench, run.samples, done=ran)
    if found["warmup"].stop == "cap":
        found["flags"].append("warmup_not_converged")


def _compile(run: Run, compiles: Compiles) -> int:
    """Iterate until nothing compiles any more; return the iterations, 0 for an eager model."""
    if compiles.events() is None:
        return 0
    with run.phase("compile"):
        found = until_compiled(
            run.bench.step,
            compiles,
            run.bench.clock,
            sync=run.bench.sync,
            progress=lambda done: run.bench.progress("compile", done),
        )
    if not found.settled:
        run.found["flags"].append("warmup_not_converged")
    run.found["compiling"] = Compiling(
        iterations=found.iterations,
        seconds=found.seconds,
        recompiles=found.recompiles or 0,
    )
    return found.iterations


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
            bench.progress("warmup", len(samples.warmup_ns))
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
    """Run until the steady-state rule holds: the times are level and nothing else moves."""
    cap_ns = warmup_cap_ns(bench.typical_ns, timeout_s=bench.effort.timeout_s)
    blocks: list[Block] = []
    start = spent = 0
    before = _counters(bench)
    while True:
        took = _timed(bench)
        samples.warmup_ns.append(took)
        spent += took
        elapsed = bench.clock() - began
        if block_is_full(len(samples.warmup_ns) - start, spent):
            after = _counters(bench)
            compiles, held, retries = (b - a for a, b in zip(before, after, strict=True))
            middle = median(samples.warmup_ns[start:])
            blocks.append(Block(middle, compiles=compiles, reserved_bytes=held, retries=retries))
            start, spent, before = len(samples.warmup_ns), 0, after
            if converged(blocks, elapsed_ns=elapsed, gpu=bench.accelerator is not None):
                return "converged"
            bench.progress("warmup", len(samples.warmup_ns))
        if elapsed > cap_ns:
            return "cap"


def _counters(bench: Bench) -> tuple[int, int, int]:
    """Return compile events, reserved bytes and allocator retries so far, 0 for none."""
    events = bench.compiles.events() if bench.compiles is not None else None
    held, retries = bench.accelerator.allocator() if bench.accelerator is not None else (0, 0)
    return events or 0, held, retries
