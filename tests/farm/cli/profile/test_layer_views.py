"""Layer tables for a person: hotspots first, and a reason for what is not there."""

import msgspec
import pytest

from farm import schema
from farm.cli.profile import layer_views
from farm.report.table import Table
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
        msgspec.structs.replace(row, share_pct=share, pct_of_peak=peak)
        for row, share, peak in zip(table.rows, (80.0, 20.0), (3.5, 10.0), strict=True)
    ]

    found = taken(here, Worker("conv", "fc", rows=rows, null_reasons={}))

    assert (
        "hotspot    conv: 80 % of the time at 3.500 % of peak" == layer_views.about(found.table)[0]
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
    assert any(each.startswith("~: ") for each in shown.notes)
    schema.encode(found)
