"""Layer tables for a person: hotspots first, and a reason for what is not there."""

import msgspec
import pytest

from farm import schema
from farm.cli.profile import layer_views
from farm.report.table import Table
from farm.trace import files
from tests.farm import make
from tests.farm.cli.profile.layer_worker import Worker, taken


@pytest.mark.seed("S0.14", "S0.30", "S0.31")
def test_the_table_shows_hotspots_first_and_says_so(here) -> None:
    """The share is the first number; the median and the deviation stand beside the mean."""
    table = make.layer_table("first", "hot", "last")
    rows = [
        msgspec.structs.replace(row, share_pct=share)
        for row, share in zip(table.rows, (30.0, 60.0, 10.0), strict=True)
    ]

    (shown,) = layer_views.measured(taken(here, Worker("first", "hot", "last", rows=rows)))

    assert isinstance(shown, Table)
    assert ["hot", "first", "last"] == [row[0].text for row in shown.rows]
    headers = [each.header for each in shown.columns]
    assert ["layer", "time %", "average ms", "median ms", "std ms"] == headers[:5]
    assert "sorted by share; profile_layers.csv#1 has them in the order of execution" in shown.notes
    lines = (here / "profile_layers.csv").read_text().splitlines()
    assert ["layer", "first", "hot", "last"] == [line.split(",")[0] for line in lines]


@pytest.mark.seed("S0.32", "S2.26")
def test_the_instrument_s_cost_is_told_as_a_factor_with_its_word(here) -> None:
    found = taken(here, Worker(profiled_ms=0.3, clean_ms=0.1, perturbation=2.0))

    (line,) = [each for each in layer_views.about(found.table) if each.startswith("overhead")]

    assert line.startswith(
        "overhead   3.00, moderate: an iteration took 0.3000 ms with the profile"
    )
    assert (3.0, "moderate") == (found.overhead_factor, found.overhead)


@pytest.mark.seed("S2.10")
def test_a_hotspot_reads_as_a_share_of_the_time_at_a_share_of_peak(here) -> None:
    table = make.layer_table("conv", "fc")
    rows = [
        msgspec.structs.replace(row, share_pct=share, median_ms=share / 1000, pct_of_peak=peak)
        for row, share, peak in zip(table.rows, (80.0, 20.0), (3.5, 10.0), strict=True)
    ]

    found = taken(here, Worker("conv", "fc", rows=rows, null_reasons={}))

    assert (
        "hotspot    conv: 80 % of the time by medians at 3.500 % of peak"
        == layer_views.about(found.table)[0]
    )
    (shown,) = layer_views.measured(found)
    assert ["layer", "time %", "of peak %"] == [each.header for each in shown.columns[:3]]


def test_what_is_null_in_a_table_has_its_reason_below_it(here) -> None:
    table = make.layer_table("a")
    rows = [msgspec.structs.replace(table.rows[0], scaled_ms=None, reliable=False)]
    why = {"rows.0.scaled_ms": "perturbation_too_high: 174 %", "rows.0.pct_of_peak": "not_probed"}

    found = taken(here, Worker("a", rows=rows, null_reasons=why))

    (shown,) = layer_views.measured(found)
    cells = {
        column.title: each.text for column, each in zip(shown.columns, shown.rows[0], strict=True)
    }
    assert ("–", "0.0498~") == (cells["of clean"], cells["median"])
    assert any(each.startswith("of clean –: ") and "174 %" in each for each in shown.notes)
    assert any(each.startswith("~ at a median: ") for each in shown.notes)
    schema.encode(found)


def test_a_row_that_one_iteration_carries_is_marked_at_its_share(here) -> None:
    """And the hotspot of the sentence is the one by medians."""
    table = make.layer_table("steady", "odd")
    rows = [
        msgspec.structs.replace(row, share_pct=share, average_ms=mean, pct_of_peak=10.0)
        for row, share, mean in zip(table.rows, (20.0, 80.0), (0.05, 0.2), strict=True)
    ]

    found = taken(here, Worker("steady", "odd", rows=rows))

    (shown,) = layer_views.measured(found)
    assert [("odd", "80.0~"), ("steady", "20.0~")] == [
        (row[0].text, row[1].text) for row in shown.rows
    ]
    assert "~ at a share: a few slow iterations carry it: see median" in shown.notes
    assert not any(each.startswith("~ at a median") for each in shown.notes)
    assert layer_views.about(found.table)[0].startswith("hotspot    steady: 50 %")


def test_a_block_that_is_known_shows_what_the_measurement_showed(here) -> None:
    """Its doubts, its cost, and what each row takes of a clean iteration."""
    table = make.layer_table("steady", "odd", "tiny")
    figures = ((50.0, 0.06, 0.06), (49.5, 0.0594, 0.03), (0.5, 0.0006, 0.0006))
    rows = [
        msgspec.structs.replace(
            row, share_pct=share, average_ms=mean, median_ms=median, total_ms=100 * mean
        )
        for row, (share, mean, median) in zip(table.rows, figures, strict=True)
    ]
    found = taken(
        here, Worker("steady", "odd", "tiny", rows=rows, clean_ms=0.1, unattributed_ms=0.03)
    )

    shown, gap, cost = layer_views.printed(files.read(files.address("profile_layers.csv#1")))

    assert isinstance(shown, Table)
    assert "of clean" == shown.columns[-1].title
    cells = {row[0].text: [each.text for each in row] for row in shown.rows}
    # of 0.1 ms clean, 0.12 of 0.15 is in rows
    assert ("50.0~", "0.0400") == (cells["steady"][1], cells["steady"][-1])
    assert ("49.5~", "0.0006~") == (cells["odd"][1], cells["tiny"][3])
    assert layer_views.OF_CLEAN in shown.notes
    assert ["~ at a share", "~ at a median"] == [
        each.split(":")[0] for each in shown.notes if each.startswith("~")
    ]
    assert ("", True) == (gap, str(cost).startswith("overhead   1.05, low"))
    assert str(cost) in layer_views.about(found.table)


def test_a_block_of_too_much_overhead_says_why_nothing_is_of_clean(here) -> None:
    taken(here, Worker("a", profiled_ms=0.3, clean_ms=0.1, perturbation=2.0))

    shown, *_ = layer_views.printed(files.read(files.address("profile_layers.csv#1")))

    assert isinstance(shown, Table)
    assert "–" == shown.rows[0][-1].text
    assert any(each.startswith("of clean –: ") and "200 %" in each for each in shown.notes)
