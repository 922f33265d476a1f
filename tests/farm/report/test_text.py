"""The text forms: read by people once, kept as golden files, harmless for any name."""

import csv
import io
import json
import re

import pytest

from farm import schema
from farm.report import text
from farm.report.record import Figures, Report
from farm.report.table import Table
from tests.farm.report import hostile, sample


@pytest.mark.parametrize("name", ["report.json", "report.md", "report.csv", "report.txt"])
def test_each_form_is_as_it_was_when_a_person_read_it(name):
    """A change of a form is seen; `python -m tests.farm.report.sample` accepts it."""
    golden = (sample.GOLDEN / name).read_text("utf-8")

    assert golden == sample.forms()[name]


def test_all_forms_show_equal_numbers():
    """JSON, CSV and Markdown come from one record."""
    report = sample.report()
    rows = list(csv.DictReader(io.StringIO(text.comma_separated(report))))
    plain = json.loads(schema.encode(report))

    for cell, row in zip(plain["cells"], rows, strict=True):
        figures = cell.get("figures", {})
        assert str(figures.get("p50_ms", "")) == row["p50_ms"]
        assert str(figures.get("throughput_items_per_s", "")) == row["throughput_items_per_s"]


def test_csv_gives_the_reason_of_every_empty_figure():
    """Empty means null, and the column beside it says why."""
    report = sample.report()

    rows = list(csv.DictReader(io.StringIO(text.comma_separated(report))))

    measured = [each for each in rows if each["state"] in ("ok", "invalid")]
    assert all(
        bool(row[column]) != bool(row[f"{column}_reason"])
        for row in measured
        for column in ("p50_lo_ms", "p99_hi_ms", "cpu_rss_peak_bytes", "proc_cv")
    )
    assert "no_permission" in {each["cpu_rss_peak_bytes_reason"] for each in measured}


def test_csv_has_a_column_for_every_figure_and_none_twice():
    """A figure that is added appears; a header names one column."""
    header = text.comma_separated(sample.report()).splitlines()[0].split(",")

    assert len(header) == len(set(header))
    assert set(Figures.__struct_fields__) - set(header) == {"p50_half_ms"}


def test_csv_defuses_formulas_and_keeps_the_rest():
    """A spreadsheet runs no name; the csv module reads every cell back."""
    report = hostile.report()

    rows = list(csv.reader(io.StringIO(text.comma_separated(report))))

    assert len({len(row) for row in rows}) == 1
    assert not [cell for row in rows for cell in row if re.match(r"\s*[=+@|-]", cell)]
    assert "'" + hostile.NAMES[6] in {cell for row in rows for cell in row}


def test_markdown_rows_stay_rows():
    """No name opens a column, a heading, a link, code or HTML."""
    lines = text.markdown(hostile.report()).splitlines()

    rows = [each for each in lines if each.startswith("|")]
    assert {"|"} == {each[-1] for each in rows}
    assert not [each for each in lines if re.search(r"(?<!\\)<|(?<!\\)`|(?<!\\)\]\(", each)]
    assert [] == [each for each in lines if "\x1b" in each or "\u202e" in each]
    assert all(each[2:].startswith(_SECTIONS) for each in lines if each.startswith("## "))


_SECTIONS = (*(" Answers", " Cells", " Failed", " What", " The machine", " Where", " How", " Not"),)


def test_blocks_begin_with_the_state_and_leave_out_empty_sections():
    """The first line says whether that is all; what has no rows is not shown."""
    report = sample.report()

    blocks = text.blocks(report)

    assert "PARTIAL" in str(blocks[0])
    assert all(each.rows for each in blocks if isinstance(each, Table))


def test_a_simulated_report_says_so_before_any_number():
    """The banner comes before the first table."""
    import msgspec

    report: Report = msgspec.structs.replace(sample.report(), simulated=True)

    blocks = text.blocks(report)

    first_table = next(at for at, each in enumerate(blocks) if isinstance(each, Table))
    assert any("SIMULATED" in str(each) for each in blocks[:first_table])
