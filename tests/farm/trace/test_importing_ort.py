"""The laws of a foreign profile of ONNX Runtime as a table: shares that add up, and doubts told."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from farm import schema
from farm.errors import Bad
from farm.trace import importing_ort
from tests.farm.graphs.test_profile import run, written

SHARED = Path(__file__).parents[4] / "shared" / "data" / "traces" / "import"
NODES = (("conv", "Conv", 60), ("relu", "Relu", 5), ("relu", "Relu", 15))


def _profile(tmp_path: Path, *times: int, nodes: Sequence[tuple[str, str, int]] = NODES) -> Path:
    """Return a profile with a run for each factor."""
    events = [
        each
        for at, factor in enumerate(times)
        for each in run(10_000 * at, *((name, op, took * factor) for name, op, took in nodes))
    ]
    return written(tmp_path / "p.json", events)


def _table(path: Path) -> schema.LayerTable:
    return importing_ort.table(path.read_bytes(), name=path.name)


def test_the_rows_are_the_nodes_in_their_order(tmp_path: Path) -> None:
    """Shares of the whole; a name that comes again gets `#2`; the type is the operator."""
    table = _table(_profile(tmp_path, 1, 1))

    assert ["conv", "relu", "relu#2"] == [each.layer for each in table.rows]
    assert ["Conv", "Relu", "Relu"] == [each.type for each in table.rows]
    assert [75.0, 6.25, 18.75] == [each.share_pct for each in table.rows]
    assert [0.06, 0.005, 0.015] == [each.average_ms for each in table.rows]
    assert ("imported", "wall", "cpu") == (table.method, table.clock, table.device)


@pytest.mark.parametrize(("runs", "dropped"), [(1, 0), (2, 0), (3, 1), (5, 1)])
def test_the_first_of_three_runs_is_dropped(tmp_path: Path, runs: int, dropped: int) -> None:
    """It prepares memory, and is far too long; where there are few runs, it is all one has."""
    table = _table(_profile(tmp_path, 9, *[1] * (runs - 1)))

    assert (dropped, runs - dropped) == (table.warmup_iterations, table.iterations)
    assert (0.06 if dropped else (9 + runs - 1) / runs * 0.06) == pytest.approx(
        table.rows[0].average_ms
    )


def test_rows_of_less_than_ten_microseconds_are_not_reliable(tmp_path: Path) -> None:
    """The profiler counts whole microseconds."""
    table = _table(_profile(tmp_path, 1, 1, 1))

    assert [True, False, True] == [each.reliable for each in table.rows]


@pytest.mark.seed("S0.33")
def test_nothing_is_said_of_a_clean_run(tmp_path: Path) -> None:
    """No clean run lies beside it, so nothing is scaled to one; and each null has its reason."""
    table = _table(_profile(tmp_path, 1, 1, 1))

    assert (None, None) == (table.clean_ms, table.perturbation)
    assert [None] * 3 == [each.scaled_ms for each in table.rows]
    assert 0.01 == pytest.approx(table.unattributed_ms)
    assert table == schema.decode(schema.encode(table), schema.LayerTable)


def test_runs_without_nodes_are_bad(tmp_path: Path) -> None:
    """A profile of which only the session was kept has no layers."""
    with pytest.raises(Bad, match="holds no whole run"):
        _table(_profile(tmp_path, 1, 1, nodes=()))


def test_a_real_profile_is_read() -> None:
    """Four nodes over five runs, of which the first took four times as long."""
    path = SHARED / "onnxruntime_profile.json"
    if not path.is_file():
        pytest.skip("the shared data are not here")

    table = _table(path)

    assert ["y_nchwc", "ReorderOutput", "gap", "sm"] == [each.layer for each in table.rows]
    assert (1, 4) == (table.warmup_iterations, table.iterations)
    assert 100.0 == pytest.approx(sum(each.share_pct for each in table.rows))
    assert [True, True, False, False] == [each.reliable for each in table.rows]
    assert 0.161 == table.rows[0].total_ms
