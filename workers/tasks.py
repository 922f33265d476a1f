"""The slot worker: one process per device, which turns tickets into stored profiles.

Ticket, claim, device lock, repeats, spool, finish: the profile is durable on this disk before the
entry is handed to the node's uploader, and the device is free. The key that the profile will have
goes into the ledger with that, so whoever takes over after a crash finds it in the store and
measures nothing twice. Started by the agent: `python -m workers.tasks SLOT FD`.
"""

import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from farm import broker, schema
from farm.errors import FarmError, Unreachable
from farm.ledger import Claim, Held, Ledger
from farm.schema import Order, Profile
from farm.store import Denied, StoreError, open_store, place
from farm.store import Unreachable as Away
from workers import roofs
from workers.cleanup import adopt_orphans
from workers.control import Control, Fit, Holding, Judged, Listen, Setup, Stop
from workers.gates import Unfit
from workers.host import Host
from workers.launch import Ended, launch
from workers.leftovers import Leftovers, effort_id
from workers.measure import Interrupted
from workers.packing import cause, pack
from workers.spool import Parcel, Spool
from workers.station import Station, unkillable
from workers.voice import Voice
from workers.ward import Ward
from workers.watchers import guarded

log = logging.getLogger(__name__)


class SlotWorker:
    """One device's worker: at most one entry in hand, and one child running for it.

    start: runs a child, as `launch` does. today: as 2026-11-30, in UTC.
    """

    def __init__(
        self,
        setup: Setup,
        control: Control,
        *,
        version: str,
        start: Callable[..., Ended] = launch,
        today: Callable[[], str] = lambda: datetime.now(UTC).date().isoformat(),
    ) -> None:
        self._slot, self._owner, self._control = setup.slot, setup.owner, control
        self._ledger = Ledger(setup.broker)
        self._store = open_store(setup.store)
        self._spool = Spool(Path(setup.spool), place=place(setup.store))
        self._sender = f"{setup.slot.node}/spool"
        self._today = today
        self._left = Leftovers(self._store, self._spool, setup)
        self._station = Station(
            node=setup.slot.node,
            worker=setup.owner,
            device=setup.device,
            card=setup.card,
            environment=setup.environment,
            flags=tuple(setup.flags),
            board=setup.board,
            simulated=setup.simulated,
            guard=guarded(setup),
            cache=Path(setup.state) / "cache",
            lock_dir=Path(setup.lock_dir),
            store=self._store,
            version=version,
            host=Host(),
            start=start,
            roofs=roofs.known(Path(setup.state), setup.card.system_id),
        )
        self._ward = Ward(setup, self._ledger, self._station.guard)
        self._stop_r, self._stop_w = os.pipe()
        self._stop: Stop | None = None
        self._claim: Claim | None = None
        self._voice: Voice | None = None
        self._guard = threading.Lock()

    def settle(self) -> None:
        """Clear away what the last worker of this slot left, which may have been killed."""
        fault = unkillable(self._station.cleanup().settle())
        if fault is not None:
            with suppress(Unreachable):
                self._ward.report(fault)

    def obey(self, message: object) -> None:
        """Do what the agent says; what is said of an entry no longer in hand is old news."""
        if isinstance(message, Judged):
            with suppress(Unreachable):  # it is said again with the next beat
                self._ward.hear(message)
            return
        with self._guard:
            if self._claim is None or self._voice is None:
                return
            fence = self._claim.fence
            if isinstance(message, Listen) and message.fence == fence:
                self._voice.listen()
            elif isinstance(message, Stop) and message.fence in ("", fence) and not self._stop:
                self._stop = message
                os.write(self._stop_w, b"x")

    def ticket(self, send: Callable[[dict[str, int]], None]) -> None:
        """Answer one ticket: claim whatever comes first, and send on what others should hear."""
        if not self._is_fit():
            return  # a ticket is a hint: others get theirs, and the next tick asks again
        claim = self._ledger.claim(self._slot, owner=self._owner)
        if not isinstance(claim, Claim):
            send(claim)
            return
        voice = Voice(lambda lines: self._ledger.put_log(claim.key, lines))
        with self._guard:
            self._claim, self._stop, self._voice = claim, None, voice
        self._say(claim)
        try:
            with suppress(Unreachable):  # a ticket is a hint, and the next tick makes up for it
                send(claim.tickets)
            self._serve(claim, voice)
        except Interrupted:
            self._give_up(claim)
        except Unfit as error:
            self._unfit(claim, error)
        # The spool takes what we make, so only what a job needs can be away: nothing has begun.
        except (Away, Denied) as error:
            log.warning("%s: put off, %s", claim.key, error)
            with suppress(Unreachable):
                self._ledger.finish(claim, state="LATER", cause=f"store: {error.what}"[:200])
        # Whatever else goes wrong here is ours, not the job's: give the entry back, counted. If the
        # ledger is away as well, the lease runs out by itself.
        except Exception as error:
            log.exception("%s: the attempt broke", claim.key)
            why = error.what if isinstance(error, FarmError) else type(error).__name__
            why = f"store: {why}" if isinstance(error, StoreError) else why
            with suppress(Unreachable):
                self._ledger.finish(claim, state="RETRY", cause=why[:200])
        finally:
            voice.close()
            with self._guard:
                self._claim = self._voice = None
                if self._stop is not None:
                    os.read(self._stop_r, 1)
                    self._stop = None
            self._control.send(Holding())

    def _is_fit(self) -> bool:
        """Tell if the device may be measured on; while it may not, nothing is claimed."""
        trouble = self._ward.trouble()
        self._control.send(Fit(trouble=trouble))
        return not trouble

    def _unfit(self, claim: Claim, error: Unfit) -> None:
        """Hand an entry back for any other device; it was not tried."""
        log.warning("%s: handed back, %s", claim.key, error)
        with suppress(Unreachable):
            if error.fault is not None:  # before its job is free for the next device
                self._ward.report(error.fault, job=claim.key, run=claim.run)
            self._ledger.finish(claim, state="BACK", cause=f"device: {error}"[:200])

    def _give_up(self, claim: Claim) -> None:
        """Say what becomes of an entry whose child was stopped; a lost one is somebody else's."""
        with self._guard:
            why = self._stop.why if self._stop is not None else "release"
        log.warning("%s: stopped, %s", claim.key, why)
        became = ""
        with suppress(Unreachable):  # the lease runs out, and what was asked of the entry holds
            if why == "cancel":
                became = self._ledger.finish(claim, state="CANCELLED", cause="cancelled")
            elif why == "release":
                became = self._ledger.finish(claim, state="RETRY", cause="released", counted=False)
        if became == "CANCELLED" or (why == "cancel" and became != "READY"):
            self._left.clear(claim)

    def _serve(self, claim: Claim, voice: Voice) -> None:
        order = schema.decode(claim.spec.encode(), Order)
        folder = self._left.folder(claim, order)
        stored = self._left.stored(claim.profile_key)
        if stored is not None:
            log.info("%s: found in the store, nothing to measure", claim.key)
            self._end(claim, stored, claim.profile_key)
            return
        if self._waits(claim, order):
            return
        try:
            profile = self._ward.doubted(self._station).measure(
                order,
                run_id=claim.run,
                attempt=claim.attempt,
                fence=int(claim.fence),
                queue_s=claim.waited_ms / 1000,
                folder=folder,
                stop_fd=self._stop_r,
                on_progress=lambda repeat, phase, n: self._say(
                    claim, repeat=repeat, phase=phase, iterations=n
                ),
                on_output=voice.take,
            )
        finally:
            voice.close()  # its last lines are there before the entry ends
        self._keep(claim, profile, folder, effort=effort_id(order))
        self._ward.look_back(claim)

    def _say(self, claim: Claim, **progress: object) -> None:
        said = json.dumps(progress) if progress else ""
        self._control.send(Holding(key=claim.key, fence=claim.fence, progress=said))

    def _waits(self, claim: Claim, order: Order) -> bool:
        """Return whether the profile lies in our spool already; hand it over again then."""
        for each in self._left.waiting(claim, order):
            page = each.parcel
            log.info("%s: waits in the spool, nothing to measure", claim.key)
            try:
                self._spool.rewrite(each.name, msgspec.structs.replace(page, fence=claim.fence))
            except OSError:  # it has just arrived
                stored = self._left.stored(page.sent_as)
                if stored is None:
                    continue
                self._end(claim, stored, page.sent_as)
            else:
                self._hand_over(claim, page)
            return True
        return False

    def _hand_over(self, claim: Claim, page: Parcel) -> str:
        return self._ledger.finish(
            claim,
            state="UPLOADING",
            cause=page.cause,
            profile_key=page.sent_as,
            owner=self._sender,
        )

    def _keep(self, claim: Claim, profile: Profile, folder: Path, *, effort: str) -> None:
        """Write artefacts, card and profile into the spool, then let go of the entry."""
        page, contents = pack(
            profile,
            folder,
            card=self._station.card,
            entry=claim.key,
            fence=claim.fence,
            effort=effort,
            today=self._today(),
        )
        if self._ledger.beat([Held(key=claim.key, fence=claim.fence)]) == ["LOST taken"]:
            log.warning("%s: the lease was taken; this attempt is not stored", claim.key)
            self._left.clear(claim)
            return
        self._spool.write(page, contents)
        if page.entry:
            state = self._hand_over(claim, page)
        else:
            state = self._ledger.finish(claim, state="RETRY", cause=page.cause)
        log.info("%s: %s, %s", claim.key, page.cause, state)
        if page.entry or state == "CANCELLED":
            self._left.clear(claim)  # else the next attempt takes over the repeats that ended

    def _end(self, claim: Claim, profile: Profile, key: str) -> None:
        """End the entry of a profile that lies in the store already."""
        state = self._ledger.finish(
            claim,
            state="FAILED" if profile.status == "failed" else "DONE",
            cause=cause(profile),
            profile_key=key,
        )
        log.info("%s: %s, %s", claim.key, cause(profile), state)
        self._left.clear(claim)


def main(argv: list[str]) -> int:
    """Serve one slot until the agent ends it or is gone."""
    logging.basicConfig(
        level=logging.INFO, format=f"%(asctime)s {argv[1]} %(levelname)s %(message)s"
    )
    control = Control(socket.socket(fileno=int(argv[2])))
    messages = iter(control)
    setup = next(messages, None)
    if not isinstance(setup, Setup):
        return 1
    from importlib.metadata import version

    adopt_orphans()
    worker = SlotWorker(setup, control, version=version("profiling-farm"))
    worker.settle()

    def listen() -> None:
        for message in messages:
            worker.obey(message)
        # The agent is gone. The child hears it through its own lifeline when we go.
        os._exit(1)

    threading.Thread(target=listen, name="control", daemon=True).start()
    app = broker.connect(setup.broker)

    def ticket(_class: str) -> None:
        worker.ticket(lambda wanted: broker.send_tickets(app, wanted))

    app.task(ticket, name=broker.TICKET)
    app.worker_main(
        [
            *("worker", "-P", "threads", "-c", "1", "--loglevel", "WARNING"),
            *("-n", f"{setup.slot.node}-{setup.slot.slot}@farm"),
            *("-Q", ",".join(setup.slot.classes)),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
