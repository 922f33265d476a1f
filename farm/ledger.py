"""The state of everything in flight: one record per entry in Redis, changed only by `ledger.lua`.

An *entry* is one job in one repeat set, named `<job_id>.<repeat_set>`. Whoever claims an entry
holds it under a lease with a fencing token; only the holder of the last token can end it. The store
is the truth about what was measured, so all of this may be lost and `farm resume` rebuilds it.

farm:meta            ledger clock, last fence, sequence     farm:lease          key|fence → expiry
farm:j:<key>         the record of an entry                 farm:own:<owner>    entries of an owner
farm:r:<class>       READY entries, next first              farm:delay, :dead   backoff, given up
farm:classes         classes with READY entries             farm:node:<node>    slots, heartbeat
farm:jr:<key>        runs that want an entry                farm:run:<run>      count per state
farm:rj:<run>        entries of a run                       farm:ev             every transition
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import redis
from msgspec import Struct

from farm.errors import Unreachable

if TYPE_CHECKING:
    from redis.commands.core import Script

State = Literal["READY", "RUNNING", "BACKOFF", "DONE", "FAILED", "DEAD", "CANCELLED"]
ENDS: Final = ("DONE", "FAILED", "DEAD", "CANCELLED")
TTL_S: Final = 15.0
BATCH: Final = 100  # entries per script call, so that none holds the server for 10 ms


class Entry(Struct, frozen=True, kw_only=True):
    """A job in a repeat set on its way into the queue.

    spec: what the slot worker needs to know, as JSON. again: measure although it has ended.
    """

    key: str
    class_: str = msgspec.field(name="class")
    spec: str
    prio: int = 2
    again: bool = False


class Claim(Struct, frozen=True, kw_only=True):
    """An entry under our lease. fence is unique and rises; it alone decides who may end it."""

    key: str
    fence: str
    spec: str
    run: str
    attempt: int
    profile_key: str
    waited_ms: float
    tickets: dict[str, int] = {}


class Held(Struct, frozen=True, kw_only=True):
    key: str
    fence: str
    progress: str = ""
    profile_key: str = ""


class Slot(Struct, frozen=True, kw_only=True):
    """One device as the scheduler sees it: where it is and which classes of work it takes."""

    node: str
    slot: str
    classes: list[str]
    device: str
    system_id: str
    system_class: str
    environment: str = ""


class Tick(Struct, frozen=True, kw_only=True):
    woken: int
    reaped: list[str] = []
    tickets: dict[str, int] = {}


class Record(Struct, frozen=True, kw_only=True):
    """One entry as it stands: for people to look at."""

    key: str
    state: State
    attempt: int
    infra: int
    cause: str
    node: str
    owner: str
    progress: str
    profile_key: str


class Ledger:
    """The one door to Redis. Every method is one atomic script call unless it only reads.

    Raises Unreachable when the server cannot be reached, refuses us or is not ours to use.
    """

    def __init__(self, url: str, *, ttl_s: float = TTL_S) -> None:
        self.ttl_s = ttl_s
        self._redis = redis.Redis.from_url(
            url, decode_responses=True, socket_timeout=30, health_check_interval=10
        )
        source = (Path(__file__).parent / "ledger.lua").read_text()
        self._script: Script = self._redis.register_script(source)

    def setup(self) -> None:
        """Settle the lease time of this farm, and with it that the server answers."""
        self._call("setup", {"ttl_ms": round(self.ttl_s * 1000)})

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._redis.close()

    def submit(self, run: str, entries: Sequence[Entry]) -> list[str]:
        """Arm each entry and attach the run: `new`, `shared` (in flight), `known` (ended)."""
        verdicts: list[str] = []
        for start in range(0, len(entries), BATCH):
            batch = [msgspec.to_builtins(each) for each in entries[start : start + BATCH]]
            verdicts += self._call("submit", {"run": run, "entries": batch})
        return verdicts

    def claim(self, slot: Slot, *, owner: str) -> Claim | dict[str, int]:
        """Return the next entry under a fresh lease, or the tickets that are wanted instead."""
        found = self._call("claim", {"owner": owner, "node": slot.node, "classes": slot.classes})
        if "none" in found:
            return dict(found.get("tickets") or {})
        return msgspec.convert({**found, "tickets": found["tickets"] or {}}, Claim)

    def beat(self, held: Sequence[Held]) -> list[str]:
        """Renew each lease: `OK`, `LOST taken`, or `LOST unknown` after a loss of Redis."""
        if not held:
            return []
        return list(self._call("beat", {"held": [msgspec.to_builtins(each) for each in held]}))

    def finish(
        self,
        claim: Claim,
        *,
        state: Literal["DONE", "FAILED", "RETRY"],
        cause: str,
        profile_key: str = "",
        counted: bool = True,
    ) -> str:
        """End our attempt; return the entry's new state, or `STALE` if the lease was lost."""
        return str(
            self._call(
                "finish",
                {
                    "key": claim.key,
                    "fence": claim.fence,
                    "state": state,
                    "cause": cause,
                    "profile_key": profile_key,
                    "counted": counted,
                },
            )
        )

    def release(self, owner: str, *, cause: str, counted: bool) -> dict[str, str]:
        """Give back every entry of an owner that is no more; return their new states."""
        return dict(
            self._call("release", {"owner": owner, "cause": cause, "counted": counted}) or {}
        )

    def owners(self, node: str) -> list[str]:
        """Return the owners on a node that still hold a lease, living or not."""
        return list(self._call("owners", {"node": node}) or [])

    def withdraw(self, run: str) -> list[str]:
        """Detach a run from what has not ended; what no other run wants is `cancelled`."""
        with _reaching():
            keys = sorted(self._redis.smembers(f"farm:rj:{run}"))
        verdicts: list[str] = []
        for start in range(0, len(keys), BATCH):
            verdicts += self._call("withdraw", {"run": run, "keys": keys[start : start + BATCH]})
        return verdicts

    def tick(self) -> Tick:
        """Move the ledger clock, reap what nobody renews, wake what is due, count tickets."""
        found = self._call("tick", {})
        return Tick(
            woken=int(found["woken"]),
            reaped=list(found["reaped"] or []),
            tickets=dict(found["tickets"] or {}),
        )

    def lead(self, who: str) -> bool:
        """Take or keep the lead of the tick; it falls to another after a third of a lease."""
        key, life = "farm:lead:tick", round(self.ttl_s / 3 * 1000)
        with _reaching():
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
    ) -> None:
        """Register a node with its slots, or renew its heartbeat, or take it off the list."""
        change: dict[str, Any] = {"node": name, "state": state}
        if slots is not None:
            change["slots"] = msgspec.json.encode(slots).decode()
            change["classes"] = sorted({each for slot in slots for each in slot.classes})
        self._call("node", change)

    def slots(self) -> list[Slot]:
        """Return every slot of every node that gave a sign of life within a lease."""
        return msgspec.convert(self._call("slots", {}) or [], list[Slot])

    def forget(self) -> None:
        """Drop all run state; for a ledger whose users are gone, since the store is the truth."""
        with _reaching():
            for pattern in ("farm:*", "farmq:*"):
                for key in self._redis.scan_iter(pattern):
                    self._redis.delete(key)

    def counts(self, run: str) -> dict[str, int]:
        """Return how many entries of a run are in each state; {} for a run unknown here."""
        with _reaching():
            found = self._redis.hgetall(f"farm:run:{run}")
        return {str(state): int(count) for state, count in found.items() if int(count)}

    def entries(self, run: str) -> list[Record]:
        """Return the record of every entry of a run, by key."""
        fields = ("state", "attempt", "infra", "cause", "node", "owner", "progress", "profile_key")
        with _reaching():
            keys = sorted(str(key) for key in self._redis.smembers(f"farm:rj:{run}"))
            pipe = self._redis.pipeline(transaction=False)
            for key in keys:
                pipe.hmget(f"farm:j:{key}", fields)
            rows = pipe.execute()
        records = []
        for key, row in zip(keys, rows, strict=True):
            plain = {name: each or "" for name, each in zip(fields, row, strict=True)}
            if plain["state"]:
                records.append(msgspec.convert({"key": key, **plain}, Record, strict=False))
        return records

    def _call(self, operation: str, arguments: dict[str, Any]) -> Any:
        with _reaching():
            answer = self._script(args=[operation, json.dumps(arguments)])
        return json.loads(answer)["answer"]


@contextmanager
def _reaching() -> Iterator[None]:
    """Turn the library's connection errors into ours, wherever a call stands."""
    try:
        yield
    except redis.exceptions.AuthenticationError as error:
        raise Unreachable("the broker refuses our credentials", why=str(error)) from error
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
        raise Unreachable("the broker cannot be reached", why=str(error)) from error
