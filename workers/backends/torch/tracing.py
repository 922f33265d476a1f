"""One session of torch's profiler over the stages of a step, and their times without it.

The trace holds host and device activity, no stacks, no shapes and no memory: those slow a step down
several times over. One iteration is traced before the window, since a profiler loses kernels while
it starts (pytorch/pytorch#192021), and its size tells how many iterations a trace may hold.
"""

import warnings
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.backends import NotOffered, TraceAsk
from workers.backends.torch import stages as chain
from workers.backends.torch.cuda import TorchCuda
from workers.record import TraceReading

if TYPE_CHECKING:
    from torch.profiler import profile

_PROBE = ".probe.json"
_MB = 1e6


def take(
    stages: Sequence[chain.Stage], asked: TraceAsk, *, accelerator: TorchCuda | None
) -> TraceReading:
    """Leave a Chrome trace of some iterations in the asked file, and return how it went.

    The iterations are `ProfilerStep#N`, their stages `step/NAME`; inside a step nothing waits for
    the device. Raises NotOffered where the trace of a single iteration is beyond the limit.
    """
    sync = None if accelerator is None else accelerator.synchronize
    count, taken_ns = 0, array("q")
    if asked.iterations:
        count, taken_ns = _session_of(stages, asked, sync=sync, on_gpu=accelerator is not None)
    apart = chain.timed(stages, asked.timed, clock=asked.clock, sync=sync)
    return TraceReading(
        wanted=asked.iterations,
        iterations=count,
        traced_ns=list(taken_ns),
        stages_ns={name: list(times) for name, times in apart.items()},
        trace_bytes=asked.file.stat().st_size if count else 0,
    )


def _session_of(
    stages: Sequence[chain.Stage],
    asked: TraceAsk,
    *,
    sync: Callable[[], None] | None,
    on_gpu: bool,
) -> "tuple[int, array[int]]":
    """Leave the trace; return how many iterations it holds, and what they took in ns."""
    import torch

    run = chain.marked(stages, torch.profiler.record_function)
    size = _probed(run, asked, sync=sync, on_gpu=on_gpu)
    if size > asked.limit_bytes:
        told = f"one iteration makes {size / _MB:.0f} MB, and {asked.limit_bytes / _MB:.0f} fit"
        raise NotOffered("not_supported", f"its trace is too large: {told}")
    count = max(1, min(asked.iterations, asked.limit_bytes // max(1, size)))
    return count, _traced(run, count, asked, sync=sync, on_gpu=on_gpu)


def _probed(
    run: Callable[[], object],
    asked: TraceAsk,
    *,
    sync: Callable[[], None] | None,
    on_gpu: bool,
) -> int:
    """Return how many bytes one traced iteration makes."""
    file = asked.file.with_name(_PROBE)
    session = _session(on_gpu=on_gpu)
    session.start()
    run()
    if sync is not None:
        sync()
    session.stop()
    _export(session, file)
    size = file.stat().st_size
    file.unlink()
    return size


def _traced(
    run: Callable[[], object],
    count: int,
    asked: TraceAsk,
    *,
    sync: Callable[[], None] | None,
    on_gpu: bool,
) -> "array[int]":
    """Trace so many iterations; return their times in ns.

    Of a device that works on its own there is one, the mean: the host is ahead of it.
    """
    import torch

    plan = torch.profiler.schedule(wait=0, warmup=1, active=count)
    session = _session(
        on_gpu=on_gpu, schedule=plan, on_trace_ready=lambda made: _export(made, asked.file)
    )
    clock, taken_ns = asked.clock, array("q")
    with _quiet(), session:
        run()  # while the profiler starts
        if sync is not None:
            sync()
        session.step()
        began = clock()
        for done in range(count):
            before = clock()
            run()
            if sync is None:
                taken_ns.append(clock() - before)
            elif done == count - 1:
                sync()  # the last kernels belong to the trace too
                taken_ns.append((clock() - began) // count)
            asked.progress("trace", done + 1)
            session.step()
    return taken_ns


def _session(*, on_gpu: bool, **more: Any) -> "profile":
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with _quiet():
        return profile(
            activities=activities,
            record_shapes=False,
            profile_memory=False,
            with_stack=False,
            **more,
        )


def _export(session: "profile", file: Path) -> None:
    with _quiet():
        session.export_chrome_trace(str(file))


def _quiet() -> "warnings.catch_warnings[None]":
    """Keep what the profiler says about itself out of a job's log, and from ending a strict one."""
    return warnings.catch_warnings(action="ignore")
