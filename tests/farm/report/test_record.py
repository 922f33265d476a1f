"""What a report counts: answers are no failures, and every cell is counted once."""

from datetime import UTC, datetime

import pytest

from farm.catalog.winners import winners
from farm.report import model
from farm.report.record import bad, tally
from tests.farm import make

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def counted(*profiles, jobs=()):
    """Return the counts of a run of these profiles and of jobs that have none."""
    asked = [*(each.job for each in profiles), *jobs]
    best = winners(make.row(each) for each in profiles)
    report = model.build(make.manifest(asked), best, cards={}, now=NOW)
    return report, [(each.state, each.text, each.number) for each in tally(report)]


@pytest.mark.parametrize(
    ("kind", "text"), [("oom", "out of memory"), ("unsupported", "not supported there")]
)
def test_an_answer_is_counted_by_its_name_and_not_as_a_failure(kind, text):
    report, found = counted(
        make.profile(make.job(batch=1)),
        make.profile(make.job(batch=2), status="failed", failure=make.fault(kind)),
        make.profile(make.job(batch=3), status="failed", failure=make.fault("crashed")),
    )

    assert [("ok", "ok", 1), ("failed", "failed", 1), ("answer", text, 1)] == found
    assert 1 == len(bad(report))


def test_every_cell_is_counted_once():
    report, found = counted(
        make.profile(make.job(batch=1)),
        make.profile(make.job(batch=2), flags=["contended"], validity="invalid"),
        make.profile(make.job(batch=3), status="failed", failure=make.fault("oom")),
        make.profile(make.job(batch=4), status="pruned"),
        jobs=[make.job(batch=5)],
    )

    assert report.expected == sum(number for _, _, number in found)
