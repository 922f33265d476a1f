"""What the ledger says to people and schedulers: reads only, without a script."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from farm.ledger.records import STATES, TTL_S, Event, Node, Record, Server, Slot, Spool
from farm.ledger.wire import connect, reaching

_FIELDS: Final = (
    *("class", "prio", "run", "state", "attempt", "infra", "cause", "node", "owner"),
    *("progress", "profile_key", "started", "changed", "at"),
)
_RENAMED: Final = {"started": "started_ms", "changed": "changed_ms", "at": "at_ms"}
_BLOCK_MAX_S: Final = 20.0  # below the time after which an answer counts as lost


class Views:
    """The reading half of the ledger.

    Raises Unreachable when the server cannot be reached, refuses us or is not ours to use.
    """

    def __init__(self, url: str, *, ttl_s: float = TTL_S) -> None:
        self.ttl_s = ttl_s
        self._url = url
        self._redis = connect(url)

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._redis.close()

    # ── runs and entries ─────────────────────────────────────────────────────────────────────────

    def counts(self, run: str) -> dict[str, int]:
        """Return how many entries of a run are in each state; {} for a run unknown here."""
        with reaching():
            found = self._redis.hmget(f"farm:run:{run}", STATES)
        return {state: int(n) for state, n in zip(STATES, found, strict=True) if n and int(n)}

    def keys(self, run: str) -> list[str]:
        """Return the keys of a run's entries, sorted; also of those that it has let go of."""
        with reaching():
            return sorted(str(key) for key in self._redis.hkeys(f"farm:rj:{run}"))

    def entries(self, run: str) -> list[Record]:
        """Return the record of every entry of a run, by key.

        One that others went on with reads as it was when the run was done with it: CANCELLED if it
        was cancelled, or with the end that it had before another run asked for it anew.
        """
        with reaching():
            found = self._redis.hgetall(f"farm:rj:{run}")
        kept = [_record(str(key), msgspec.json.decode(row)) for key, row in found.items() if row]
        live = self.records([str(key) for key, row in found.items() if not row])
        return sorted([*kept, *live], key=lambda each: each.key)

    def records(self, keys: Sequence[str]) -> list[Record]:
        """Return the records of those of the entries that exist, in order."""
        pipe = self._redis.pipeline(transaction=False)
        for key in keys:
            pipe.hmget(f"farm:j:{key}", _FIELDS)
        with reaching():
            rows = pipe.execute()
        found = (dict(zip(_FIELDS, row, strict=True)) for row in rows)
        return [_record(key, row) for key, row in zip(keys, found, strict=True) if row["state"]]

    def running(self) -> list[Record]:
        """Return the entries under a lease, by key."""
        with reaching():
            leases = self._redis.zrange("farm:lease", 0, -1)
        found = self.records(sorted(str(each).rpartition("|")[0] for each in leases))
        return [each for each in found if each.state == "RUNNING"]  # one may have ended meanwhile

    def ready(self) -> dict[str, int]:
        """Return how many entries wait in each class where some do."""
        with reaching():
            classes = sorted(str(each) for each in self._redis.smembers("farm:classes"))
            pipe = self._redis.pipeline(transaction=False)
            for each in classes:
                pipe.zcard(f"farm:r:{each}")
            counts = pipe.execute()
        return {each: int(n) for each, n in zip(classes, counts, strict=True) if n}

    def open_runs(self) -> list[str]:
        """Return the runs that were submitted and not closed, in the order of joining."""
        with reaching():
            return [str(run) for run in self._redis.zrange("farm:open", 0, -1)]

    def resubmitted(self, run: str) -> int:
        """Return how often what a run lacked at its end went into the queue again."""
        with reaching():
            return int(self._redis.hget(f"farm:run:{run}", "resubmitted") or 0)

    # ── events ───────────────────────────────────────────────────────────────────────────────────

    def last_event(self) -> str:
        """Return the id of the newest event, "0-0" if there is none."""
        with reaching():
            found = self._redis.xrevrange("farm:ev", count=1)
        return str(found[0][0]) if found else "0-0"

    def events(self, after: str, *, block_s: float = 0.0, count: int = 1000) -> list[Event]:
        """Return the events behind this id, the oldest first and at most count.

        If there is none yet, the first of them is waited for: block_s long, 20 s at most.
        """
        rows = self._read("farm:ev", after, block_s=block_s, count=count)
        return [
            msgspec.convert(
                {"id": id_, "at_ms": float(id_.partition("-")[0]), **fields}, Event, strict=False
            )
            for id_, fields in rows
        ]

    def is_trimmed(self, after: str) -> bool:
        """Say if events behind this id may be gone, so that only a new snapshot is complete.

        That is so after a loss of Redis as well, when the id is of a stream that is no more.
        """
        with reaching():
            oldest = self._redis.xrange("farm:ev", count=1)
            newest = self._redis.xrevrange("farm:ev", count=1)
            if not oldest or not newest:
                return after != "0-0"
            if after != "0-0":
                return not _order(oldest[0][0]) <= _order(after) <= _order(newest[0][0])
            told = self._redis.xinfo_stream("farm:ev")
        return int(told["entries-added"]) > int(told["length"])

    def log(self, key: str, *, after: str = "0-0", block_s: float = 0.0) -> list[tuple[str, str]]:
        """Return lines of a running job behind this id, each with its own; waits as events do."""
        rows = self._read(f"farm:log:{key}", after, block_s=block_s)
        return [(id_, fields["line"]) for id_, fields in rows]

    def _read(
        self, stream: str, after: str, *, block_s: float, count: int | None = None
    ) -> list[tuple[str, dict[str, str]]]:
        block = round(1000 * min(block_s, _BLOCK_MAX_S)) or None  # 0 would wait for ever
        with reaching():
            found: Any = self._redis.xread({stream: after}, count=count, block=block)
        return list(found[0][1]) if found else []

    # ── the farm ─────────────────────────────────────────────────────────────────────────────────

    def nodes(self) -> list[Node]:
        """Return every node that gave a sign of life within a lease, by name.

        Silence is measured by ledger time and by the server's clock, and the longer one counts:
        while nobody ticks, ledger time stands still and would let the dead live for ever.
        """
        with reaching():
            names = sorted(str(name) for name in self._redis.smembers("farm:nodes"))
            pipe = self._redis.pipeline(transaction=False)
            pipe.info("server")
            pipe.hmget("farm:meta", "last", "ttl")
            for name in names:
                pipe.hgetall(f"farm:node:{name}")
            server, (last, ttl_ms), *rows = pipe.execute()
        server_ms, ledger_ms = int(server["server_time_usec"]) / 1000, float(last or 0)
        found = [
            _node(name, row, server_ms=server_ms, ledger_ms=ledger_ms)
            for name, row in zip(names, rows, strict=True)
            if row
        ]
        ttl_s = float(ttl_ms) / 1000 if ttl_ms else self.ttl_s
        return [each for each in found if each.silent_s < ttl_s]

    def slots(self) -> list[Slot]:
        """Return every slot of every node that gave a sign of life within a lease."""
        return [slot for node in self.nodes() for slot in node.slots]

    def owners(self, node: str) -> list[str]:
        """Return the owners on a node that still hold a lease, living or not."""
        return sorted({e.owner for e in self.running() if e.owner.partition("/")[0] == node})

    def leader(self, what: str = "tick") -> str:
        """Return who leads, "" if nobody does."""
        with reaching():
            return str(self._redis.get(f"farm:lead:{what}") or "")

    def server(self) -> Server:
        """Return what the server says of itself; no right beyond INFO is needed."""
        with reaching():
            told = self._redis.info()
            return Server(
                flavour="valkey" if "valkey_version" in told else "redis",
                version=str(told.get("valkey_version") or told["redis_version"]),
                time_s=int(told["server_time_usec"]) / 1e6,
                policy=str(told["maxmemory_policy"]),
                appendonly=bool(int(told["aof_enabled"])),
                clients=int(told["connected_clients"]),
                max_clients=int(told["maxclients"]),
            )


def _record(key: str, row: dict[str, Any]) -> Record:
    """Return a record from the fields that the server holds of it."""
    told = {_RENAMED.get(name, name): value for name, value in row.items() if value is not None}
    return msgspec.convert({"key": key, **told}, Record, strict=False)


def _node(name: str, row: dict[str, str], *, server_ms: float, ledger_ms: float) -> Node:
    # An agent of an older version tells ledger time alone.
    seen, heartbeat = float(row.get("seen", server_ms)), float(row["heartbeat"])
    return Node(
        name=name,
        state=row["state"],  # type: ignore[arg-type]
        silent_s=max(0.0, server_ms - seen, ledger_ms - heartbeat) / 1000,
        slots=msgspec.json.decode(row.get("slots", "[]"), type=list[Slot]),
        spool=msgspec.json.decode(row.get("spool", "{}"), type=Spool),
    )


def _order(id_: object) -> tuple[int, int]:
    milliseconds, _, number = str(id_).partition("-")
    return int(milliseconds), int(number)
