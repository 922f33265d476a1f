"""One session of torch's profiler over the stages of a step.

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
    stages: Sequence[chain.Stage],
    asked: TraceAsk,
    *,
    accelerator: TorchCuda | None,
    restart: Callable[[], None] = lambda: None,
) -> TraceReading:
    """Leave a Chrome trace of some iterations in the asked file, and return how it went.

    The iterations are `ProfilerStep#N`, their stages `step/NAME`; inside a step nothing waits for
    the device. restart: begins a pass over the data anew, so that none ends within the window.
    Raises NotOffered where the trace of a single iteration is beyond the limit; no file is left
    then.
    """
    sync = None if accelerator is None else accelerator.synchronize
    made = _Making(stages, asked, sync=sync, on_gpu=accelerator is not None, restart=restart)
    count, taken_ns = _within_limit(made, asked)
    return TraceReading(
        wanted=asked.iterations,
        iterations=count,
        traced_ns=list(taken_ns),
        trace_bytes=asked.file.stat().st_size,
    )


def _within_limit(made: "_Making", asked: TraceAsk) -> "tuple[int, array[int]]":
    """Leave the trace; return how many iterations it holds, and what they took in ns.

    One iteration tells how many fit. It may have been a small one, so the whole is looked at too,
    and taken again with fewer while it is too large.
    """
    size, count = made.probed(), 1
    if size <= asked.limit_bytes:
        count = max(1, min(asked.iterations, asked.limit_bytes // max(1, size)))
        while True:
            taken_ns = made.traced(count)
            size = asked.file.stat().st_size
            if size <= asked.limit_bytes:
                return count, taken_ns
            asked.file.unlink()
            if count == 1:
                break
            count = max(1, count * asked.limit_bytes // size)
    told = f"one iteration makes {size / _MB:.0f} MB, and {asked.limit_bytes / _MB:.0f} fit"
    raise NotOffered("not_supported", f"its trace is too large: {told}")


class _Making:
    """Sessions of the profiler over the stages of one step."""

    def __init__(
        self,
        stages: Sequence[chain.Stage],
        asked: TraceAsk,
        *,
        sync: Callable[[], None] | None,
        on_gpu: bool,
        restart: Callable[[], None],
    ) -> None:
        import torch

        self._run = chain.marked(stages, torch.profiler.record_function)
        self._asked, self._on_gpu, self._restart = asked, on_gpu, restart
        self._sync = sync

    def probed(self) -> int:
        """Return how many bytes one traced iteration makes; its file is gone again."""
        file = self._asked.file.with_name(_PROBE)
        session = _session(on_gpu=self._on_gpu)
        with (
            _quiet(),
            session,
        ):  # which ends also where the step breaks: what follows is not to be traced
            self._run()
            if self._sync is not None:
                self._sync()
        self._asked.progress("trace", 1)
        try:
            _export(session, file)
            return file.stat().st_size
        finally:
            file.unlink(missing_ok=True)

    def traced(self, count: int) -> "array[int]":
        """Trace so many iterations after those before a window; return their times in ns.

        Of a device that works on its own there is one, the mean: the host is ahead of it.
        """
        import torch

        asked, clock, before = self._asked, self._asked.clock, max(1, self._asked.warmup)
        plan = torch.profiler.schedule(wait=before - 1, warmup=1, active=count, repeat=1)
        session = _session(
            on_gpu=self._on_gpu,
            schedule=plan,
            on_trace_ready=lambda made: _export(made, asked.file),
        )
        taken_ns = array("q")
        self._restart()
        with _quiet(), session:
            for done in range(before):  # in the last of them the profiler starts
                self._run()
                if self._sync is not None:
                    self._sync()
                asked.progress("trace", done + 1)
                session.step()
            began = clock()
            for done in range(count):
                at = clock()
                self._run()
                if self._sync is None:
                    taken_ns.append(clock() - at)
                elif done == count - 1:
                    self._sync()  # the last kernels belong to the trace too
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
