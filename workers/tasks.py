"""The slot worker: one process per device, which turns tickets into stored profiles.

Ticket, claim, device lock, repeats, artefacts, profile, finish. The key of the profile goes into
the ledger before the profile goes into the store, so whoever takes over after a crash in between
finds it there and measures nothing twice. Started by the agent: `python -m workers.tasks SLOT FD`.
"""

import json
import logging
import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from farm import broker, identity, schema
from farm.errors import Bad, FarmError, Unreachable
from farm.ledger import Claim, Held, Ledger
from farm.schema import Order, Profile
from farm.store import NotFound, StoreError, open_store, profile_ids, profile_key
from workers.control import Control, Holding, Listen, Setup, Stop
from workers.host import Host
from workers.launch import Ended, launch
from workers.measure import Interrupted
from workers.station import Station, put_artifacts, put_card
from workers.voice import Voice

log = logging.getLogger(__name__)


class SlotWorker:
    """One device's worker: at most one entry in hand, and one child running for it.

    start: runs a child, as `launch` does.
    """

    def __init__(
        self,
        setup: Setup,
        control: Control,
        *,
        version: str,
        start: Callable[..., Ended] = launch,
    ) -> None:
        self._slot, self._owner = setup.slot, setup.owner
        self._control = control
        self._ledger = Ledger(setup.broker)
        self._store = open_store(setup.store)
        self._work = Path(setup.state) / "work"
        self._name = setup.slot.slot.replace(":", "-")
        self._station = Station(
            node=setup.slot.node,
            worker=setup.owner,
            device=setup.device,
            card=setup.card,
            environment=setup.environment,
            flags=tuple(setup.flags),
            cache=Path(setup.state) / "cache",
            lock_dir=Path(setup.lock_dir),
            store=self._store,
            version=version,
            host=Host(),
            start=start,
        )
        self._stop_r, self._stop_w = os.pipe()
        self._stop: Stop | None = None
        self._claim: Claim | None = None
        self._voice: Voice | None = None
        self._guard = threading.Lock()

    def obey(self, message: object) -> None:
        """Do what the agent says; what is said of an entry no longer in hand is old news."""
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
        # Whatever else goes wrong here is ours, not the job's: give the entry back, counted. If the
        # ledger is away as well, the lease runs out by itself.
        except Exception as error:
            log.exception("%s: the attempt broke", claim.key)
            cause = error.what if isinstance(error, FarmError) else type(error).__name__
            cause = f"store: {cause}" if isinstance(error, StoreError) else cause
            with suppress(Unreachable):
                self._ledger.finish(claim, state="RETRY", cause=cause[:200])
        finally:
            voice.close()
            with self._guard:
                self._claim = self._voice = None
                if self._stop is not None:
                    os.read(self._stop_r, 1)
                    self._stop = None
            self._control.send(Holding())

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
            self._clear(claim)

    def _serve(self, claim: Claim, voice: Voice) -> None:
        order = schema.decode(claim.spec.encode(), Order)
        folder = self._folder(claim, order)
        stored = self._stored(claim)
        if stored is not None:
            log.info("%s: found in the store, nothing to measure", claim.key)
            self._end(claim, stored, claim.profile_key)
            return
        try:
            profile = self._station.measure(
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
        self._put(claim, profile, folder)

    def _folder(self, claim: Claim, order: Order) -> Path:
        """Return where the repeats of this job lie: of this slot, this system and this effort.

        What one slot leaves there another must not take over as measured on its own cores.
        """
        effort = identity.short_hash(msgspec.to_builtins(order.effort))
        name = f"{self._name}-{self._station.card.system_id[:8]}-{effort[:8]}"
        return self._work / claim.key / name

    def _clear(self, claim: Claim) -> None:
        """Forget the repeats of a job that has ended, whatever effort they were measured with."""
        for each in (self._work / claim.key).glob(f"{self._name}-*"):
            shutil.rmtree(each, ignore_errors=True)
        with suppress(OSError):  # another slot may be at it
            (self._work / claim.key).rmdir()

    def _say(self, claim: Claim, **progress: object) -> None:
        said = json.dumps(progress) if progress else ""
        self._control.send(Holding(key=claim.key, fence=claim.fence, progress=said))

    def _stored(self, claim: Claim) -> Profile | None:
        """Return the profile that an earlier attempt put before it died, if it did."""
        if not claim.profile_key:
            return None
        named = profile_ids(claim.profile_key)
        try:
            data = self._store.get(claim.profile_key, sha256=named[1] if named else None)
            return schema.decode(data, Profile)
        except (NotFound, Bad):  # it was not put, or cannot be read any more
            return None

    def _put(self, claim: Claim, profile: Profile, folder: Path) -> None:
        """Store artefacts, card and profile in that order, then end the entry."""
        artifacts = put_artifacts(self._store, folder)
        put_card(self._store, self._station.card)
        data = schema.encode(msgspec.structs.replace(profile, artifacts=artifacts))
        day = datetime.now(UTC).date().isoformat()
        key = profile_key(day, profile.job_id, identity.content_id(data))
        answers = profile.status != "infra"  # an infra profile is evidence, not an answer
        held = Held(key=claim.key, fence=claim.fence, profile_key=key if answers else "")
        if self._ledger.beat([held]) == ["LOST taken"]:
            log.warning("%s: the lease was taken; this attempt is not stored", claim.key)
            self._clear(claim)
            return
        self._store.put_new(key, data)
        self._end(claim, profile, key)

    def _end(self, claim: Claim, profile: Profile, key: str) -> None:
        failure = profile.failure
        cause = failure.kind if isinstance(failure, schema.Failure) else "ok"
        if profile.status == "infra":
            state = self._ledger.finish(claim, state="RETRY", cause=cause)
        else:
            ended = "FAILED" if profile.status == "failed" else "DONE"
            state = self._ledger.finish(claim, state=ended, cause=cause, profile_key=key)  # type: ignore[arg-type]
        log.info("%s: %s, %s", claim.key, cause, state)
        if profile.status != "infra" or state == "CANCELLED":
            self._clear(claim)  # else the next attempt takes over the repeats that ended


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

    worker = SlotWorker(setup, control, version=version("profiling-farm"))

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
