"""The changing half of the ledger: what happens to an entry is one atomic call of the script."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from farm.ledger.holds import Holds, held_of
from farm.ledger.records import Claim, Entry, Held, Hold, Slot, Spool, Tick
from farm.ledger.wire import Ears, reaching

BATCH: Final = 100  # entries per script call, so that none holds the server for 10 ms
_LOG_LINES: Final = 2000
_LOG_S: Final = 120


class Ledger(Holds):
    """The one door to Redis. Whatever changes an entry is one atomic call of the script.

    Raises Unreachable when the server cannot be reached, refuses us or is not ours to use.
    """

    def setup(self) -> None:
        """Settle the lease time of this farm, and with it that the server answers."""
        self._call("setup", {"ttl_ms": round(self.ttl_s * 1000)})

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────

    def submit(self, run: str, entries: Sequence[Entry], *, here: bool = False) -> list[str]:
        """Arm each entry and attach the run: `new`, `shared` (in flight), `known` (ended).

        A shared entry is no longer cancelled and has the better priority of both. A new one belongs
        to this run; others that had it in an earlier life keep what they had. here: the command
        that submits follows the run itself; else the run is listed as open.
        """
        verdicts: list[str] = []
        for batch in _batches(entries):
            told = [msgspec.to_builtins(each) for each in batch]
            verdicts += self._call("submit", {"run": run, "entries": told, "here": here})
        return verdicts

    def cancel(self, run: str, keys: Sequence[str], *, running: bool) -> list[str]:
        """Let a run go of entries; return what became of each, in order.

        `cancelled`: it waited, and nobody else wants it. `shared`: another run does, so it goes on
        without this one, for which it is CANCELLED. `asked`: it runs, and with running its node is
        told to end it. `running`: it goes on and its result counts, but it is not tried again.
        Else the end state that it has for the run, or `unknown` if the run never wanted it.
        """
        verdicts: list[str] = []
        for batch in _batches(keys):
            verdicts += self._call("cancel", {"run": run, "keys": batch, "running": running})
        return verdicts

    def withdraw(self, run: str) -> list[str]:
        """Let a run go of all that has not ended, as cancel does; jobs in hand go on."""
        return self.cancel(run, self.keys(run), running=False)

    def note_resubmission(self, run: str) -> int:
        """Count that what a run lacked at its end is submitted again; return how often by now."""
        return int(self._call("note_resubmission", {"run": run}))

    def close_run(self, run: str) -> None:
        """Take a run whose end was checked off the list of open ones."""
        with reaching():
            self._redis.zrem("farm:open", run)

    def forget(self) -> list[str]:
        """Drop all run state, for a ledger whose users are gone; return the runs that were open.

        Nothing of worth is lost: the store is the truth.
        """
        dropped = self.open_runs()
        with reaching():
            for pattern in ("farm:*", "farmq:*"):
                for key in self._redis.scan_iter(pattern):
                    self._redis.delete(key)
        return dropped

    # ── attempts ─────────────────────────────────────────────────────────────────────────────────

    def claim(self, slot: Slot, *, owner: str) -> Claim | dict[str, int]:
        """Return the next entry under a fresh lease, or the tickets that are wanted instead."""
        where = {"node": slot.node, "slot": slot.slot, "classes": slot.classes}
        found = self._call("claim", {"owner": owner, **where})
        if "none" in found:
            return dict(found.get("tickets") or {})
        return msgspec.convert({**found, "tickets": found["tickets"] or {}}, Claim)

    def beat(self, held: Sequence[Held]) -> list[str]:
        """Renew each lease: `OK`, `LOST taken`, or `LOST unknown` after a loss of Redis.

        `CANCEL` is an `OK` that asks to end the child: nobody waits for it any more.
        """
        answers: list[str] = []
        for batch in _batches(held):
            answers += self._call("beat", {"held": [msgspec.to_builtins(each) for each in batch]})
        return answers

    def finish(
        self,
        held: Claim | Held,
        *,
        state: Literal["UPLOADING", "DONE", "FAILED", "RETRY", "LATER", "BACK", "CANCELLED"],
        cause: str,
        profile_key: str = "",
        counted: bool = True,
        owner: str = "",
    ) -> str:
        """End our attempt; return the entry's new state, or `STALE` if the lease was lost.

        UPLOADING hands the lease to `owner`, which beats for it and ends the entry. LATER: nothing
        of the attempt has begun, so it is tried in half a minute and is no try; BACK: likewise, and
        at once, for it was our device alone that could not. CANCELLED says that
        the child was ended because nobody waited for it; if a run has asked for the entry since, it
        goes back into the queue uncounted.
        """
        told = {
            **{"state": state, "cause": cause, "profile_key": profile_key},
            **{"counted": counted, "owner": owner},
        }
        return str(self._call("finish", {"key": held.key, "fence": held.fence, **told}))

    def release(self, owner: str, *, cause: str, counted: bool) -> dict[str, str]:
        """Give back every entry of an owner that is no more; return their new states."""
        return dict(
            self._call("release", {"owner": owner, "cause": cause, "counted": counted}) or {}
        )

    # ── the farm ─────────────────────────────────────────────────────────────────────────────────

    def tick(self) -> Tick:
        """Move the ledger clock, reap what nobody renews, wake what is due, count tickets."""
        found = self._call("tick", {})
        return Tick(
            woken=int(found["woken"]),
            reaped=list(found["reaped"] or []),
            tickets=dict(found["tickets"] or {}),
        )

    def lead(self, who: str, *, what: str = "tick") -> bool:
        """Take or keep the lead; it falls to another after a third of a lease."""
        key, life = f"farm:lead:{what}", round(self.ttl_s / 3 * 1000)
        with reaching():
            if self._redis.set(key, who, nx=True, px=life):
                return True
            if self._redis.get(key) != who:
                return False
            self._redis.pexpire(key, life)
            return True

    def node(
        self,
        name: str,
        *,
        state: Literal["up", "draining", "gone"],
        slots: Sequence[Slot] | None = None,
        spool: Spool | None = None,
    ) -> list[Hold]:
        """Register a node with its slots, or renew its heartbeat, or take it off the list.

        Return what is held of it and its devices. While its spool is full nothing is claimed there.
        """
        change: dict[str, Any] = {"node": name, "state": state}
        if spool is not None:
            change["spool"] = msgspec.json.encode(spool).decode()
            change["full"] = spool.is_full
        if slots is not None:
            change["slots"] = msgspec.json.encode(slots).decode()
            change["classes"] = sorted({each for slot in slots for each in slot.classes})
        return held_of(self._call("node", change))

    # ── between people and a running job ─────────────────────────────────────────────────────────

    def tell(self, node: str, message: dict[str, str]) -> None:
        """Say something to a node; it is lost if the node does not listen at this moment."""
        with reaching():
            self._redis.publish(f"farm:tell:{node}", json.dumps(message))

    def listen(self, node: str) -> Ears:
        """Return ears for what is said to a node from now on."""
        return Ears(self._url, f"farm:tell:{node}")

    def ask_log(self, key: str) -> bool:
        """Ask for the lines of a running job; False, and nothing is asked, if it does not run."""
        with reaching():
            row = self._redis.hmget(f"farm:j:{key}", "state", "node", "fence")
        state, node, fence = (str(each or "") for each in row)
        if state != "RUNNING":
            return False
        self.tell(node, {"do": "log", "key": key, "fence": fence})
        return True

    def put_log(self, key: str, lines: Sequence[str]) -> None:
        """Show lines of a running job to who follows it, for two minutes and the last 2,000."""
        pipe = self._redis.pipeline()
        for line in lines:
            pipe.xadd(f"farm:log:{key}", {"line": line}, maxlen=_LOG_LINES)
        pipe.expire(f"farm:log:{key}", _LOG_S)
        with reaching():
            pipe.execute()


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
