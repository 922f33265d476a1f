"""A run becomes one Report that can be stored and read back."""

from datetime import UTC, datetime

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import schema
from farm.catalog.rows import Unreadable
from farm.catalog.winners import winners
from farm.report import model
from farm.report.record import Report, bad
from tests.farm import make
from tests.farm.report import sample

NOW = datetime(2026, 11, 30, 11, 0, tzinfo=UTC)


def build(jobs, *profiles, **more) -> Report:
    rows = [make.row(each) for each in profiles]
    cards = {each.card_id: make.card() for each in profiles}
    return model.build(
        make.manifest(jobs, **more), winners(rows), cards=cards, now=NOW, unreadable=[]
    )


ENDS = [
    {},
    {"repeats": 1, "n": 20},
    {"rss_bytes": None},
    {"flags": ["contended"]},
    {"flags": ["drifting"], "stability": "noisy"},
    {"status": "failed"},
    {"status": "pruned"},
    {"status": "infra"},
    None,
]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(ENDS), max_size=8))
def test_any_report_encodes_and_reads_back_equal(ends):
    """Every null has its reason, no number is infinite, and nothing is lost on the way."""
    jobs = [make.job(batch=each + 1) for each in range(len(ends))]
    profiles = [
        make.profile(job, **end) for job, end in zip(jobs, ends, strict=True) if end is not None
    ]
    report = build(jobs, *profiles)

    assert report == schema.decode(schema.encode(report), Report)
    assert len(ends) == report.expected == sum(report.counts.values())
    assert report.complete == (report.counts["missing"] == 0)


def test_a_report_without_anything_is_still_a_report():
    """An empty run, or one whose profiles all are still out."""
    empty = build([])
    waiting = build([make.job()])

    assert empty.complete
    assert not waiting.complete
    assert [] == waiting.answers == waiting.systems


def test_the_same_input_gives_the_same_report():
    """Deterministic but for the moment that it was given."""
    assert sample.report() == sample.report()


def test_unreadable_documents_are_named():
    """Nothing disappears: who reads the report knows what could not be read."""
    torn = [Unreadable("inbox/v1/date=2026-11-30/x.json", "the document is not JSON")]

    report = model.build(make.manifest([]), [], cards={}, now=NOW, unreadable=torn)

    assert ["inbox/v1/date=2026-11-30/x.json"] == [each.key for each in report.unreadable]


def test_a_missing_card_costs_only_its_facts():
    """The numbers stand without the card; what the profile says of the machine stays."""
    job = make.job()
    rows = [make.row(make.profile(job))]

    report = model.build(make.manifest([job]), winners(rows), cards={}, now=NOW)

    assert "laptop" == report.systems[0].facts["node"]
    assert "torch" not in report.systems[0].facts


def test_facts_that_differ_between_systems_are_not_shared():
    """A reader sees at once that one half ran under another torch."""
    jobs = [make.job(batch=1), make.job(batch=8)]
    profiles = [make.profile(jobs[0]), make.profile(jobs[1], system_id=make.OTHER_SYSTEM)]
    cards = {
        profiles[0].card_id: make.card(),
        profiles[1].card_id: make.card(make.OTHER_SYSTEM, torch="2.12.0"),
    }

    report = model.build(
        make.manifest(jobs), winners(map(make.row, profiles)), cards=cards, now=NOW
    )

    assert "torch" not in report.shared
    assert "python" in report.shared


def test_every_report_names_the_loop_closed_and_the_input_fixed():
    """Whoever compares with an open-loop tool must know."""
    job = make.job()

    said = " ".join(build([job], make.profile(job)).method)

    assert "the loop is closed" in said
    assert "one seeded input" in said


def test_two_precisions_say_that_their_outputs_were_not_compared():
    """A speed-up without an error is half an answer."""
    jobs = [make.job(precision=each) for each in ("fp32", "bf16")]

    both = build(jobs, *map(make.profile, jobs))
    one = build(jobs[:1], make.profile(jobs[0]))

    assert any("output of one precision" in each for each in both.left_out)
    assert not any("output of one precision" in each for each in one.left_out)


def test_only_simulated_profiles_raise_the_banner():
    """A number that no device gave is never shown as one that it did."""
    job = make.job()

    assert build([job], make.profile(job, simulated=True)).simulated
    assert not build([job], make.profile(job)).simulated


def test_bad_cells_are_failures_that_answer_nothing():
    """Out of memory and pruned are answers; a crash and a lost worker are not."""
    kinds = ["oom", "unsupported", "crashed", "nonfinite"]
    jobs = [make.job(batch=each + 1) for each in range(6)]
    profiles = [
        make.profile(job, status="failed", failure=make.fault(kind))
        for job, kind in zip(jobs, kinds, strict=False)
    ]
    profiles.append(make.profile(jobs[4], status="pruned", failure=make.fault("crashed")))
    profiles.append(make.profile(jobs[5], status="infra", failure=make.fault("worker_lost")))

    found = bad(build(jobs, *profiles))

    assert ["mlp b3", "mlp b4", "mlp b6"] == [each.title for each in found]


def test_a_time_out_is_bad_only_where_the_model_came_to_an_end():
    """A model that is too slow everywhere is an answer; one slow cell is trouble."""
    jobs = [make.job(batch=1), make.job(batch=8)]
    slow = make.profile(jobs[1], status="failed", failure=make.fault("timeout"))

    assert [] == bad(build(jobs[1:], slow))
    assert 1 == len(bad(build(jobs, make.profile(jobs[0]), slow)))


def test_reasons_stand_under_the_path_of_their_null():
    """The one mechanism for nulls holds in reports as well."""
    job = make.job()
    report = build([job], make.profile(job, rss_bytes=None))

    plain = msgspec.to_builtins(report)

    assert "no_permission" == report.null_reasons["cells.0.figures.cpu_rss_peak_bytes"]
    assert None is plain["cells"][0]["figures"]["cpu_rss_peak_bytes"]
