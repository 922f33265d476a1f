"""One repeat in one fresh process: an assignment on stdin, a record and sample arrays out.

Started as `python -P -m workers.child` by `launch.py`, or by hand with an assignment on stdin. It
knows neither broker nor store. The order of the first steps matters: cores before any library that
starts threads, the memory limit before anything large, our own work before the user's code.
"""

import contextlib
import faulthandler
import io
import json
import os
import signal
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farm.npz import Arrays
    from workers.bench import Samples

RESULT_FD, PROGRESS_FD, LIFELINE_FD = "FARM_RESULT_FD", "FARM_PROGRESS_FD", "FARM_LIFELINE_FD"
LEASE_FDS = "FARM_LEASE_FDS"
_PROGRESS_NS = 500_000_000


def main() -> int:
    """Measure what stdin assigns; 0 when a record was written, also one that tells a failure."""
    data = sys.stdin.buffer.read()
    _pin(json.loads(data)["cores"])
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    _hold_lifeline()
    _close_leases_on_exec()

    import msgspec

    from farm import npz
    from workers import repeat
    from workers.record import Assignment

    assignment = msgspec.json.decode(data, type=Assignment)
    _limit_memory(assignment.effort.memory_limit_bytes)
    me = os.getpid()
    record, samples = repeat.measure(assignment, progress=_Progress(time.monotonic_ns))
    if os.getpid() != me:
        os._exit(0)  # a copy that the model forked and that came back here has nothing to say
    npz.save(Path(assignment.folder) / "samples.npz", _arrays(samples), compressed=True)
    _write_result(msgspec.json.encode(record), Path(assignment.folder))
    return 0


def _pin(cores: list[int]) -> None:
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def _limit_memory(limit: int) -> None:
    """Bound the data segment: torch imports under it, and an excess becomes a Python error."""
    if limit and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _hold_lifeline() -> None:
    """End this whole group when the slot worker is gone: nobody would read what we find."""
    if LIFELINE_FD not in os.environ:
        return
    lifeline = int(os.environ[LIFELINE_FD])
    os.set_inheritable(lifeline, False)

    def wait() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _close_leases_on_exec() -> None:
    """Keep the leases while this process and its forks live, but not in programs they exec."""
    for fd in filter(None, os.environ.get(LEASE_FDS, "").split(",")):
        os.set_inheritable(int(fd), False)


class _Progress:
    """At most two lines a second to the parent, and every change of phase."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock, self._last, self._phase = clock, 0, ""
        self._pid = os.getpid()
        fd = os.environ.get(PROGRESS_FD)
        self._out: IO[str] | None = os.fdopen(int(fd), "w", buffering=1) if fd else None
        if fd:
            os.set_inheritable(int(fd), False)

    def __call__(self, phase: str, iterations: int) -> None:
        now = self._clock()
        if self._out is None or (phase == self._phase and now - self._last < _PROGRESS_NS):
            return
        if os.getpid() != self._pid:
            return  # a copy that the model forked does not speak for us
        self._last, self._phase = now, phase
        _let_out(by_line=phase == "load")
        with contextlib.suppress(BrokenPipeError):
            self._out.write(json.dumps({"phase": phase, "iterations": iterations}) + "\n")


def _let_out(*, by_line: bool) -> None:
    """Write what the model has printed so far, so that its log can be followed.

    by_line: and from here on each line at once. Not in a pass: there it happens between steps, so
    that printing costs a step what it always did.
    """
    if isinstance(sys.__stdout__, io.TextIOWrapper):
        with contextlib.suppress(OSError, ValueError):  # the model may have closed it
            sys.__stdout__.reconfigure(line_buffering=by_line)


def _arrays(samples: "Samples") -> "Arrays":
    """Return what this repeat keeps: times in ns, labels, and the layer pass where there is one."""
    import numpy as np

    arrays: dict[str, np.ndarray[Any, Any]] = {
        name: np.array(getattr(samples, name), dtype=np.int64)
        for name in ("warmup_ns", "latency_ns", "gpu_time_ns", "enqueue_ns", "completion_ns")
        if isinstance(getattr(samples, name), array)
    }
    arrays["label_bits"] = np.frombuffer(bytes(samples.labels), dtype=np.uint8)
    if samples.layers is not None:
        found = samples.layers
        arrays |= {name: getattr(found, name) for name in ("layer_ns", "profiled_ns", "clean_ns")}
    return arrays


def _write_result(data: bytes, folder: Path) -> None:
    fd = os.environ.get(RESULT_FD)
    if fd is None:
        (folder / "record.json").write_bytes(data)
        return
    with os.fdopen(int(fd), "wb") as out:
        out.write(data)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything is written. Taking a framework apart costs 0.2 s a repeat, and a thread that the
    # user's code left behind would keep us waiting for ever.
    os._exit(code)
