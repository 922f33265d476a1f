"""What a run measures again, what it takes from the store, and what it owes."""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
import pytest

from farm import identity, schema
from farm.errors import Refused
from farm.ledger import Claim, Ledger
from farm.runs import manifests
from farm.schema import Effort, Order, Skipped
from farm.store import LocalStore, bundle_key, job_key, manifest_key
from farm.submit import Outlook, enqueue, missing, outlook, publish
from farm.sweep import Plan
from tests.farm import make

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def looked(store, plan: Plan, *slots, force=False, tags=None, waits=False) -> Outlook:
    return outlook(
        plan,
        store=store,
        slots=slots or [make.slot()],
        force=force,
        tags=tags or {},
        now=NOW,
        waits=waits,
        user=lambda: "ada",
    )


def system_of(**changes) -> schema.SystemCard:
    """A card of the same machine with other software, under the id that its stable part gives."""
    driver = changes.pop("driver", None)
    card = make.card(**changes)
    stable = msgspec.structs.replace(card.stable, drivers=schema.Drivers(nvidia=driver))
    reasons = {k: v for k, v in card.null_reasons.items() if driver is None or "nvidia" not in k}
    return msgspec.structs.replace(
        card,
        stable=stable,
        system_id=identity.system_id(msgspec.to_builtins(stable)),
        null_reasons=reasons,
    )


def taken_under(store, card: schema.SystemCard, **more) -> schema.Profile:
    """A stored profile that names the card it was taken under."""
    (card_id,) = make.put(store, card)
    document = make.profile(system_id=card.system_id, **more)
    document = msgspec.structs.replace(document, card_id=card_id)
    make.put(store, document)
    return document


# ── reuse (rule 1) ───────────────────────────────────────────────────────────────────────────────


def test_a_job_measured_under_a_live_system_is_reused_with_its_environment(store):
    """The manifest names the profile, when it was taken, and under what software."""
    card = system_of()
    taken = taken_under(store, card)

    found = looked(store, make.plan([taken.job]), make.slot(card.system_id))

    (reused,) = found.manifest.reused
    assert (taken.job_id, card.system_id, make.STARTED, "torch 2.13.0, python 3.11.7") == (
        reused.job_id,
        reused.system_id,
        reused.taken_at,
        reused.environment,
    )
    assert {} == found.again
    assert [] == missing(found.manifest, store, [make.slot(card.system_id)])


@pytest.mark.parametrize(
    ("then", "now", "environment"),
    [
        ({"torch": "2.12.1"}, {}, "torch 2.12.1, python 3.11.7"),
        ({"torch": None}, {}, "python 3.11.7"),
        ({"farm_protocol": 0}, {}, "torch 2.13.0, python 3.11.7"),
        ({"driver": "550.1"}, {"driver": "560.2"}, "torch 2.13.0, python 3.11.7, driver 550.1"),
        ({"driver": "550.1"}, {}, "torch 2.13.0, python 3.11.7, driver 550.1"),
    ],
)
def test_other_software_is_another_system_and_measures_again(store, then, now, environment):
    """An upgraded framework or driver changes `system_id`; the sentence says what it was."""
    before, after = system_of(**then), system_of(**now)
    if then.get("torch", "") is None:
        reasons = before.null_reasons | {"stable.frameworks.torch": "library_missing"}
        before = msgspec.structs.replace(before, null_reasons=reasons)
    taken = taken_under(store, before)

    found = looked(store, make.plan([taken.job]), make.slot(after.system_id))

    assert before.system_id != after.system_id
    assert [] == found.manifest.reused
    sentence = f"its profile was taken under another system ({environment})"
    assert {taken.job_id: sentence} == found.again


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        ({"flags": ["contended"]}, "its profile is invalid: contended"),
        ({"repeats": 2}, "its profile has 2 usable repeats of 3"),
        ({"repeat_flags": [["contended"]]}, "its profile has 2 usable repeats of 3"),
        ({"status": "failed", "failure": make.fault("crashed")}, "it failed last time: crashed"),
        ({"status": "failed", "failure": make.fault("timeout")}, "it failed last time: timeout"),
        ({"status": "failed", "failure": make.fault("host_oom")}, "it failed last time: host_oom"),
        (
            {"status": "infra", "failure": make.fault("environment")},
            "it failed last time: environment",
        ),
    ],
)
def test_what_is_no_answer_is_measured_again_and_says_why(store, made, sentence):
    """Invalid, failed or too short; out of host memory too, because its limit is in no id."""
    document = make.profile(**made)
    make.put(store, document)

    found = looked(store, make.plan([document.job]))

    assert [] == found.manifest.reused
    assert {document.job_id: sentence} == found.again


@pytest.mark.parametrize("kind", ["oom", "unsupported"])
def test_an_answer_about_the_device_is_reused(store, kind):
    """What does not fit or cannot run there is no different the second time."""
    document = make.profile(status="failed", failure=make.fault(kind))
    make.put(store, document)

    assert 1 == len(looked(store, make.plan([document.job])).manifest.reused)


def test_the_sentence_is_about_the_best_profile_of_the_live_system(store):
    """Neither a newer loss of ours nor a better figure of another machine hides the reason."""
    invalid = make.profile(flags=["contended"], fence=1)
    make.put(
        store,
        invalid,
        make.profile(status="infra", failure=make.fault("worker_lost"), fence=9),
        make.profile(system_id=make.OTHER_SYSTEM, fence=8),
    )

    found = looked(store, make.plan([invalid.job]))

    assert {invalid.job_id: "its profile is invalid: contended"} == found.again


def test_an_attempt_of_an_unknown_system_is_no_reason_to_stop(store):
    """An entry that was given up names no card; its job is measured again."""
    lost = make.profile(status="infra", failure=make.fault("worker_lost"), system_id="")
    lost = msgspec.structs.replace(lost, card_id="")
    strange = msgspec.structs.replace(
        make.profile(make.job(batch=8)), system_id="?", card_id="../x"
    )
    make.put(store, lost, strange)

    again = looked(store, make.plan([lost.job, strange.job])).again

    assert "it failed last time: worker_lost" == again[lost.job_id]
    assert "another system (unknown software)" in again[strange.job_id]


def test_reuse_looks_only_at_slots_that_take_the_job(store):
    """A figure of the GPU node says nothing about a job for the CPU node."""
    document = make.profile(system_id=make.OTHER_SYSTEM)
    make.put(store, document)
    other = make.slot(make.OTHER_SYSTEM, node="gpu-1", classes=["hw.h100", "any"])

    found = looked(store, make.plan([document.job]), make.slot(), other)

    assert [] == found.manifest.reused


def test_more_repeats_than_were_measured_measure_again(store):
    """Effort is in no id, yet fewer repeats than asked are no answer."""
    document = make.profile(repeats=3)
    make.put(store, document)
    thorough = make.plan([document.job], effort=Effort(level="thorough", repeats=5))

    assert 1 == len(looked(store, make.plan([document.job])).manifest.reused)
    assert 0 == len(looked(store, thorough).manifest.reused)


def test_force_measures_everything_in_a_set_of_its_own(store):
    """--force changes the repeat set to the run id, so that it resumes as itself."""
    document = make.profile()
    make.put(store, document)

    found = looked(store, make.plan([document.job]), force=True)

    expected = found.manifest
    assert ([], {}, expected.run_id) == (expected.reused, found.again, expected.repeat_set)
    assert [document.job] == _published(store, [document.job], expected)
    late = make.profile(repeat_set=expected.repeat_set, run_id="r-other")
    make.put(store, late)
    assert [] == missing(expected, store, [make.slot()])


# ── what a run expects ───────────────────────────────────────────────────────────────────────────


def test_a_job_that_no_slot_takes_is_skipped_and_says_so(store):
    """It is not queued where nobody would ever take it."""
    here, gone = make.job(), make.job(device="h300")

    expected = looked(store, make.plan([here, gone])).manifest

    assert [here.job_id] == [each.job_id for each in expected.jobs]
    (skipped,) = expected.skipped
    assert ("h300", "no device here takes hw.h300") == (skipped.labels["device"], skipped.reason)


def test_on_a_farm_a_job_that_no_slot_takes_waits_for_one(store):
    """A node may come; nothing is skipped, and the outlook says how much waits in which queue."""
    asked = [make.job(), make.job(device="h300"), make.job(batch=8, device="h300")]

    found = looked(store, make.plan(asked), waits=True)

    assert [each.job_id for each in asked] == [each.job_id for each in found.manifest.jobs]
    assert ([], {"hw.h300": 2}) == (found.manifest.skipped, found.unserved)


def test_a_job_that_waits_for_a_device_is_not_answered_by_another_one(store):
    """A figure of some system is no answer while no live slot of that queue says which it is."""
    document = make.profile(make.job(device="h300"), system_id=make.OTHER_SYSTEM)
    make.put(store, document)

    found = looked(store, make.plan([document.job]), waits=True)

    assert ([], {"hw.h300": 1}) == (found.manifest.reused, found.unserved)


def test_what_is_taken_or_skipped_waits_for_nothing(store):
    plan = make.plan([make.job(), make.job(device="h300")])

    assert {} == looked(store, plan).unserved
    assert {} == looked(store, make.plan([make.job()]), waits=True).unserved


def test_the_manifest_says_who_asked_what_when(store):
    """Name, source, time, submitter, effort and the tags of sweep and flags, flags last."""
    asked = [make.job(), make.job(batch=8)]
    plan = make.plan(
        asked,
        tags={"a": "sweep", "b": "sweep"},
        skipped=[Skipped(labels={"model": "x"}, reason="no such package")],
    )

    expected = looked(store, plan, tags={"b": "flag"}).manifest

    assert ("quickstart", "ada", "2026-11-30T12:00:00.000Z") == (
        expected.name,
        expected.submitted_by,
        expected.submitted_at,
    )
    assert {"a": "sweep", "b": "flag"} == expected.tags
    assert [each.job_id for each in asked] == [each.job_id for each in expected.jobs]
    assert ["no such package"] == [each.reason for each in expected.skipped]
    assert "base" == expected.repeat_set


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 4711"), OSError("none")])
def test_a_user_without_a_name_is_known_by_number(store, error):
    """Containers run under numbers that nobody gave a name."""

    def nameless() -> str:
        raise error

    found = outlook(
        make.plan([make.job()]),
        store=store,
        slots=[make.slot()],
        force=False,
        tags={},
        now=NOW,
        user=nameless,
    )

    assert found.manifest.submitted_by.isdecimal()


# ── publishing and queueing ──────────────────────────────────────────────────────────────────────


class Told(LocalStore):
    """A store that notes the order in which keys were put."""

    def __init__(self, root) -> None:
        super().__init__(root, fsync=False)
        self.keys: list[str] = []

    def put_new(self, key, source, *, media_type="application/json"):
        self.keys.append(key)
        return super().put_new(key, source, media_type=media_type)


def test_the_manifest_comes_after_what_it_names_and_before_any_entry(tmp_path):
    """Code and inputs, jobs, manifest: who finds the manifest finds everything it speaks of."""
    store, code = Told(tmp_path / "store"), tmp_path / "model.py"
    code.write_text("x = 1\n")
    asked = [make.job(), make.job(device="h300")]
    plan = make.plan(asked, npz={identity.content_id(code.read_bytes()): code})
    expected = looked(store, plan).manifest

    publish(plan, expected, store)

    digest = identity.content_id(code.read_bytes())
    assert [
        bundle_key(digest, "npz"),
        job_key(asked[0].job_id),
        manifest_key(expected.run_id),
    ] == store.keys
    assert schema.encode(asked[0]) == store.get(job_key(asked[0].job_id))


def test_a_file_that_changed_meanwhile_leaves_no_run(tmp_path):
    """The jobs would name other bytes than the store holds."""
    store, data = Told(tmp_path / "store"), tmp_path / "x.npz"
    data.write_bytes(b"new")
    plan = make.plan([make.job()], npz={identity.content_id(b"old"): data})

    with pytest.raises(Refused, match="changed"):
        publish(plan, looked(store, plan).manifest, store)

    assert [] == manifests(store)


@pytest.fixture
def ledger(redis_url: str) -> Iterator[Ledger]:
    made = Ledger(redis_url)
    made.setup()
    yield made
    made.close()


@pytest.mark.redis
def test_entries_carry_the_whole_order(ledger):
    """Whoever claims one needs no store to know what to measure, how long, and for whom."""
    job = make.job()
    expected = make.manifest([job], effort=Effort(repeats=5), tags={"night": "1"})

    assert {"new": 1, "shared": 0, "known": 0} == enqueue(expected, [job], ledger)
    assert {"new": 0, "shared": 1, "known": 0} == enqueue(expected, [job], ledger)

    claim = ledger.claim(make.slot(), owner="laptop/cpu:0#a")
    assert isinstance(claim, Claim)
    order = schema.decode(claim.spec.encode(), Order)
    assert (f"{job.job_id}.base", make.RUN) == (claim.key, claim.run)
    assert (job, 5, "base", "mlp/fp32/b1/cpu", {"night": "1"}) == (
        order.job,
        order.effort.repeats,
        order.repeat_set,
        order.label,
        order.tags,
    )


@pytest.mark.redis
def test_the_higher_priority_is_claimed_first(store, ledger):
    """Whatever came before it; the manifest keeps it, for who sends the run again."""
    jobs = {each: make.job(each) for each in ("low", "normal", "high")}
    for priority, job in jobs.items():
        asked = outlook(
            make.plan([job]),
            store=store,
            slots=[make.slot()],
            force=False,
            tags={},
            now=NOW,
            priority=priority,
        )
        enqueue(asked.manifest, [job], ledger)

    order = [ledger.claim(make.slot(), owner="laptop/cpu:0#a").key for _ in jobs]

    assert [f"{jobs[each].job_id}.base" for each in ("high", "normal", "low")] == order


@pytest.mark.redis
def test_a_run_that_its_command_follows_is_not_open(ledger):
    """A scheduler looks after the others alone."""
    job = make.job()
    enqueue(make.manifest([job], run_id="r-here"), [job], ledger, here=True)
    enqueue(make.manifest([job], run_id="r-sent"), [job], ledger)

    assert ["r-sent"] == ledger.open_runs()


@pytest.mark.redis
def test_what_the_ledger_remembers_as_done_is_measured_again(ledger):
    """The store was asked and lacks it, so the memory of the queue does not count."""
    job = make.job()
    expected = make.manifest([job])
    enqueue(expected, [job], ledger)
    claim = ledger.claim(make.slot(), owner="laptop/cpu:0#a")
    ledger.finish(claim, state="DONE", cause="ok", profile_key="gone")

    assert 1 == enqueue(expected, [job], ledger)["new"]


# ── resume ───────────────────────────────────────────────────────────────────────────────────────


def _published(store, asked, expected, *slots) -> list[schema.Job]:
    publish(make.plan(asked), expected, store)
    return missing(expected, store, slots or [make.slot()])


@pytest.mark.parametrize(
    ("made", "is_missing"),
    [
        ({}, False),
        ({"flags": ["contended"]}, False),
        ({"repeats": 1}, False),
        ({"status": "failed", "failure": make.fault("crashed")}, False),
        ({"status": "failed", "failure": make.fault("host_oom")}, False),
        ({"status": "pruned"}, False),
        ({"status": "infra", "failure": make.fault("worker_lost")}, True),
        ({"status": "cancelled"}, True),
        ({"system_id": make.OTHER_SYSTEM}, False),
        ({"run_id": "r-other"}, False),
        ({"run_id": "r-other", "flags": ["contended"]}, False),
        ({"run_id": "r-other", "flags": ["contended"], "system_id": make.OTHER_SYSTEM}, True),
        ({"run_id": "r-other", "flags": ["contended"], "repeat_set": "r-other"}, True),
        (
            {"run_id": "r-other", "flags": ["contended"], "finished_at": "2020-01-01T00:00:00Z"},
            True,
        ),
        ({"run_id": "r-other", "repeats": 1}, True),
        ({"run_id": "r-other", "system_id": make.OTHER_SYSTEM}, True),
        ({"run_id": "r-other", "status": "failed", "failure": make.fault("crashed")}, False),
        ({"run_id": "r-other", "status": "infra", "failure": make.fault("store")}, True),
        ({"run_id": "r-other", "status": "failed", "failure": make.fault("oom")}, False),
    ],
)
def test_missing_is_the_manifest_minus_what_the_store_holds(store, made, is_missing):
    """What this run has sent counts, whatever it is but our own trouble.

    Of others what is good, and what came of a job that both wanted.
    """
    document = make.profile(**made)
    expected = make.manifest([document.job])
    make.put(store, document)

    lacking = _published(store, [document.job], expected)

    assert ([document.job] if is_missing else []) == lacking


def test_what_was_reused_is_not_missing_after_an_upgrade(store):
    """The run got its answer when it began."""
    document = make.profile(system_id=make.OTHER_SYSTEM, run_id="r-earlier")
    (profile_id,) = make.put(store, document)
    reused = schema.Reused(
        job_id=document.job_id,
        profile_id=profile_id,
        system_id=make.OTHER_SYSTEM,
        taken_at=make.STARTED,
        environment="",
    )

    assert [] == _published(store, [document.job], make.manifest([document.job], reused=[reused]))


def test_missing_keeps_the_order_of_the_manifest(store):
    """A resumed run goes on where it stopped."""
    asked = [make.job(batch=batch) for batch in (8, 1, 4, 2)]
    make.put(store, make.profile(asked[1]))

    lacking = _published(store, asked, make.manifest(asked))

    assert [8, 4, 2] == [each.workload.batch for each in lacking]
