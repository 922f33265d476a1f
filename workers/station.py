"""One device and everything needed to measure on it: lease, staged inputs, children, artefacts.

The same station serves tickets in a slot worker and one job by hand in `farm-worker run`.
"""

import math
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from farm import bundle, identity, schema
from farm.errors import NoResult
from farm.hardware import Roofs
from farm.schema import Asked, Device, Failure, GateRow, Order, Profile, SystemCard
from farm.store import Store
from workers import cores, folders, lease
from workers.assembly import Attempt
from workers.cleanup import Cleanup
from workers.environment import child_environment
from workers.gates import Finding, Unfit
from workers.gpu import Board
from workers.guard import Guard
from workers.host import Host, neighbours
from workers.launch import SILENCE_S, Ended, Limits, ignore, launch
from workers.measure import Interrupted, measure
from workers.record import Assignment
from workers.sentry import rows


@dataclass(frozen=True, kw_only=True)
class Station:
    """A device of this node, ready to measure; store is None where nothing can be fetched.

    flags: doubts that hold for every job of the slot. start: runs one child, as `launch` does.
    roofs: measured peaks of this system, None while nobody took them. board: the GPU or slice that
    every child is pinned to, None on a CPU slot; of a simulated one it computes on the CPU. guard:
    watches it, None where nobody does.
    """

    node: str
    worker: str
    device: Device
    card: SystemCard
    environment: str
    flags: tuple[str, ...]
    cache: Path
    lock_dir: Path
    store: Store | None
    version: str
    host: Host
    start: Callable[..., Ended] = launch
    roofs: Roofs | None = None
    board: Board | None = None
    simulated: bool = False
    guard: Guard | None = None

    def measure(
        self,
        order: Order,
        *,
        run_id: str,
        attempt: int,
        fence: int,
        queue_s: float | None,
        folder: Path,
        stop_fd: int,
        on_progress: Callable[[int, str, int], None],
        on_output: Callable[[bytes], None] = ignore,
        by_hand: Asked | None = None,
    ) -> Profile:
        """Measure a job under the device's lease and return its profile, without artefacts.

        by_hand: says what runs and where the user's files lie, in place of effort and store.
        folder: of this attempt; repeats that ended there are taken over. on_progress: hears the
        repeat (from 1; 0: the instrumented child), the phase and its iterations. on_output: as of
        `launch`. Raises Interrupted if stopped, Unfit if the device is not to be measured on now.
        """
        folder.mkdir(parents=True, exist_ok=True)
        more = _by_hand(by_hand) if by_hand is not None else self._of_job(order)
        tried = Attempt(
            order=order,
            run_id=run_id,
            attempt=attempt,
            fence=fence,
            node=self.node,
            worker=self.worker,
            device=self.device,
            card=self.card,
            card_id=identity.content_id(schema.encode(self.card)),
            threads=order.effort.threads or len(self.device.cpus),
            environment=self.environment,
            flags=self.flags,
            memory_limit=_limit_of(more),
            queue_s=queue_s,
            farm_version=self.version,
            folder=folder,
            roofs=self.roofs,
            **more,
        )
        board, seen = self.board, list[GateRow]()
        with lease.hold(
            self.device.slot if board is None else board.uuid,
            cores.names(self.host, self.device.cpus),
            called=self.device.slot,
            parent="" if board is None else board.parent,
            directory=self.lock_dir,
            holder=self.worker,
            sleep=lambda seconds: _wait(seconds, stop_fd, on_progress),
        ) as held:
            made = measure(
                tried,
                run=lambda one: self._watched(one, seen, held.fds, stop_fd, on_progress, on_output),
                now=lambda: datetime.now(UTC),
            )
        return self._closed(made, seen)

    def _closed(self, made: Profile, seen: list[GateRow]) -> Profile:
        """Return a profile with what gates saw; raise Unfit where its device broke meanwhile."""
        if self.guard is None:
            return made
        broken = self.guard.watcher.fault
        if broken is not None and broken.severity == "hard":  # in this job: none begins with one
            raise Unfit([broken])
        return msgspec.structs.replace(made, gate=seen)

    def _watched(
        self,
        asked: Assignment,
        seen: list[GateRow],
        leases: list[int],
        stop_fd: int,
        on_progress: Callable[[int, str, int], None],
        on_output: Callable[[bytes], None],
    ) -> tuple[Ended, tuple[str, ...]]:
        """Run a child between the gates of its device; what they find is a doubt of its repeat."""
        if self.guard is None:
            return self._child(asked, leases, stop_fd, on_progress, on_output)
        found = self.guard.ready(lambda why: on_progress(asked.index + 1, why, 0))
        seen += rows(found, repeat=asked.index)
        self.guard.watch()
        ended, others = self._child(asked, leases, stop_fd, on_progress, on_output)
        left = self.guard.closed(ended.record, job=asked.job.job_id)
        seen += rows(left.findings, repeat=asked.index)
        if ended.record is None:
            return ended, others
        folders.keep_telemetry(Path(asked.folder), left.columns)
        flags = [*ended.record.flags, *left.flags]
        record = msgspec.structs.replace(ended.record, flags=flags, watched=list(left.watched))
        return replace(ended, record=record), others

    def cleanup(self) -> Cleanup:
        """Return what clears away what a child of this slot leaves.

        A worker and a hand each know their own: the one may start while the other measures.
        """
        by_hand = ".hand" if self.worker.endswith("#hand") else ""
        name = f"{self.device.slot}{by_hand}.json"
        return Cleanup(self.cache.parent / "held" / name, self.host)

    def _of_job(self, order: Order) -> dict[str, Any]:
        """Return what an attempt at a job runs, and where its staged files lie."""
        code, npz = self._staged(order)
        effort = order.effort
        wanted = {"layers": effort.layers, "trace": effort.trace, "flops": effort.flops}
        return {
            "bundle": code,
            "npz": npz,
            "instruments": tuple(name for name, asked in wanted.items() if asked),
            **self._pinned(),
        }

    def _pinned(self) -> dict[str, Any]:
        """Return what a job of this slot computes on: its GPU, the only one that it sees."""
        if self.board is None or self.simulated:
            return {}
        return {"accelerator": "cuda", "device_uuid": self.board.uuid}

    def _staged(self, order: Order) -> tuple[str, str]:
        """Return where the user's code and input arrays lie now, "" where there are none."""
        workload = order.job.workload
        digest = workload.inputs.digest
        code, npz = workload.model.bundled, isinstance(digest, str)
        if not (code or npz):
            return "", ""
        if self.store is None:
            raise NoResult(
                f"the files of {workload.model.name} are in no store that is named here",
                hint="set FARM_STORE to the store that the job came from",
            )
        return (
            str(bundle.fetch(self.store, workload.model.digest, self.cache)) if code else "",
            str(bundle.fetch_npz(self.store, str(digest), self.cache)) if npz else "",
        )

    def _child(
        self,
        asked: Assignment,
        leases: list[int],
        stop_fd: int,
        on_progress: Callable[[int, str, int], None],
        on_output: Callable[[bytes], None],
    ) -> tuple[Ended, tuple[str, ...]]:
        # The model may do what it likes with its home, which is also where it starts; what we keep
        # of the repeat lies beside it.
        home = Path(asked.folder) / "home"
        home.mkdir(exist_ok=True)
        before, cleanup = self.host.processes(), self.cleanup()
        cleanup.settle()  # of a hand that was killed; a worker has done so at its start
        ended = self.start(
            self._limited(asked),
            environment=child_environment(
                os.environ,
                threads=asked.threads,
                folder=home,
                accelerator=asked.accelerator,
                visible=asked.device_uuid,
            )
            | cleanup.begin(),
            leases=leases,
            limits=_limits(asked),
            stop_fd=stop_fd,
            clock=time.monotonic,
            on_progress=lambda phase, n: on_progress(asked.index + 1, phase, n),
            on_output=on_output,
        )
        after = self.host.processes()
        fault = unkillable(cleanup.end()) or _fault_of(ended)
        shutil.rmtree(home, ignore_errors=True)
        if fault is not None:
            raise Unfit([fault])
        return ended, tuple(neighbours(before, after, cpus=self.device.cpus, seconds=ended.seconds))

    def _limited(self, asked: Assignment) -> Assignment:
        """Return it with a limit on its memory: of all that is free where nobody said less."""
        limit = asked.effort.memory_limit_bytes or self.host.memory_to_use() or 0
        # A driver of a GPU reserves vast ranges of addresses, which a limit would count.
        limit = 0 if asked.accelerator else limit
        effort = msgspec.structs.replace(asked.effort, memory_limit_bytes=limit)
        return msgspec.structs.replace(asked, effort=effort)


def unkillable(left: Sequence[int]) -> Finding | None:
    """Return the fault of a device on which processes are left that cannot be ended."""
    pids = ", ".join(map(str, left[:5]))
    return _hard("unkillable_child", f"on it, and not to be ended: pid {pids}") if left else None


def _fault_of(ended: Ended) -> Finding | None:
    """Return what a child shows of its device, whoever wrote the model."""
    if ended.unkillable:
        return _hard("unkillable_child", "a child on it cannot be ended")
    said = ended.record.failure if ended.record is not None else msgspec.UNSET
    if isinstance(said, Failure) and said.kind == "identity_mismatch":
        return _hard(said.kind, said.message)
    return None


def _hard(name: str, reason: str) -> Finding:
    return Finding(
        id=name, phase="after", verdict="quarantine", severity="hard", reason=reason, enforced=True
    )


def _limits(asked: Assignment) -> Limits:
    """Return how long a child may take; whoever captures by hand ends a silent one with Ctrl-C."""
    by_hand = asked.capture is not msgspec.UNSET
    silence_s = math.inf if by_hand else SILENCE_S
    return Limits(job_s=asked.effort.timeout_s, silence_s=silence_s)


def _limit_of(more: dict[str, Any]) -> str:
    """Return what limits the memory of a child: nothing does on a GPU."""
    return "rlimit" if not more.get("accelerator") and sys.platform == "linux" else "none"


def _by_hand(asked: Asked) -> dict[str, Any]:
    return {
        "bundle": asked.bundle,
        "npz": asked.npz,
        "passes": asked.passes,
        "instruments": asked.instruments,
        "accelerator": asked.device if asked.device.startswith("cuda") else "",
        "output": asked.output,
        "capture": asked.capture,
    }


def _wait(seconds: float, stop_fd: int, on_progress: Callable[[int, str, int], None]) -> None:
    """Wait for a device that somebody else holds, unless we are told to stop meanwhile."""
    on_progress(1, "waiting for the device", 0)
    if select.select([stop_fd], [], [], seconds)[0]:
        raise Interrupted
