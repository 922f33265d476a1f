"""Sends what waits in the spool to the store, for as long as it takes.

One thread of the agent. A store that is away, or says no, costs nothing but time: the devices go
on, the entries stay under the node's lease, and what waits goes out when the store is back. An
entry ends only when its profile is in the store.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec

from farm.errors import Bad, FarmError, Refused, Unreachable
from farm.ledger import Held, Ledger
from farm.ledger import Spool as Depth
from farm.store import (
    Denied,
    NotFound,
    Store,
    StoreError,
    Unsupported,
    check_there,
    profile_key,
)
from workers.spool import Goods, Spool, Waiting

log = logging.getLogger(__name__)

MOST_PROFILES: Final = 10_000
MOST_BYTES: Final = 10 << 30
LEAST_FREE_BYTES: Final = 128 << 20
_BACKOFF_S: Final = (1.0, 60.0)
_LEFTOVER_S: Final = 3600.0
_SMALL: Final = 16 << 20


class Uploader:
    """The sending side of a spool.

    store, ledger: its own, used by its thread alone. today: the day of sending, as 2026-11-30.
    """

    def __init__(
        self,
        spool: Spool,
        *,
        store: Store,
        ledger: Ledger,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        today: Callable[[], str] = lambda: datetime.now(UTC).date().isoformat(),
    ) -> None:
        self._spool, self._store, self._ledger = spool, store, ledger
        self._clock, self._rng, self._today = clock, rng or random.Random(), today
        self._guard = threading.Lock()
        self._known: dict[str, Waiting] = {}
        self._stuck: set[str] = set()  # cannot be sent, nor be moved out of the way
        self._lost: set[str] = set()  # fences that are another's now, or that the ledger forgot
        self._trouble = ""
        self._failures = 0
        self._is_ours = False
        self._news, self._ending = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    # ── for the agent ────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin to send, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="uploader", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Say that something may wait."""
        self._news.set()

    def end(self, *, seconds: float) -> None:
        """Send no more; what is under way gets so many seconds. What waits stays for the next."""
        self._ending.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(seconds)
        if self._thread is None or not self._thread.is_alive():
            self._spool.disown()

    def held(self) -> list[Held]:
        """Return the entries that wait for what lies here."""
        self._take_in()  # also what came while the store was away: its lease must not run out
        with self._guard:
            parcels = [each.parcel for each in self._known.values()]
            return [
                Held(key=each.entry, fence=each.fence)
                for each in parcels
                if each.entry and each.fence not in self._lost
            ]

    def told(self, held: Sequence[Held], answers: Sequence[str]) -> None:
        """Take what the ledger answered to a beat for `held`: a lost entry is ended by another."""
        with self._guard:
            lost = zip(held, answers, strict=True)
            self._lost |= {each.fence for each, answer in lost if answer.startswith("LOST")}

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits that could be sent just now."""
        return bool(self._trouble) or not self._take_in()

    def depth(self) -> Depth:
        """Return what waits, for the ledger to show."""
        self._take_in()
        with self._guard:
            known = list(self._known.values())
        size = sum(each.bytes for each in known)
        oldest = min((each.since for each in known), default=None)
        try:
            free, aside = self._spool.free_bytes(), self._spool.aside()
        except OSError:  # said where it is read
            free, aside = 0, 0
        return Depth(
            profiles=len(known),
            bytes=size,
            age_s=0.0 if oldest is None else max(0.0, self._clock() - oldest),
            aside=aside + len(self._stuck),
            trouble=self._trouble,
            is_full=len(known) >= MOST_PROFILES or size >= MOST_BYTES or free < LEAST_FREE_BYTES,
        )

    # ── sending ──────────────────────────────────────────────────────────────────────────────────

    def step(self) -> float:
        """Send what waits, the oldest first; return after how many seconds to look again."""
        try:
            names = self._take_in()
            if names is None:
                return _BACKOFF_S[1]
            for name in names:
                if self._ending.is_set():
                    break
                check_there(self._store)
                self._deliver(name)
        except StoreError as error:
            return self._wait_out(error)
        except Unreachable as error:  # the ledger: nothing is removed before it has heard
            self._say_once(f"the broker is away: {error}")
            return _BACKOFF_S[0]
        if self._trouble:
            log.info("the store is back: nothing is held up any more")
        self._trouble, self._failures = "", 0
        return _BACKOFF_S[0]

    def _take_in(self) -> list[str] | None:
        """Return the names of what waits, the oldest first; none if another agent sends it.

        None if this disk gives nothing: then nobody knows what waits.
        """
        with self._guard:
            try:
                if not self._is_ours and not self._spool.own():
                    return []
                if not self._is_ours:
                    self._spool.sweep(age_s=_LEFTOVER_S)
                self._is_ours = True
                for name in self._spool.names():
                    if name not in self._stuck:
                        self._look_at(name)
            except OSError as error:
                self._say_once(f"the spool cannot be read: {error}")
                return None
            return sorted(self._known)

    def _look_at(self, name: str) -> None:
        """Know a parcel as its page stands; it may have been handed over anew meanwhile."""
        known = self._known.get(name)
        try:
            if known is None or known.stamp != self._spool.stamp(name):
                self._known[name] = self._spool.read(name)
        except (Bad, OSError) as error:
            self._known.pop(name, None)
            self._aside(name, error)

    def _deliver(self, name: str) -> None:
        waiting = self._known[name]
        try:
            waiting = self._spool.read(name)  # a slot worker may have handed it over anew
            key = self._send(waiting)
        # Also a key that no store takes: this one can never arrive, and the others must not wait.
        except (Bad, Refused, ValueError) as error:
            if isinstance(error, Unsupported):  # the store is to blame, not the parcel
                raise
            why = error.what if isinstance(error, FarmError) else str(error)
            self._end(waiting, "RETRY", cause=f"store: {why}"[:200])
            self._aside(name, error)
        else:
            waiting = self._spool.read(name)  # it may have been handed over anew meanwhile
            self._end(waiting, waiting.parcel.end, cause=waiting.parcel.cause, profile_key=key)
            self._spool.remove(name)
        with self._guard:
            self._lost.discard(waiting.parcel.fence)
            self._known.pop(name, None)

    def _send(self, waiting: Waiting) -> str:
        """Put everything, the profile last, and return the key that it lies under."""
        name, parcel = waiting.name, waiting.parcel
        *others, profile = parcel.goods
        for each in others:
            self._put(each.key, name, each)
        key = profile_key(self._today(), parcel.job_id, profile.sha256)
        if parcel.sent_as != key:
            if self._has(parcel.sent_as, profile.sha256):
                return parcel.sent_as  # it went out on another day, and the answer was lost
            try:
                self._spool.rewrite(name, msgspec.structs.replace(parcel, sent_as=key))
                self._promise(waiting, key)
            except OSError:  # a full disk: only what goes out makes room on it
                key = parcel.sent_as
        self._put(key, name, profile)
        return key

    def _put(self, key: str, name: str, goods: Goods) -> None:
        """Put one object. As bytes where it is small: what the store holds already is then compared
        byte by byte, not by what it says of itself.
        """
        path = self._spool.path(name, goods)
        source = path.read_bytes() if goods.bytes <= _SMALL else path
        self._store.put_new(key, source, media_type=goods.media_type)

    def _has(self, key: str, sha256: str) -> bool:
        """Whether the profile lies there. Who may not list is told 403 of what is not (AWS)."""
        try:
            self._store.get(key, sha256=sha256)
        except (NotFound, Bad, Denied):
            return False
        return True

    def _promise(self, waiting: Waiting, key: str) -> None:
        """Tell the ledger where the profile will lie: whoever has the entry next finds it there."""
        parcel = waiting.parcel
        if parcel.entry and parcel.fence not in self._lost:
            held = Held(key=parcel.entry, fence=parcel.fence, profile_key=key)
            with suppress(Unreachable):  # then the profile is measured again at worst
                self.told([held], self._ledger.beat([held]))

    def _end(self, waiting: Waiting, state: str, *, cause: str, profile_key: str = "") -> None:
        parcel = waiting.parcel
        if not parcel.entry or parcel.fence in self._lost:
            return
        held = Held(key=parcel.entry, fence=parcel.fence)
        became = self._ledger.finish(held, state=state, cause=cause, profile_key=profile_key)  # type: ignore[arg-type]
        log.info("%s: %s, %s", parcel.entry, cause, became)

    def _aside(self, name: str, error: Exception) -> None:
        try:
            place = self._spool.set_aside(name, str(error))
        except OSError as trouble:  # then it stays where it is, and the others go past it
            self._stuck.add(name)
            log.error("a profile cannot be sent, %s, nor set aside: %s", error, trouble)
        else:
            log.error("a profile cannot be sent and lies in %s now: %s", place, error)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                pause = self.step()
            # A bug of ours must not end the thread: what waits would wait for ever, and its lease
            # would be kept all the while.
            except Exception as error:
                log.exception("the uploader broke")
                self._say_once(f"a bug of ours: {type(error).__name__}, see the agent's log")
                pause = _BACKOFF_S[1]
            # News of more profiles does not bring a store back, so only an end cuts that wait.
            (self._ending if self._trouble else self._news).wait(pause)
            self._news.clear()

    def _wait_out(self, error: StoreError) -> float:
        self._failures += 1
        self._say_once(str(error))
        least, most = _BACKOFF_S
        if isinstance(error, Denied):
            return most
        pause = min(least * 2.0 ** (self._failures - 1), most)
        return pause * self._rng.uniform(0.75, 1.25)

    def _say_once(self, trouble: str) -> None:
        if trouble != self._trouble:
            log.warning("profiles wait in the spool: %s", trouble)
        self._trouble = trouble
