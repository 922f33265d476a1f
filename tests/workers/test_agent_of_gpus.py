"""A real agent of simulated GPUs: jobs of their class, one at a time on each, under their cards."""

import json
import os
import signal
from pathlib import Path

import pytest
from msgspec import UNSET

from farm import schema
from farm.schema import SystemCard
from farm.store import card_key
from tests.workers.agents import Place, job

FAKE = ("--fake", "2xH100")


@pytest.mark.redis
def test_jobs_for_a_gpu_are_measured_on_those_that_stand_in(place: Place) -> None:
    place.start(words=FAKE, FARM_GATES="strict")
    for batch, queue in enumerate(("hw.gpu", "hw.h100-sxm", "dev.n1.1"), 1):
        place.submit(job(batch), class_=queue)

    place.until(lambda: place.states() == ["DONE"] * 3, "not completed", seconds=60)

    profiles = place.profiles()
    assert {"ok"} == {each.status for each in profiles}
    assert {("gpu", "NVIDIA H100 80GB HBM3")} == {
        (each.execution.device.kind, each.execution.device.name) for each in profiles
    }
    assert {"gpu:0", "gpu:1"} >= {each.execution.device.slot for each in profiles}
    (pinned,) = [each for each in profiles if each.job.workload.batch == 3]
    assert "gpu:1" == pinned.execution.device.slot
    cards = [
        schema.decode(place.store.get(card_key(each)), SystemCard)
        for each in {each.card_id for each in profiles}
    ]
    assert all(card.stable.simulated for card in cards)
    assert all(card.stable.accelerators is not UNSET for card in cards)


@pytest.mark.redis
def test_no_job_for_a_cpu_is_taken_by_a_gpu(place: Place) -> None:
    place.start(words=FAKE, FARM_GATES="strict")
    place.submit(job(1), class_="hw.cpu")
    place.submit(job(2), class_="hw.gpu")

    place.until(lambda: "DONE" in place.states(), "the GPU takes none")

    assert ["DONE", "READY"] == place.states()


@pytest.mark.redis
def test_a_killed_worker_of_a_gpu_costs_the_others_nothing(place: Place) -> None:
    """N1: it is started again, and its job is measured."""
    place.start(words=FAKE, FARM_GATES="strict")
    place.until(lambda: len(place.pids("workers.tasks")) == 2, "two workers")
    place.submit(place.hanging(), class_="hw.gpu")
    child = place.measuring()
    victim = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
    (other,) = [each for each in place.pids("workers.tasks") if each != victim]

    os.kill(victim, signal.SIGKILL)

    place.until(lambda: place.states() == ["DONE"], "its job is not measured")
    assert other in place.pids("workers.tasks")
    place.until(lambda: len(place.pids("workers.tasks")) == 2, "it is not started again")


@pytest.mark.redis
def test_a_fault_keeps_jobs_away_until_it_has_passed(place: Place) -> None:
    """The entry stays in the queue, and no attempt is counted."""
    faults = place.folder / "state" / "faults.json"
    faults.parent.mkdir()
    faults.write_text(json.dumps({"*": {"readings": {"utilization_pct": 90}}}))
    place.start(words=FAKE, FARM_GATES="strict")
    place.submit(job(), class_="hw.gpu")
    log = place.folder / "state" / "logs"
    place.until(
        lambda: any("not fit: device_idle" in each.read_text() for each in log.glob("*.log")),
        "it was not looked at",
    )
    assert ["READY"] == place.states()

    faults.unlink()

    place.until(lambda: place.states() == ["DONE"], "not measured afterwards")
    (profile,), (record,) = place.profiles(), place.records()
    assert (1, 1) == (profile.attempt, record.attempt)
    assert profile.gate is not UNSET
    of_device = [each for each in profile.gate if not each.id.startswith("host_")]
    assert {"ok", "skipped"} >= {each.verdict for each in of_device}


@pytest.mark.redis
def test_a_fault_while_a_job_runs_makes_its_profile_no_valid_one(place: Place) -> None:
    faults = place.folder / "state" / "faults.json"
    place.start(words=FAKE, FARM_GATES="strict")
    place.submit(job(duration_us=20_000), class_="hw.gpu")
    place.measuring()

    faults.write_text(json.dumps({"*": {"sensors": {"events": 0x40}}}))

    place.until(lambda: place.states() == ["DONE"], "not measured")
    (profile,) = place.profiles()
    assert isinstance(profile.quality, schema.Quality)
    assert "invalid" == profile.quality.validity
    assert "throttled" in profile.quality.flags
    assert profile.telemetry is not UNSET
    names = [(each.repeat, each.name) for each in profile.telemetry.passes]
    assert {"latency", "throughput"} == {name for _, name in names}
    assert ["hw_thermal"] == profile.telemetry.event_reasons
    assert profile.telemetry.power_mean_w is not None
    assert "telemetry" in profile.artifacts


@pytest.mark.redis
def test_a_device_that_breaks_under_a_job_is_out_and_the_job_goes_to_the_next(place: Place) -> None:
    """Nothing of it is kept, the attempt does not count, and a restart brings it not back."""
    agent = place.start(words=FAKE, FARM_GATES="strict")
    place.submit(job(duration_us=20_000), class_="hw.gpu")
    place.measuring()
    (record,) = place.records()
    broken = record.owner.partition("#")[0].partition("/")[2]
    faults = place.folder / "state" / "faults.json"

    faults.write_text(json.dumps({broken[-1]: {"xids": [79]}}))

    place.until(lambda: place.states() == ["DONE"], "not measured elsewhere", seconds=60)
    (profile,), (record,) = place.profiles(), place.records()
    assert broken != profile.execution.device.slot
    assert (1, 1) == (profile.attempt, record.attempt)
    (held,) = place.ledger.holds()
    assert ("n1", broken, "quarantine", "xid", record.key) == (
        *(held.node, held.slot, held.kind, held.cause, held.job),
    )
    faults.unlink()
    agent.terminate()
    agent.wait(30)
    place.start(words=FAKE, FARM_GATES="strict")
    place.submit(job(2), class_="hw.gpu")
    place.until(lambda: place.states() == ["DONE"] * 2, "the other measures", seconds=60)
    assert {profile.execution.device.slot} == {
        each.execution.device.slot for each in place.profiles()
    }

    place.ledger.hold(f"n1/{broken}", "cleared", note="a new one")
    place.until(lambda: place.ledger.holds() == [], "its node does not hear it")
    number = 0 if broken == "gpu:0" else 1
    place.submit(job(9), class_=f"dev.n1.{number}")
    place.until(lambda: place.states() == ["DONE"] * 3, "it does not measure again")
