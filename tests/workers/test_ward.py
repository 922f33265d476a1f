"""A device over time: out by its gates, kept out over restarts, back by a person."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from farm.errors import Unreachable
from farm.ledger import Case, Hold, Ledger, Slot
from tests.workers import make
from tests.workers.agents import SLOT
from tests.workers.posts import Post
from workers.control import Judged, Setup
from workers.guard import Guard, Manner
from workers.ward import Ward

pytestmark = pytest.mark.redis

TARGET = "n1/gpu:0"
SLOTS = [
    msgspec.structs.replace(SLOT, slot=f"gpu:{at}", classes=[f"dev.n1.{at}", "any"])
    for at in range(20)
]


class Bed:
    """A ledger with 20 devices of a class, and the first of them under a ward."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.ledger = Ledger(url)
        self.ledger.setup()
        self.ledger.node("n1", state="up", slots=SLOTS)
        self.post = Post(folder)
        self.now_s = 0.0
        self.ward = self.started()

    def started(self, *, with_sentry: bool = True, ledger: Any = None) -> Ward:
        """Return a ward as a slot worker has it that has just been started."""
        setup = Setup(
            slot=SLOTS[0],
            owner="n1/gpu:0#a",
            device=make.device(),
            card=make.card(),
            environment="default",
            broker=self.url,
            store="",
            state=str(self.folder / "state"),
            spool="",
            lock_dir="",
            flags=[],
        )
        guard = Guard(self.post.sentry, Manner()) if with_sentry else None
        return Ward(setup, ledger or self.ledger, guard, clock=lambda: self.now_s)

    def look(self) -> str:
        """The trouble some time later."""
        self.now_s += 6
        return self.ward.trouble()

    def beat(self) -> None:
        """What an agent passes on."""
        held = {each.slot: each for each in self.ledger.node("n1", state="up", slots=SLOTS)}
        told = held.get("gpu:0")
        said = Judged(kind=told.kind, note=told.note, by=told.by) if told else Judged()
        self.ward.hear(said)

    def holds(self) -> list[Hold]:
        return self.ledger.holds()


@pytest.fixture
def bed(tmp_path: Path, redis_url: str) -> Iterator[Bed]:
    made = Bed(tmp_path, redis_url)
    yield made
    made.ledger.close()


def test_a_quiet_device_has_no_trouble(bed: Bed) -> None:
    assert "" == bed.look()
    bed.beat()
    assert [] == bed.holds()


def test_a_busy_device_is_looked_at_again_every_five_seconds(bed: Bed) -> None:
    bed.post.fault(readings={"utilization_pct": 90})
    assert "device_idle: it is busy to 90 %" == bed.look()
    bed.post.heal()

    assert "device_idle: it is busy to 90 %" == bed.ward.trouble()  # not yet
    assert "" == bed.look()
    assert [] == bed.holds()


def test_a_broken_device_is_out_and_a_restart_is_no_cure(bed: Bed) -> None:
    bed.post.fault(xids=[79])
    assert "xid: Xid 79" == bed.look()

    (held,) = bed.holds()
    assert ("quarantine", "hard", "xid", "xid: Xid 79") == (
        *(held.kind, held.severity, held.cause, held.note),
    )
    bed.post = Post(bed.folder / "again")
    bed.ward = bed.started()
    assert "quarantine: xid: Xid 79" == bed.look()
    bed.beat()
    assert "quarantine: xid: Xid 79" == bed.look()


def test_who_cleared_it_lets_it_serve_again(bed: Bed) -> None:
    bed.post.fault(xids=[79])
    bed.look()
    bed.post.heal()

    bed.ledger.hold(TARGET, "cleared", note="new cable")
    bed.beat()

    assert "" == bed.look()
    assert [] == bed.holds()


def test_a_fault_that_is_still_there_takes_it_out_again(bed: Bed) -> None:
    bed.post.fault(readings={"ecc_uncorrected": 1})
    bed.look()

    bed.ledger.hold(TARGET, "cleared", note="looks fine")
    bed.beat()

    assert bed.look().startswith("ecc_uncorrected")
    assert ["quarantine"] == [each.kind for each in bed.holds()]


def test_what_is_cleared_on_the_machine_the_farm_hears(bed: Bed) -> None:
    """`farm-worker devices --clear` writes the file, beside the worker that runs."""
    bed.post.fault(xids=[79])
    bed.look()
    bed.post.heal()

    bed.ward._health.clear("reseated")
    bed.beat()
    bed.beat()

    assert [] == bed.holds()
    assert "" == bed.look()
    assert ["cleared", "quarantine"] == [each.kind for each in bed.ledger.health("n1")]
    assert "reseated" == bed.ledger.health("n1")[0].note


def test_a_farm_that_lost_everything_hears_of_it_again(bed: Bed, redis_url: str) -> None:
    bed.post.fault(xids=[79])
    bed.look()

    redis.Redis.from_url(redis_url).flushall()
    bed.beat()
    bed.look()

    assert ["quarantine"] == [each.kind for each in bed.holds()]


def test_a_farm_that_is_away_is_asked_as_soon_as_it_answers(bed: Bed) -> None:
    """Meanwhile the device is out all the same."""

    class Away:
        def quarantine(self, *_: Any, **__: Any) -> str:
            raise Unreachable("the broker is away")

    bed.ward = bed.started(ledger=Away())
    bed.post.fault(xids=[79])
    assert "xid: Xid 79" == bed.look()
    assert [] == bed.holds()

    bed.ward = bed.started()
    assert "quarantine: xid: Xid 79" == bed.look()
    assert ["quarantine"] == [each.kind for each in bed.holds()]


def test_what_the_valve_keeps_in_serves_on_as_a_suspect(bed: Bed) -> None:
    for at in SLOTS[5:7]:
        bed.ledger.quarantine(_case(at), note="x")
    bed.post.sentry.ready()
    bed.post.fault(readings={"pcie_replays": 1_000_000})
    bed.post.sentry.closed(None)

    bed.look()

    assert "" == bed.look()
    assert bed.ward.is_suspect
    assert {"suspect"} == {each.kind for each in bed.holds() if each.slot == "gpu:0"}


def test_what_a_person_took_out_is_nothing_that_it_suffers_from(bed: Bed) -> None:
    """The farm hands it no job; the machine has no part in it."""
    bed.ledger.hold(TARGET, "quarantine", note="it smells")
    bed.beat()

    assert "" == bed.look()
    assert ["quarantine"] == [each.kind for each in bed.holds()]
    bed.ledger.hold(TARGET, "cleared", note="")
    bed.beat()
    assert [] == bed.holds()


def test_a_cpu_slot_has_no_gates_of_a_gpu_and_can_be_taken_out(bed: Bed) -> None:
    bed.ward = bed.started(with_sentry=False)

    assert "" == bed.look()
    bed.ledger.hold(TARGET, "quarantine", note="")
    bed.beat()
    bed.ledger.hold(TARGET, "cleared", note="")
    bed.beat()
    assert [] == bed.holds()


def _case(at: Slot) -> Case:
    return Case(
        node=at.node, slot=at.slot, class_=at.system_class, severity="soft", cause="throttle"
    )
