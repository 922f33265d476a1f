"""Tables: one row per cell, every mark explained, numbers flush right."""

import pytest

from farm.report import tables, words
from farm.report.record import Report
from farm.report.table import Column, Datum, Table
from tests.farm import make
from tests.farm.report import sample
from tests.farm.report.test_model import build


@pytest.fixture(scope="module")
def report() -> Report:
    return sample.report()


@pytest.mark.parametrize("wide", [True, False])
def test_the_overview_has_one_row_per_cell_in_order(report, wide):
    """Nothing is sorted away, nothing is left out."""
    table = tables.overview(report, wide=wide)

    assert [each.model for each in report.cells] == [row[0].text for row in table.rows]
    assert {len(table.columns)} == {len(row) for row in table.rows}


@pytest.mark.parametrize("wide", [True, False])
def test_every_mark_and_every_dash_of_a_measured_cell_has_a_reason(report, wide):
    """`~` and `–` are never left to be guessed: the cell knows, and a note says it."""
    table = tables.overview(report, wide=wide)
    measured = [at for at, each in enumerate(report.cells) if each.figures]

    marked = [
        (column, datum)
        for at in measured
        for column, datum in zip(table.columns, table.rows[at], strict=True)
        if column.right and (datum.text.endswith("~") or datum.text == words.UNKNOWN)
    ]

    assert marked
    for column, datum in marked:
        assert datum.why
        assert any(f" {column.title}: {datum.why} (" in each for each in table.notes)


@pytest.mark.parametrize(
    ("had", "range_"), [(["14)"], ", has 14)"), (["9)", "14)", ""], ", has 9 to 14)"), ([""], "")]
)
def test_what_the_cells_had_of_what_was_needed_is_a_range(had, range_):
    cells = "1 cell" if len(had) == 1 else f"{len(had)} cells"

    assert f"too few{range_} ({cells})" == tables._counted("too few", had)


def test_a_number_of_another_writer_that_nobody_can_read_is_left_out():
    """Thousands of digits in somebody's document spoil no table."""
    assert "too few, has 9) (2 cells)" == tables._counted("too few", ["9" * 5000 + ")", "9)"])


def test_a_constant_axis_has_no_column(report):
    """What holds for all cells stands above the table."""
    headers = [each.header for each in tables.overview(report).columns]

    assert "device" not in headers
    assert "precision" in headers


def test_the_narrow_overview_fits_a_terminal(report):
    """Labels of ordinary length leave room for every figure within 100 columns."""
    table = tables.overview(report)
    widths = [
        max(len(each.header), *(len(row[at].text) for row in table.rows))
        for at, each in enumerate(table.columns)
    ]

    assert sum(widths) + 2 * (len(widths) - 1) <= 100


def test_problems_are_the_cells_that_are_not_good(report):
    """Every cell without a good answer, with its reason."""
    table = tables.problems(report)

    assert [each.title for each in report.cells if each.state != "ok"] == [
        row[0].text for row in table.rows
    ]
    assert all(row[2].text for row in table.rows)


def test_quality_says_its_sign_and_its_word(report):
    """Colour alone says nothing: each state has a sign and a word."""
    shown = {tables.quality(each).text for each in report.cells}

    assert {"✓ stable", "! drifting", "! noisy", "✗ contended", "○ out of memory"} < shown
    assert all(each[0] in "✓!✗○?" and each[1] == " " for each in shown)


def test_systems_show_the_shared_facts_once():
    """Two machines: what they have in common in one table, what differs in another."""
    jobs = [make.job(batch=1), make.job(batch=8)]
    profiles = [make.profile(jobs[0]), make.profile(jobs[1], system_id=make.OTHER_SYSTEM)]
    report = build(jobs, *profiles)

    same, apart = (*tables.systems(report), None)[:2]

    assert "Same on every system" == same.title
    assert apart is None or not {row[0].text for row in same.rows} & {
        row[0].text for row in apart.rows
    }


def test_origins_say_a_constant_once(report):
    """A column that repeats itself becomes a note."""
    table = tables.origins(report)

    assert "where" not in [each.header for each in table.columns]
    assert any("where: laptop cpu:0" in each for each in table.notes)


def test_a_row_sorts_by_its_number():
    """A table keeps the number beside its text."""
    table = Table("t", (Column("n", right=True),), ((Datum("1.50~", 1.5),),))

    assert 1.5 == table.rows[0][0].value
