"""What people pause and gates take out: who still claims, the valve, the job that is to blame."""

import pytest
import redis
from msgspec import structs

from farm.ledger import Case, Claim, Ledger, Slot
from tests.farm.ledger.moves import claim, entry, slot

pytestmark = pytest.mark.redis


def fleet(ledger: Ledger, count: int) -> list[Slot]:
    """Register so many devices of one class, four to a node."""
    made = [
        structs.replace(slot(f"n{at // 4}"), slot=f"gpu:{at % 4}", system_class="h100")
        for at in range(count)
    ]
    for name in {each.node for each in made}:
        ledger.node(name, state="up", slots=[each for each in made if each.node == name])
    return made


def report(ledger: Ledger, at: Slot, severity: str = "hard", *, job: str = "", cause="xid") -> str:
    case = Case(
        node=at.node,
        slot=at.slot,
        class_=at.system_class,
        severity=severity,
        cause=cause,
        job=job,
        driver="570.1",
    )
    return ledger.quarantine(case, note="Xid 79")


def can_claim(ledger: Ledger, at: Slot) -> bool:
    ledger.submit("r-9", [entry("probe")])
    found = ledger.claim(at, owner=f"{at.node}/{at.slot}#x")
    if isinstance(found, Claim):
        ledger.finish(found, state="RETRY", cause="", counted=False)
    return isinstance(found, Claim)


def test_a_paused_device_claims_nothing_until_it_is_told_to(ledger: Ledger) -> None:
    """Its neighbour goes on; a paused node holds both."""
    one, two = fleet(ledger, 2)

    ledger.hold("n0/gpu:0", "paused", note="swap the fan")
    assert (False, True) == (can_claim(ledger, one), can_claim(ledger, two))
    ledger.hold("n0", "paused", note="window")
    assert (False, False) == (can_claim(ledger, one), can_claim(ledger, two))
    ledger.hold("n0/gpu:0", "unpaused", note="")
    ledger.hold("n0", "unpaused", note="")
    assert (True, True) == (can_claim(ledger, one), can_claim(ledger, two))

    assert [] == ledger.holds()
    assert ["unpaused", "unpaused", "paused", "paused"] == [
        each.kind for each in ledger.health("n0")
    ]
    assert "swap the fan" == ledger.health("n0")[-1].note


def test_what_is_held_outlives_a_node_that_goes(ledger: Ledger) -> None:
    """A restart is no cure."""
    (one, _) = fleet(ledger, 2)
    ledger.hold("n0/gpu:0", "quarantine", note="it smells")

    ledger.node("n0", state="gone")
    (told,) = ledger.node("n0", state="up", slots=[one])

    assert ("n0", "gpu:0", "quarantine", "it smells", "person") == (
        *(told.node, told.slot, told.kind, told.note, told.by),
    )
    assert not can_claim(ledger, one)


def test_a_device_among_many_is_taken_out_at_once(ledger: Ledger) -> None:
    """N17: and no other one suffers; saying it twice takes no second one."""
    slots = fleet(ledger, 20)

    assert "quarantine" == report(ledger, slots[3])
    assert "quarantine" == report(ledger, slots[3])

    assert not can_claim(ledger, slots[3])
    assert can_claim(ledger, slots[4])
    (held,) = ledger.holds()
    assert ("hard", "xid", "node") == (held.severity, held.cause, held.by)
    assert 1 == len(ledger.cases())


@pytest.mark.parametrize(("severity", "rest"), [("hard", "held"), ("soft", "suspect")])
def test_a_storm_stops_at_one_in_ten(ledger: Ledger, severity: str, rest: str) -> None:
    """N18: of 20 two go; hard cases beyond claim nothing, soft ones serve on under a doubt."""
    slots = fleet(ledger, 20)

    found = [report(ledger, each, severity) for each in slots]

    assert ["quarantine"] * 2 + [rest] * 18 == found
    assert (rest == "suspect") == can_claim(ledger, slots[5])
    assert {"quarantine": 2, rest: 18} == {
        kind: sum(each.kind == kind for each in ledger.cases()) for kind in ("quarantine", rest)
    }


@pytest.mark.parametrize(("severity", "kind"), [("hard", "held"), ("soft", "suspect")])
def test_a_lone_device_is_never_taken_out(ledger: Ledger, severity: str, kind: str) -> None:
    (one,) = fleet(ledger, 1)

    assert kind == report(ledger, one, severity)


def test_the_last_device_that_measures_is_not_taken_out(ledger: Ledger) -> None:
    """Whatever stopped the others: here, people did."""
    one, two = fleet(ledger, 2)
    ledger.hold("n0/gpu:1", "paused", note="")

    assert "held" == report(ledger, one)
    assert two.slot == "gpu:1"


def test_the_valve_opens_again_after_an_hour(ledger: Ledger, server: redis.Redis) -> None:
    slots = fleet(ledger, 20)
    assert ["quarantine", "quarantine", "held"] == [report(ledger, each) for each in slots[:3]]

    for name, at in server.zrange("farm:cases", 0, -1, withscores=True):
        server.zadd("farm:cases", {name: at - 3_700_000})

    assert "quarantine" == report(ledger, slots[5])


def test_a_suspect_that_breaks_for_good_is_judged_anew(ledger: Ledger) -> None:
    (one,) = fleet(ledger, 1)
    assert "suspect" == report(ledger, one, "soft")

    assert "held" == report(ledger, one, "hard")
    assert "held" == report(ledger, one, "soft")


def test_what_a_person_cleared_serves_again_and_waits_for_its_node(ledger: Ledger) -> None:
    """Until the node has heard it, so that what it kept goes as well."""
    slots = fleet(ledger, 20)
    report(ledger, slots[0])

    ledger.hold("n0/gpu:0", "cleared", note="new cable")

    assert can_claim(ledger, slots[0])
    assert ["cleared"] == [each.kind for each in ledger.holds()]
    ledger.settle("n0/gpu:0")
    assert [] == ledger.holds()


def test_a_job_that_breaks_three_devices_is_not_tried_again(ledger: Ledger) -> None:
    """Else it would walk through the fleet; a job that was merely nearby goes on."""
    slots = fleet(ledger, 40)
    ledger.submit("r-1", [entry("bad", prio=1), entry("good")])

    ends = []
    for at in slots[:3]:
        held = claim(ledger, f"{at.node}/{at.slot}#a", at)
        report(ledger, at, job=held.key)
        ends.append(ledger.finish(held, state="BACK", cause="device"))

    assert ["READY", "READY", "DEAD"] == ends
    found = {each.key: (each.state, each.cause) for each in ledger.entries("r-1")}
    assert {"bad.base": ("DEAD", "poisoned"), "good.base": ("READY", "submit")} == found


def test_a_poisoned_job_that_a_person_submits_again_is_tried(ledger: Ledger) -> None:
    test_a_job_that_breaks_three_devices_is_not_tried_again(ledger)

    assert ["new"] == ledger.submit("r-2", [entry("bad", prio=1)])

    held = claim(ledger, "n9/gpu:0#a", slot("n9"))
    assert "READY" == ledger.finish(held, state="BACK", cause="busy")


def test_what_is_handed_back_is_no_try(ledger: Ledger) -> None:
    """However often a device is busy just then."""
    ledger.submit("r-1", [entry("a")])

    for _ in range(30):
        assert "READY" == ledger.finish(claim(ledger), state="BACK", cause="busy")

    assert 0 == ledger.entries("r-1")[0].attempt
