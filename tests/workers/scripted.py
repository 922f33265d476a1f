"""A child that a test writes: it stands in for `launch`, and leaves what a real one would."""

import select
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from farm.schema import Failure
from tests.workers import make
from workers.launch import Ended, Limits
from workers.record import TRACE, Assignment, Record, TraceReading


class Child:
    """Ends well with a quiet record, unless it is told otherwise.

    during: called in the middle of each repeat. fails: the failures of the next repeats, in order,
    "" for none. says: what each repeat prints before its middle. A stop is obeyed at once.
    """

    def __init__(
        self,
        *fails: str,
        during: Callable[[int], None] = lambda _index: None,
        says: bytes = b"",
    ) -> None:
        self.fails, self.during, self.says = list(fails), during, says
        self.asked: list[Assignment] = []
        self.leases: list[Sequence[int]] = []
        self.environment: Mapping[str, str] = {}

    def __call__(
        self,
        assignment: Assignment,
        *,
        environment: Mapping[str, str],
        leases: Sequence[int],
        limits: Limits,
        stop_fd: int,
        clock: Callable[[], float],
        on_progress: Callable[[str, int], None],
        on_output: Callable[[bytes], None],
    ) -> Ended:
        self.asked.append(assignment)
        self.leases.append(list(leases))
        self.environment = environment
        on_progress("load", 0)
        on_progress("latency", 40)
        on_output(self.says)
        self.during(assignment.index)
        if select.select([stop_fd], [], [], 0)[0]:
            return ended(cause="stopped", record=None, exit_code=None, signal="SIGTERM")
        kind = self.fails.pop(0) if self.fails else ""
        if kind:
            failure = Failure(kind=kind, phase="first", message=f"told to fail with {kind}")
            return ended(record=make.record(assignment.index, failure=failure))
        samples, record = answer(assignment)
        np.savez(Path(assignment.folder) / "samples.npz", **samples)
        return ended(record=record)


TRACED = b'{"traceEvents": []}'
READING = TraceReading(
    wanted=3,
    iterations=3,
    traced_ns=[30, 31, 32],
    trace_bytes=len(TRACED),
)


def answer(assignment: Assignment) -> tuple[dict[str, Any], Record]:
    """The arrays and the record of a child that was asked this and ends well.

    A trace that was asked for lies in its folder then.
    """
    if assignment.instruments:
        asked = assignment.instruments
        left: dict[str, Any] = {
            each: None
            for each, name in (("layers", "layers"), ("cost", "flops"))
            if name not in asked
        }
        if "trace" in asked:
            (Path(assignment.folder) / TRACE).write_bytes(TRACED)
            left["trace"] = READING
        return dict(make.layer_arrays()), make.instrumented(**left)
    arrays = dict(make.arrays(seed=assignment.index))
    arrays["completion_ns"] = np.array([100, 110, 130], dtype=np.int64)
    return arrays, make.record(assignment.index)


def ended(**changes: Any) -> Ended:
    """How a child ends that said nothing unusual."""
    fields = {
        "cause": "ended",
        "exit_code": 0,
        "signal": None,
        "record": None,
        "phase": "latency",
        "output": b"hello from the model\n",
        "seconds": 1.0,
    }
    return Ended(**(fields | changes))


def order(repeats: int = 1, **changes: Any) -> Any:
    """An order without instruments; changes go to its job's workload."""
    asked = make.order(repeats, layers=False, flops=False)
    return msgspec.structs.replace(asked, job=make.job(**changes))
