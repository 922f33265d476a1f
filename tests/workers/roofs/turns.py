"""A child whose kinds take turns: each takes as long as a test says, and never less."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tests.workers import make
from tests.workers.scripted import ended
from workers.host import Host
from workers.launch import Ended
from workers.record import Assignment, Record, WarmUp
from workers.station import Station

Times = Callable[[Assignment], Sequence[float]]
BUSY = (make.edge(1), make.edge(2, wait_ns=500_000_000))


class Turns:
    """times: the best ns of each kind, for an assignment; the others take up to half longer.

    records: what is unusual about the records of the next children, in order; a failure likewise.
    """

    def __init__(self, times: Times, *records: dict[str, Any]) -> None:
        self.times, self.records = times, list(records)
        self.asked: list[Assignment] = []

    def __call__(self, assignment: Assignment, **_more: Any) -> Ended:
        self.asked.append(assignment)
        unusual = self.records.pop(0) if self.records else {}
        if "failure" in unusual:
            return ended(record=make.record(assignment.index, **unusual))
        record = _record(assignment, unusual)
        assert record.warmup is not None
        best, asked = self.times(assignment), assignment.job.protocol.iterations
        assert asked != "auto"
        workload = assignment.job.workload
        turn = workload.batch if workload.inputs.spec else 1
        done = record.warmup.iterations + np.arange(asked)
        slower = 1 + 0.5 * ((done + 1) % turn) / turn  # the last of a turn is the quickest
        samples = np.asarray(best)[done // turn % len(best)] * slower
        np.savez(
            Path(assignment.folder) / "samples.npz",
            latency_ns=samples.astype(np.int64),
            label_bits=np.zeros(asked, dtype=np.uint8),
        )
        return ended(record=record)


def _record(assignment: Assignment, unusual: dict[str, Any]) -> Record:
    warm = assignment.job.protocol.warmup
    assert warm != "auto"
    made = make.record(
        assignment.index, warmup=WarmUp(iterations=warm, seconds=0.1, stop="fixed"), memory=None
    )
    return msgspec.structs.replace(made, **unusual)


def station(folder: Path, child: Turns, **changes: Any) -> Station:
    """A station with that child; its card and host are as a test wants them."""
    (folder / "locks").mkdir(exist_ok=True)
    fields: dict[str, Any] = {
        "node": "n1",
        "worker": "n1/cpu:0#hand",
        "device": make.device(),
        "card": make.card(),
        "environment": "default",
        "flags": (),
        "cache": folder / "cache",
        "lock_dir": folder / "locks",
        "store": None,
        "version": "0.1.0",
        "host": Host(folder / "machine"),
        "start": child,
    }
    return Station(**(fields | changes))


def knows(*isa: str) -> Any:
    """A card whose CPU has these instruction sets."""
    card = make.card()
    cpu = msgspec.structs.replace(card.stable.cpu, isa=list(isa))
    return msgspec.structs.replace(card, stable=msgspec.structs.replace(card.stable, cpu=cpu))
