"""The agent: registers the node, keeps one slot worker per device alive, beats for them, drains.

It is the failure detector of its node. When a slot worker dies, what it held goes back into the
queue at once; when the agent itself dies, its workers hear it and end, and the next agent of the
node first releases what they held. It beats for all slots in one call, so a busy interpreter never
looks dead, and passes on what people ask of a job in hand. Every agent also offers to run the tick;
one leads.
"""

import logging
import os
import secrets
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from farm import broker
from farm.errors import NoResult, Unreachable
from farm.ledger import Ears, Held, Ledger
from farm.settings import shown
from farm.store import open_store, place
from workers.control import Judged, Listen, Stop
from workers.guard import Manner
from workers.keeper import STOP_S, Keeper
from workers.node import Around, Served
from workers.spool import Spool
from workers.uploader import Uploader

log = logging.getLogger(__name__)

TICK_S: Final = 0.5
_STOPS: Final[dict[str, Literal["lost", "cancel"]]] = {"LOST taken": "lost", "CANCEL": "cancel"}


class Agent:
    """Serves the slots of one node until it is told to stop."""

    def __init__(
        self,
        served: Sequence[Served],
        *,
        broker_url: str,
        store: str,
        state: Path,
        spool: Path,
        ttl_s: float,
        drain_s: float,
        lifeline: int | None,
        manner: Manner = Manner(),  # noqa: B008 - it cannot be changed
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._node, self._card = served[0].slot.node, served[0].card
        self._broker_url, self._store = broker_url, place(store)
        around = Around(broker_url, store, self._store, state, spool, manner)
        self._keepers = [_keeper(each, around, clock) for each in served]
        self._ledger = Ledger(broker_url, ttl_s=ttl_s)
        self._app = broker.connect(broker_url)
        self._uploader = Uploader(
            Spool(spool, place=self._store),
            store=open_store(store),
            ledger=Ledger(broker_url, ttl_s=ttl_s),
        )
        self._clock, self._sleep, self._drain_s, self._lifeline = clock, sleep, drain_s, lifeline
        # The id of this machine's state, not only a nonce: a name is ours again after a crash.
        self._me = f"{self._card.node.node_id}#{secrets.token_hex(4)}"
        self._ears: Ears | None = None
        self._stops = 0
        self._beat_at = self._name_at = 0.0
        self._wake_r, self._wake_w = os.pipe()

    def serve(self) -> None:
        """Serve until stopped: a first signal drains, a second one ends the children now.

        Raises Unreachable if the broker does not answer at the start; later outages are waited out.
        Raises NoResult if a live agent of another machine serves under this node's name.
        """
        self._ledger.setup()
        self._take_name()
        self._release_leftovers()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        os.set_blocking(self._wake_w, False)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        _keep_to(housekeeping=self._card.node.housekeeping_cpus)
        self._uploader.start()
        try:
            self._register("up")
            self._say_what_is_served()
            for keeper in self._keepers:
                keeper.start_when_due()
            while self._stops == 0:
                self._step()
            self._drain()
        finally:
            signal.set_wakeup_fd(-1)
            self._end_all()

    def _asked_to_stop(self, _number: int, _frame: object) -> None:
        self._stops += 1

    def _take_name(self) -> None:
        """Take the node's name; a live agent renews its own, that of a dead one runs out."""
        deadline = self._clock() + self._ledger.ttl_s / 2
        while not self._has_name():
            if self._clock() > deadline:
                raise NoResult(
                    f"node {self._node!r} is served already",
                    why=f"by another machine, or from another state folder, on "
                    f"{shown(self._broker_url)}",
                    hint="give this one a name of its own: --name, or FARM_NODE_NAME",
                )
            self._sleep(TICK_S / 5)

    def _keep_name(self) -> None:
        if self._clock() >= self._name_at:
            self._name_at = self._clock() + self._ledger.ttl_s / 9  # it is ours for ttl / 3
            if not self._has_name():
                log.error("another agent has taken the name %s: end one of the two", self._node)

    def _has_name(self) -> bool:
        """Whether the name is ours, or was left by an agent of this state that is no more."""
        what = f"node:{self._node}"
        if self._ledger.lead(self._me, what=what):
            return True
        return self._ledger.leader(what).partition("#")[0] == self._card.node.node_id

    def _say_what_is_served(self) -> None:
        slots = ", ".join(each.slot.slot for each in self._keepers)
        where = f"{shown(self._broker_url)}, store {self._store}"
        log.info("serving %s as node %s for %s", slots, self._node, where)

    def _step(self) -> None:
        self._wait(TICK_S)
        for keeper in self._keepers:
            if owner := keeper.died():
                self._release(owner, cause="worker_lost", counted=True)
            elif not self._stops:
                keeper.start_when_due()
        try:
            self._keep_name()
            self._beat()
            if self._ledger.lead(self._me):
                tick = self._ledger.tick()
                broker.send_tickets(self._app, tick.tickets)
            self._attend()
        except Unreachable as error:
            # Jobs run on: the answer after reconnecting decides, a failed beat means nothing.
            log.warning("broker away: %s", error)

    def _wait(self, seconds: float) -> None:
        """Wait until something is said, by a worker, a signal, our starter or the broker."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_r, selectors.EVENT_READ)
            if self._lifeline is not None:
                selector.register(self._lifeline, selectors.EVENT_READ)
            if self._ears is not None and self._ears.fileno() >= 0:
                selector.register(self._ears, selectors.EVENT_READ)
            for keeper in self._keepers:
                if keeper.control is not None:
                    selector.register(keeper.control, selectors.EVENT_READ, keeper)
            for key, _ in selector.select(seconds):
                if key.fd == self._wake_r:
                    os.read(self._wake_r, 4096)
                elif key.fd == self._lifeline:
                    self._lifeline = None if not os.read(key.fd, 1) else self._lifeline
                    self._stops += 2 if self._lifeline is None else 0
                elif isinstance(key.data, Keeper):
                    self._beat_at = 0.0 if key.data.hear() else self._beat_at
                    self._uploader.wake()

    def _attend(self) -> None:
        """Hear what people ask of the jobs in hand; a lost subscription is made anew."""
        if self._ears is None:
            self._ears = self._ledger.listen(self._node)
        try:
            for said in self._ears.heard():
                self._pass_on(said)
        except Unreachable:
            self._ears.close()
            self._ears = None
            raise

    def _pass_on(self, said: dict[str, Any]) -> None:
        """Tell every worker: only the holder minds, and it may have claimed the entry just now."""
        fence = said.get("fence")
        if not isinstance(fence, str) or not fence:
            return  # no fence would mean whatever is in hand
        for keeper in self._keepers:
            if said.get("do") == "cancel":
                keeper.tell(Stop(why="cancel", fence=fence))
            elif said.get("do") == "log":
                keeper.tell(Listen(fence=fence))

    def _beat(self) -> None:
        now = self._clock()
        if now < self._beat_at:
            return
        holding = [(each, each.holding) for each in self._keepers if each.holding.key]
        sending = self._uploader.held()
        held = [Held(key=it.key, fence=it.fence, progress=it.progress) for _, it in holding]
        answers = self._ledger.beat([*held, *sending])
        self._uploader.told(sending, answers[len(held) :])
        # With the slots each time: a broker that lost everything must hear of them again.
        self._register("up" if not self._stops else "draining")
        for (keeper, it), answer in zip(holding, answers, strict=False):
            if answer in _STOPS:
                keeper.tell(Stop(why=_STOPS[answer], fence=it.fence))
        self._beat_at = now + self._ledger.ttl_s / 3

    def _register(self, state: Literal["up", "draining"]) -> None:
        slots = [msgspec.structs.replace(each.slot, trouble=each.trouble) for each in self._keepers]
        held = self._ledger.node(self._node, state=state, slots=slots, spool=self._uploader.depth())
        health = {each.slot: each for each in held if each.kind != "paused"}
        if "" in health and health[""].kind == "cleared":
            self._ledger.settle(self._node)
        for keeper in self._keepers:  # each time: a worker that has just started knows nothing
            told = health.get(keeper.slot.slot)
            keeper.tell(Judged(kind=told.kind, note=told.note, by=told.by) if told else Judged())

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
        while any(each.is_running for each in self._keepers):
            for keeper in self._keepers:
                keeper.wind_up()
            now = self._clock()
            if not told and (self._stops > 1 or now > deadline):
                told, deadline = True, now + STOP_S
                for keeper in self._keepers:
                    keeper.tell(Stop(why="release"))
            if told and now > deadline:
                return
            self._step()
        # What waits goes out if the store takes it; else it stays for the next agent.
        while not self._uploader.is_idle and self._stops < 2 and self._clock() <= deadline:
            self._step()

    def _end_all(self) -> None:
        for keeper in self._keepers:
            if owner := keeper.kill():
                self._release(owner, cause="released", counted=False)
        if self._ears is not None:
            self._ears.close()
        self._uploader.end(seconds=STOP_S)
        try:
            self._ledger.node(self._node, state="gone")
        except Unreachable as error:
            log.warning("broker away at the end: %s", error)


def _keeper(served: Served, around: Around, clock: Callable[[], float]) -> Keeper:
    lock = served.lock.fd if served.lock is not None else None
    return Keeper(served.setup(around), lock=lock, clock=clock)


def _keep_to(*, housekeeping: Sequence[int]) -> None:
    """Keep this process and the slot workers it starts off the cores that jobs are measured on."""
    if housekeeping and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, housekeeping)
