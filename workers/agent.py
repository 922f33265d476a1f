"""The agent: registers the node, keeps one slot worker per device alive, beats for them, drains.

It is the failure detector of its node. When a slot worker dies, what it held goes back into the
queue at once; when the agent itself dies, its workers hear it and end, and the next agent of the
node first releases what they held. It beats for all slots in one call, so a busy interpreter never
looks dead. Every agent also offers to run the tick; one leads.
"""

import logging
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Literal

from farm import broker
from farm.errors import Unreachable
from farm.ledger import Held, Ledger
from workers.control import Control, Holding, Setup, Stop, pair
from workers.node import Served

log = logging.getLogger(__name__)

TICK_S: Final = 0.5
_RESTART_MAX_S: Final = 60.0
_SETTLED_S: Final = 30.0
_STOP_S: Final = 20.0


@dataclass
class _Worker:
    served: Served
    process: "subprocess.Popen[bytes] | None" = None
    control: Control | None = None
    owner: str = ""
    started: float = 0.0
    restart_at: float = 0.0
    failures: int = 0
    is_ending: bool = False
    holding: Holding = field(default_factory=Holding)


class Agent:
    """Serves the slots of one node until it is told to stop."""

    def __init__(
        self,
        served: Sequence[Served],
        *,
        broker_url: str,
        store: str,
        state: Path,
        ttl_s: float,
        drain_s: float,
        lifeline: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers = [_Worker(each) for each in served]
        self._node = served[0].slot.node
        self._broker_url, self._store = broker_url, store
        self._state = state
        self._ledger = Ledger(broker_url, ttl_s=ttl_s)
        self._app = broker.connect(broker_url)
        self._clock, self._drain_s, self._lifeline = clock, drain_s, lifeline
        self._me = f"{self._node}#{secrets.token_hex(4)}"
        self._stops = 0
        self._beat_at = 0.0
        self._wake_r, self._wake_w = os.pipe()

    def serve(self) -> None:
        """Serve until stopped: a first signal drains, a second one ends the children now.

        Raises Unreachable if the broker does not answer at the start; later outages are waited out.
        """
        self._ledger.setup()
        self._release_leftovers()
        self._register("up")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        os.set_blocking(self._wake_w, False)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        _keep_to(housekeeping=self._workers[0].served.card.node.housekeeping_cpus)
        for worker in self._workers:
            self._start(worker)
        try:
            while self._stops == 0:
                self._step()
            self._drain()
        finally:
            signal.set_wakeup_fd(-1)
            self._end_all()

    def _asked_to_stop(self, _number: int, _frame: object) -> None:
        self._stops += 1

    def _step(self) -> None:
        self._listen(TICK_S)
        for worker in self._workers:
            self._look_after(worker)
        try:
            self._beat()
            if self._ledger.lead(self._me):
                tick = self._ledger.tick()
                broker.send_tickets(self._app, tick.tickets)
        except Unreachable as error:
            # Jobs run on: the answer after reconnecting decides, a failed beat means nothing.
            log.warning("broker away: %s", error)

    def _listen(self, seconds: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_r, selectors.EVENT_READ)
            if self._lifeline is not None:
                selector.register(self._lifeline, selectors.EVENT_READ)
            for worker in self._workers:
                if worker.control is not None:
                    selector.register(worker.control, selectors.EVENT_READ, worker)
            for key, _ in selector.select(seconds):
                if key.fd == self._wake_r:
                    os.read(self._wake_r, 4096)
                elif key.fd == self._lifeline:
                    self._lifeline = None if not os.read(key.fd, 1) else self._lifeline
                    self._stops += 2 if self._lifeline is None else 0
                else:
                    self._hear(key.data)

    def _hear(self, worker: _Worker) -> None:
        assert worker.control is not None
        messages = worker.control.receive()
        if messages is None:
            worker.control.close()
            worker.control = None
            return
        for message in messages:
            if isinstance(message, Holding):
                changed = message.fence != worker.holding.fence
                # A line without progress keeps the last one of the same entry.
                if message.progress or changed:
                    worker.holding = message
                self._beat_at = 0.0 if changed or message.progress else self._beat_at

    def _beat(self) -> None:
        now = self._clock()
        if now < self._beat_at:
            return
        holding = [worker for worker in self._workers if worker.holding.key]
        held = [
            Held(key=w.holding.key, fence=w.holding.fence, progress=w.holding.progress)
            for w in holding
        ]
        answers = self._ledger.beat(held)
        # With the slots each time: a broker that lost everything must hear of them again.
        self._register("up" if not self._stops else "draining")
        for worker, answer in zip(holding, answers, strict=True):
            if answer == "LOST taken" and worker.control is not None:
                worker.control.send(Stop(why="lost", fence=worker.holding.fence))
        self._beat_at = now + self._ledger.ttl_s / 3

    def _register(self, state: Literal["up", "draining"]) -> None:
        self._ledger.node(self._node, state=state, slots=[w.served.slot for w in self._workers])

    def _look_after(self, worker: _Worker) -> None:
        now = self._clock()
        if worker.process is None:
            if now >= worker.restart_at and not self._stops:
                self._start(worker)
            return
        code = worker.process.poll()
        if code is None:
            if now - worker.started > _SETTLED_S:
                worker.failures = 0
            return
        log.warning("slot worker %s ended with %s", worker.owner, code)
        worker.process = None
        worker.holding = Holding()
        if worker.control is not None:
            worker.control.close()
            worker.control = None
        worker.restart_at = now + min(2.0**worker.failures, _RESTART_MAX_S) - 1.0
        worker.failures += 1
        self._release(worker.owner, cause="worker_lost", counted=True)

    def _start(self, worker: _Worker) -> None:
        served = worker.served
        assert served.lock is not None
        ours, theirs = pair()
        worker.owner = f"{self._node}/{served.slot.slot}#{secrets.token_hex(4)}"
        with theirs, self._log_file(served.slot.slot) as output:
            fd = theirs.fileno()
            worker.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "workers.tasks", served.slot.slot, str(fd)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(fd, served.lock.fd),
                start_new_session=True,
            )
        worker.control, worker.started = ours, self._clock()
        ours.send(
            Setup(
                slot=served.slot,
                owner=worker.owner,
                device=served.device,
                card=served.card,
                environment=served.environment,
                broker=self._broker_url,
                store=self._store,
                state=str(self._state),
                lock_dir=str(served.lock_dir),
                flags=list(served.flags),
            )
        )

    def _log_file(self, slot: str) -> IO[bytes]:
        folder = self._state / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / f"{self._node}-{slot}.log").open("ab")

    def _release_leftovers(self) -> None:
        for owner in self._ledger.owners(self._node):
            log.warning("releasing what %s left behind", owner)
            self._release(owner, cause="worker_lost", counted=True)

    def _release(self, owner: str, *, cause: str, counted: bool) -> None:
        try:
            states = self._ledger.release(owner, cause=cause, counted=counted)
            if states:
                broker.send_tickets(self._app, self._ledger.tick().tickets)
        except Unreachable as error:
            log.warning("broker away, the lease of %s will run out: %s", owner, error)

    def _drain(self) -> None:
        """Let running jobs end within the drain time; after it, or a second signal, stop them."""
        deadline = self._clock() + self._drain_s
        told = False
        self._beat_at = 0.0  # say at once that nothing more is claimed here
        while any(worker.process is not None for worker in self._workers):
            for worker in self._workers:
                # Celery takes one SIGTERM as: no further ticket, let the job in hand end.
                if worker.process is not None and not worker.is_ending:
                    worker.process.terminate()
                    worker.is_ending = True
            now = self._clock()
            if not told and (self._stops > 1 or now > deadline):
                told, deadline = True, now + _STOP_S
                for worker in self._workers:
                    if worker.control is not None:
                        worker.control.send(Stop(why="release"))
            if told and now > deadline:
                return
            self._step()

    def _end_all(self) -> None:
        for worker in self._workers:
            if worker.process is not None:
                worker.process.kill()
                worker.process.wait(timeout=_STOP_S)
                self._release(worker.owner, cause="released", counted=False)
            if worker.control is not None:
                worker.control.close()
        try:
            self._ledger.node(self._node, state="gone")
        except Unreachable as error:
            log.warning("broker away at the end: %s", error)


def _keep_to(*, housekeeping: Sequence[int]) -> None:
    """Keep this process and the slot workers it starts off the cores that jobs are measured on."""
    if housekeeping and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, housekeeping)
