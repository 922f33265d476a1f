"""What the ledger holds and says: plain records, and the constants of its states."""

from typing import Final, Literal, get_args

import msgspec
from msgspec import Struct

State = Literal["READY", "RUNNING", "UPLOADING", "BACKOFF", "DONE", "FAILED", "DEAD", "CANCELLED"]
STATES: Final[tuple[State, ...]] = get_args(State)
ENDS: Final = ("DONE", "FAILED", "DEAD", "CANCELLED")
TTL_S: Final = 15.0


class Entry(Struct, frozen=True, kw_only=True):
    """A job in a repeat set on its way into the queue.

    spec: what the slot worker needs to know, as JSON. prio: lower goes first. again: measure
    although it has ended.
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
    """One device as the scheduler sees it: where it is and which classes of work it takes.

    store: the place where its profiles go, as `farm.store.place` says it. version: the agent's.
    trouble: why its device is not fit just now, "" while it is.
    """

    node: str
    slot: str
    classes: list[str]
    device: str
    system_id: str
    system_class: str
    environment: str = ""
    store: str = ""
    version: str = ""
    trouble: str = ""


class Spool(Struct, frozen=True, kw_only=True):
    """What waits on a node for its store, as the node said last.

    age_s: of the oldest profile. aside: profiles that the store cannot take as they are.
    trouble: why nothing goes out just now, "" while it does. is_full: nothing is claimed there.
    """

    profiles: int = 0
    bytes: int = 0
    age_s: float = 0.0
    aside: int = 0
    trouble: str = ""
    is_full: bool = False


class Hold(Struct, frozen=True, kw_only=True):
    """What people or gates say of a device, or of a whole node.

    slot: "" for the node. kind: `paused` and `quarantine` and `held` claim nothing; a `suspect`
    serves on under a doubt; `cleared` is what the node has not heard yet. severity, cause, job: of
    what a gate saw, "" where a person said it. at_ms: by the server's clock.
    """

    node: str
    slot: str
    kind: Literal["paused", "quarantine", "held", "suspect", "cleared"]
    note: str
    by: Literal["node", "person"]
    at_ms: float
    severity: Literal["", "soft", "hard"] = ""
    cause: str = ""
    job: str = ""


class Case(Struct, frozen=True, kw_only=True):
    """A device that a gate wants out. class_: of the system. job: the entry in hand, "" for none.

    kind: what was done about it, as of `Hold`, "" before. at_ms: of ledger time.
    """

    node: str
    slot: str
    class_: str = msgspec.field(name="class")
    severity: Literal["soft", "hard"]
    cause: str
    job: str = ""
    run: str = ""
    driver: str = ""
    kind: str = ""
    at_ms: float = msgspec.field(name="at", default=0.0)


class HealthEvent(Struct, frozen=True, kw_only=True):
    """A change of what is held: target is NODE or NODE/SLOT; by: `node` or `person`."""

    at_ms: float
    target: str
    kind: str
    note: str
    by: str


class Node(Struct, frozen=True, kw_only=True):
    """One machine that gave a sign of life; silent_s: how long ago."""

    name: str
    state: Literal["up", "draining"]
    silent_s: float
    slots: list[Slot]
    spool: Spool = Spool()


class Tick(Struct, frozen=True, kw_only=True):
    woken: int
    reaped: list[str] = []
    tickets: dict[str, int] = {}


class Record(Struct, frozen=True, kw_only=True):
    """One entry as it stands: for people to look at.

    Times are milliseconds of ledger time, which is the server's clock except after it was set.
    started_ms: when the last claim was, None if there was none yet. at_ms: of the last change by
    the server's clock, which is a date even where ledger time stood still.
    """

    key: str
    state: State
    class_: str = msgspec.field(name="class", default="")
    prio: int = 2
    run: str = ""
    attempt: int = 0
    infra: int = 0
    cause: str = ""
    node: str = ""
    owner: str = ""
    progress: str = ""
    profile_key: str = ""
    started_ms: float | None = None
    changed_ms: float = 0.0
    at_ms: float = 0.0


class Event(Struct, frozen=True, kw_only=True):
    """One change of state; run: the one run that it is for, or "" for every run that wants the key.

    id: its place in the stream. at_ms: unix time by the server's clock.
    """

    id: str
    at_ms: float
    key: str
    run: str
    state: State
    attempt: int
    owner: str
    cause: str


class Server(Struct, frozen=True, kw_only=True):
    """What the server behind the ledger says of itself; policy: what it does when it is full."""

    flavour: Literal["redis", "valkey"]
    version: str
    time_s: float
    policy: str
    appendonly: bool
    clients: int
    max_clients: int
