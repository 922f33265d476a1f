"""Which cell is best, how surely, and what to distrust."""

from datetime import UTC, datetime

import pytest

from farm import schema
from farm.catalog.winners import winners
from farm.report import cells, findings, html, model
from farm.report.record import Answer, Cell, Report
from tests.farm import make

NOW = datetime(2026, 11, 30, 11, 0, tzinfo=UTC)


def run(*given: dict) -> list[Cell]:
    """One cell per description, told apart by their batch."""
    jobs = [make.job(batch=each + 1) for each in range(len(given))]
    rows = [make.row(make.profile(job, **each)) for job, each in zip(jobs, given, strict=True)]
    manifest = make.manifest(jobs)
    return cells.cells(manifest, cells.scope(manifest, winners(rows)).by_job, now=NOW)[0]


def fastest(*given: dict) -> Answer:
    """The answer about latency."""
    return findings.answers(run(*given))[0]


@pytest.mark.parametrize(
    ("other", "surely"),
    [
        ({"p50_ms": 20.0}, "clear"),
        ({"p50_ms": 10.05}, "close"),
        ({"p50_ms": 20.0, "half_rel": 0.9}, "close"),
        ({"p50_ms": 20.0, "half_rel": None}, "unknown"),
        ({"p50_ms": 9.0, "flags": ["contended"]}, "unknown"),
        ({"p50_ms": 11.0, "flags": ["contended"]}, "alone"),
        ({"status": "failed"}, "alone"),
    ],
)
def test_how_surely_follows_from_the_intervals(other, surely):
    """Clear only if no interval overlaps; a disturbed cell does not compete, but one that looks
    better is named, because the answer may be wrong without it."""
    found = fastest({"p50_ms": 10.0}, other)

    assert (0, surely) == (found.cell, found.surely)


def test_the_best_without_an_interval_is_unsure():
    """A point alone claims nothing."""
    assert "unknown" == fastest({"half_rel": None}, {"p50_ms": 90.0}).surely


@pytest.mark.parametrize("doubt", [{"flags": ["drifting"]}, {"stability": "noisy"}])
def test_a_best_cell_in_doubt_is_never_clear(doubt):
    """An interval cannot vouch for a measurement that drifted."""
    assert "doubted" == fastest({"p50_ms": 10.0, **doubt}, {"p50_ms": 20.0}).surely


def test_a_call_that_is_too_close_names_the_rivals():
    """The reader sees what to measure longer."""
    found = fastest({"p50_ms": 10.0}, {"p50_ms": 10.01}, {"p50_ms": 30.0})

    assert [1] == found.rivals
    assert "too close to call: b2" == found.certainty


def test_throughput_is_the_largest_and_its_own_contest():
    """The highest rate wins, whatever the latency."""
    cells_ = run({"p50_ms": 10.0, "throughput": 100.0}, {"p50_ms": 90.0, "throughput": 900.0})

    latency, throughput = findings.answers(cells_)

    assert (0, 1) == (latency.cell, throughput.cell)
    assert ("900.0", "items/s", "clear") == (throughput.value, throughput.unit, throughput.surely)


def test_a_model_without_a_good_cell_has_no_answer():
    """No best of nothing."""
    assert [] == findings.answers(run({"status": "failed"}, {"flags": ["throttled"]}))


def of_modes(*given: tuple[str, dict]) -> Report:
    """A report of a cell per mode and description, of one model, told apart by their batch."""
    jobs = [make.job(batch=at + 1) for at in range(len(given))]
    told = [
        schema.Labelled(job_id=job.job_id, labels=make.labels(job, mode=mode))
        for job, (mode, _) in zip(jobs, given, strict=True)
    ]
    rows = [make.row(make.profile(job, **each)) for job, (_, each) in zip(jobs, given, strict=True)]
    return model.build(make.manifest(jobs, jobs=told), winners(rows), cards={}, now=NOW)


def test_a_training_never_competes_with_an_inference():
    """Each mode has its own answer, also where the other's is disturbed and looks better."""
    report = of_modes(
        ("inference", {"p50_ms": 10.0}),
        ("train", {"p50_ms": 30.0}),
        ("train", {"p50_ms": 10.01}),
        ("inference", {"p50_ms": 9.0, "flags": ["contended"]}),
    )

    found = [(each.metric, each.cell, each.rivals, each.certainty) for each in report.answers]

    better = "of the valid cells; better, but disturbed: b4 inference"
    assert ("latency", 0, [], better) == found[0]
    assert ("latency", 2, [], "clear: no other interval overlaps") == found[2]
    cards = html.page(report)
    assert "<h3>mlp, inference</h3>" in cards
    assert "<h3>mlp, train</h3>" in cards


def test_the_only_cell_of_a_mode_says_so():
    report = of_modes(("inference", {}), ("train", {}))

    assert "the only cell of mode train measured" == report.answers[2].certainty


def test_doubts_are_sorted_worst_first_and_name_their_cells():
    """Invalid before degraded, wide before narrow, and who disturbed."""
    found = findings.doubts(
        run(
            {"flags": ["drifting"]},
            {"flags": ["bimodal"]},
            {"flags": ["contended"], "neighbours": ["make (pid 7)"]},
            {"flags": ["drifting"]},
        )
    )

    assert ["contended", "drifting", "bimodal"] == [each.name for each in found]
    assert [[2], [0, 3], [1]] == [each.cells for each in found]
    assert ["make (pid 7)"] == found[0].because


def test_a_note_is_no_doubt():
    """A coarse timer was dealt with; it is said, not distrusted."""
    assert [] == findings.doubts(run({"flags": ["timer_limited"]}))


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"stability": "noisy"}, ["noisy"]),
        ({"repeats": 2}, ["repeats_missing"]),
        ({"repeats": 1}, ["repeats_missing", "single_repeat"]),
        ({"validity": "invalid"}, ["unjudged"]),
    ],
)
def test_what_no_flag_says_is_found_as_well(given, names):
    """Scatter, missing repeats, and an invalid verdict without a flag."""
    assert names == [each.name for each in findings.doubts(run(given))]
