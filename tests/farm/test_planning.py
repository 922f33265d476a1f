"""What a run is about to do, in words and as a document: nothing is left out silently."""

from datetime import UTC, datetime

import msgspec
import pytest

from farm import answers, planning
from farm.runs import stamp
from farm.schema import Effort, Labelled, Manifest, Reused, Selector, Skipped
from farm.submit import Outlook, outlook
from tests.farm import make

NOW = datetime(2026, 11, 30, 12, 15, tzinfo=UTC)  # two hours after the profiles of `make`
SMALL, LARGE, GONE = make.job(), make.job(batch=8), make.job(device="h300")


def reused(document, *, taken_at=make.STARTED, environment="torch 2.13.0") -> Reused:
    return Reused(
        job_id=document.job_id,
        profile_id="0" * 64,
        system_id=make.SYSTEM,
        taken_at=taken_at,
        environment=environment,
    )


def looked(store, *asked, force=False, slots=None, waits=False, **more) -> Outlook:
    return outlook(
        make.plan(asked, **more),
        store=store,
        slots=[make.slot()] if slots is None else slots,
        force=force,
        tags={},
        now=NOW,
        waits=waits,
        user=lambda: "ada",
    )


# ── what a run says when it begins ───────────────────────────────────────────────────────────────


def test_the_announcement_counts_every_job_of_the_sweep(store):
    """To measure, reused, measured again and why, skipped and why."""
    make.put(store, make.profile(SMALL), make.profile(LARGE, flags=["contended"]))
    found = looked(store, SMALL, LARGE, make.job(batch=2), GONE)

    said = planning.announcement(found, force=False)

    assert [
        f"run {found.manifest.run_id}: 2 jobs to measure",
        "1 job not measured again: measured 2h00m ago on this system (unknown software); "
        "--force measures anyway",
        "1 job measured again: its profile is invalid: contended",
        "1 job skipped: no device here takes hw.h300",
    ] == said


def test_equal_reasons_are_counted_together(store):
    """One line for each reason, however many jobs."""
    make.put(store, *(make.profile(each, repeats=1) for each in (SMALL, LARGE)))

    said = planning.announcement(looked(store, SMALL, LARGE), force=False)

    assert "2 jobs measured again: its profile has 1 usable repeat of 3" in said


def test_force_says_so(store):
    make.put(store, make.profile(SMALL))

    said = planning.announcement(looked(store, SMALL, force=True), force=True)

    assert [said[0]] == said
    assert said[0].endswith("1 job to measure, whether measured before or not")


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        (["2026-11-30T12:14:20Z"], "measured 40s ago"),
        (["2026-11-30T10:15:00Z", "2026-11-29T10:15:00Z"], "measured 2h00m to 1d ago"),
        (["2026-11-30T12:20:00Z"], "measured 0s ago"),  # a clock that runs ahead
        (["long ago"], "ago"),
    ],
)
def test_reuse_says_how_old_it_is(taken, words):
    """The newest and the oldest, each in its two leading units."""
    listed = [reused(SMALL, taken_at=each) for each in taken]
    expected = make.manifest([SMALL], reused=listed, submitted_at=stamp(NOW))

    (line,) = planning.reused_lines(expected)

    assert words in line


def test_each_environment_of_what_is_reused_has_its_line():
    """Two stores' worth of software are not said in one breath."""
    listed = [reused(SMALL), reused(LARGE, environment="torch 2.12.0")]

    lines = planning.reused_lines(make.manifest([SMALL, LARGE], reused=listed))

    assert ["(torch 2.12.0)", "(torch 2.13.0)"] == [each.split("system ")[1][:14] for each in lines]


def test_a_resumed_run_says_what_is_owed_and_what_nobody_takes():
    expected = make.manifest([SMALL, LARGE, GONE])

    assert ["2 of 3 jobs missing", "1 job left out: no device here takes hw.h300"] == planning.owed(
        expected, [LARGE, GONE], [LARGE]
    )
    assert [f"nothing is missing in {make.RUN}"] == planning.owed(expected, [], [])


# ── how long it takes ────────────────────────────────────────────────────────────────────────────


def outlined(store, *asked, effort=None, slots=None, waits=False) -> planning.Outline:
    slots = [make.slot()] if slots is None else slots
    found = looked(store, *asked, effort=effort or Effort(), slots=slots, waits=waits)
    return planning.outline(found, store, jobs=asked, slots=slots)


def test_a_job_nobody_measured_takes_a_guess(store):
    """Three repeats of half a budget each, and what lies around the passes."""
    assert 3 * (4 + 5) == outlined(store, SMALL).seconds
    assert (
        2 * 2 * (4 + 1)
        == outlined(store, SMALL, LARGE, effort=Effort(repeats=2, budget_ms=2000)).seconds
    )


def test_a_job_measured_before_takes_as_long_for_each_repeat(store):
    """Ten minutes for two repeats are fifteen for three."""
    make.put(store, make.profile(SMALL, repeats=2, finished_at="2026-11-30T10:25:00Z"))

    assert 900 == outlined(store, SMALL).seconds


def test_an_attempt_without_repeats_says_nothing_about_time(store):
    """An entry that was given up took no time at all; the next try will."""
    make.put(store, make.profile(SMALL, status="infra", failure=make.fault("worker_lost")))

    assert 27 == outlined(store, SMALL).seconds


def test_odd_times_of_a_profile_do_not_stop_a_plan(store):
    odd = make.profile(SMALL, repeats=2)
    execution = msgspec.structs.replace(odd.execution, started_at="?", finished_at="?")
    make.put(store, msgspec.structs.replace(odd, execution=execution))

    assert 0 == outlined(store, SMALL).seconds


@pytest.mark.parametrize(("slots", "seconds"), [(0, 54), (1, 54), (2, 27), (4, 13.5)])
def test_the_slots_share_the_time(store, slots, seconds):
    """Twice 27 s among them; without any it takes as long as with the one that may come."""
    live = [make.slot(node=f"n{each}") for each in range(slots)]

    assert seconds == outlined(store, SMALL, LARGE, slots=live, waits=True).seconds


def test_a_slot_that_takes_no_job_of_the_plan_shares_nothing(store):
    """Neither one that hears other queues, nor one whose jobs are measured already."""
    gpu = make.slot(make.OTHER_SYSTEM, node="gpu-1", classes=["hw.h300", "any"])
    idle = make.slot(node="gpu-2", classes=["hw.a100"])
    make.put(store, make.profile(GONE, system_id=make.OTHER_SYSTEM))

    found = outlined(store, SMALL, LARGE, GONE, slots=[make.slot(), gpu, idle], waits=True)

    assert 54 == found.seconds


def test_what_is_reused_takes_no_time(store):
    make.put(store, make.profile(SMALL))

    found = outlined(store, SMALL)

    assert ([], 0) == (found.to_measure, found.seconds)


# ── the plan, for a person and for a program ─────────────────────────────────────────────────────


@pytest.fixture
def mixed(store) -> planning.Outline:
    make.put(store, make.profile(SMALL), make.profile(LARGE, flags=["contended"]))
    return outlined(store, SMALL, LARGE, make.job(batch=2), GONE)


def test_the_document_lists_every_job_with_its_state(mixed):
    """Measured, to measure and why again, skipped and why."""
    document = planning.document(mixed)

    assert ("quickstart", 2, 1, 1) == (
        document.name,
        document.to_measure,
        document.reused,
        document.skipped,
    )
    assert [
        ("mlp/fp32/b1/cpu", "measured", ""),
        ("mlp/fp32/b8/cpu", "measure", "its profile is invalid: contended"),
        ("mlp/fp32/b2/cpu", "measure", ""),
        ("mlp/fp32/b1/h300", "skipped", "no device here takes hw.h300"),
    ] == [(each.label, each.state, each.why) for each in document.jobs]


def test_the_document_is_one_of_the_published_answers(mixed):
    """What a program reads is what the schema says, field by field."""
    document = planning.document(mixed)

    told = msgspec.json.encode(document)

    assert document == msgspec.json.decode(told, type=answers.Plan, strict=True)
    assert "farm.plan/v1" == msgspec.json.decode(told)["schema"]


def test_a_plan_says_which_queue_each_job_waits_in_and_which_nodes_hear_it(store):
    """Each node once, by name, however many slots it has."""
    slots = [make.slot(node=each) for each in ("desk", "attic", "desk")]
    pinned = msgspec.structs.replace(SMALL, selector=Selector(kind="node", value="attic"))
    slots[1] = make.slot(node="attic", classes=["hw.cpu", "any", "node.attic"])

    document = planning.document(outlined(store, SMALL, pinned, slots=slots, waits=True))

    assert [("hw.cpu", ["attic", "desk"]), ("node.attic", ["attic"])] == [
        (each.queue, each.nodes) for each in document.jobs
    ]


def test_a_job_that_no_node_takes_waits_on_a_farm(store):
    """Where one may come it is queued; here alone it is skipped (see above)."""
    found = outlined(store, SMALL, GONE, waits=True)

    taken, waiting = planning.document(found).jobs
    assert ("measure", "") == (taken.state, taken.why)
    assert ("waiting", "no live device for hw.h300", "hw.h300", []) == (
        waiting.state,
        waiting.why,
        waiting.queue,
        waiting.nodes,
    )
    assert "no live device for hw.h300: 1 job waits until a node offers one" in planning.blocks(
        found, limit=5
    )


def test_the_blocks_hold_heading_effort_table_and_reuse(mixed):
    heading, effort, table, *reuse = planning.blocks(mixed, limit=20)

    assert heading.startswith(
        "quickstart   4 jobs: 2 to measure · 1 measured already · 1 skipped   about "
    )
    assert (
        "effort standard: 3 repeats, each pass until its median is known within 0.5 % or 10 s"
        == effort
    )
    assert (4, ()) == (len(table.rows), table.notes)
    assert ["mlp/fp32/b8/cpu", "measure", "hw.cpu", "laptop"] == [
        each.text for each in table.rows[1][:4]
    ]
    assert 1 == len(reuse)


@pytest.mark.parametrize(("limit", "rows", "more"), [(1, 1, "3 jobs"), (3, 3, "1 job")])
def test_a_table_says_what_it_leaves_out(mixed, limit, rows, more):
    table = planning.blocks(mixed, limit=limit)[2]

    assert rows == len(table.rows)
    assert (f"and {more} more; --limit shows them",) == table.notes


def test_a_plan_of_nothing_but_skips_can_be_said():
    """Everything skipped is a plan too."""
    nothing = make.manifest(
        [], skipped=[Skipped(labels={"model": "x", "batch": "1"}, reason="no such package")]
    )

    found = outline_of(nothing)

    assert planning.blocks(found, limit=5)[0].startswith("quickstart   1 job: 0 to measure")
    assert "x/b1" == planning.document(found).jobs[0].label


def test_labels_come_from_the_run_and_not_from_the_job():
    """A named axis of the inputs is part of what a job is called."""
    labels = make.labels(SMALL, seq="128")
    expected = make.manifest(jobs=[Labelled(job_id=SMALL.job_id, labels=labels)])

    document = planning.document(outline_of(expected))

    assert "mlp/fp32/b1/cpu/seq=128" == document.jobs[0].label


def outline_of(expected: Manifest) -> planning.Outline:
    return planning.Outline(
        manifest=expected,
        again={},
        to_measure=[],
        seconds=0.0,
        queues={},
        takers={},
        unserved={},
    )
