"""What submitters, slot workers and clocks do to a ledger, in a word each."""

import redis

from farm.ledger import Claim, Entry, Held, Ledger, Slot

OWNER = "n1/cpu:0#a"
KEY = "a.base"


def slot(node: str = "n1", *classes: str) -> Slot:
    names = list(classes) or ["hw.cpu", "any"]
    return Slot(
        node=node, slot="cpu:0", classes=names, device="cpu", system_id="s", system_class="c"
    )


def entry(name: str, queue: str = "any", *, again: bool = False, prio: int = 2) -> Entry:
    return Entry(key=f"{name}.base", class_=queue, spec="{}", again=again, prio=prio)


def claim(ledger: Ledger, owner: str = OWNER, at: Slot | None = None) -> Claim:
    found = ledger.claim(at or slot(), owner=owner)
    assert isinstance(found, Claim)
    return found


def running(ledger: Ledger, *runs: str) -> Claim:
    """One entry in hand that these runs want."""
    for run in runs or ("r-1",):
        ledger.submit(run, [entry("a")])
    return claim(ledger)


def nothing_to_claim(ledger: Ledger) -> bool:
    return not isinstance(ledger.claim(slot(), owner="n1/cpu:0#nobody"), Claim)


def beat(ledger: Ledger, held: Claim) -> str:
    (answer,) = ledger.beat([Held(key=held.key, fence=held.fence)])
    return answer


def states(ledger: Ledger, run: str) -> dict[str, str]:
    """What the entries of a run read as; the counters must say the same."""
    found = {each.key.partition(".")[0]: str(each.state) for each in ledger.entries(run)}
    counted = {state: list(found.values()).count(state) for state in found.values()}
    assert counted == ledger.counts(run)
    return found


def let_pass(server: redis.Redis, seconds: float) -> None:
    """Let ledger time pass: the next tick finds leases and back-offs that much older."""
    for name in ("farm:lease", "farm:delay"):
        for key, due in server.zrange(name, 0, -1, withscores=True):
            server.zadd(name, {key: due - 1000 * seconds})
