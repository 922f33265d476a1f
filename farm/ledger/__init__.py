"""The state of everything in flight: one record per entry in Redis, changed only by `ledger.lua`.

An *entry* is one job in one repeat set, named `<job_id>.<repeat_set>`. Whoever claims an entry
holds it under a lease with a fencing token; only the holder of the last token can end it. The store
is the truth about what was measured, so all of this may be lost and `farm resume` rebuilds it.

farm:meta            ledger clock, last fence, sequence     farm:lease          key|fence → expiry
farm:j:<key>         the record of an entry                 farm:own:<owner>    entries of an owner
farm:r:<class>       READY entries, next first              farm:delay, :dead   backoff, given up
farm:classes         classes with READY entries             farm:node:<node>    slots, life, spool
farm:jr:<key>        runs that want an entry                farm:run:<run>      count per state
farm:jc:<key>        those of them that want no retry       farm:open           runs not yet closed
farm:rj:<run>        entries of a run → "", or what it      farm:ev             every transition
                     kept when it was done with one         farm:log:<key>      lines of a child
farm:lead:<what>     who leads                              farm:tell:<node>    channel to a node
farm:hold            what people and gates hold back        farm:health         its history
farm:cases           devices that gates wanted out
"""

from farm.ledger.door import Ledger
from farm.ledger.records import (
    ENDS,
    STATES,
    TTL_S,
    Case,
    Claim,
    Entry,
    Event,
    HealthEvent,
    Held,
    Hold,
    Node,
    Record,
    Server,
    Slot,
    Spool,
    State,
    Tick,
)
from farm.ledger.wire import Ears

__all__ = [
    "ENDS",
    "STATES",
    "TTL_S",
    "Case",
    "Claim",
    "Ears",
    "Entry",
    "Event",
    "HealthEvent",
    "Held",
    "Hold",
    "Ledger",
    "Node",
    "Record",
    "Server",
    "Slot",
    "Spool",
    "State",
    "Tick",
]
