"""What is shown of a layer profile: shares first, what is unknown as such, and how to see more."""

import json
from pathlib import Path

from farm.cli.profile import layered_views
from farm.report.table import Table
from farm.trace.files import Address
from farm.trace.importing import choosing, layered
from farm.trace.importing.record import LayerProfile
from tests.farm.graphs.test_profile import run, written


def tensorrt(layers: int) -> LayerProfile:
    rows = [{"name": f"fc{at}", "timeMs": 10 + at, "averageMs": 1 + at} for at in range(layers)]
    data = json.dumps([{"count": 10}, *rows]).encode()
    return layered.tensorrt(data, Address(Path("t.json"), None))


def onnxruntime(folder: Path, runs: int) -> LayerProfile:
    events = [each for at in range(runs) for each in run(1000 * at, ("fc", "Gemm", 50 + at))]
    path = written(folder / "o.json", events)
    return layered.onnxruntime(path.read_bytes(), Address(path, None))


def lines(found: LayerProfile) -> list[str]:
    return [each for each in layered_views.summary(found) if isinstance(each, str)]


def test_the_summary_tells_the_runs_and_how_much_of_them_is_known(tmp_path: Path) -> None:
    found = lines(onnxruntime(tmp_path, 5))

    assert "the last 4 of 5 runs: the first prepares memory" in found[1]
    assert "step         0.06250 ms, median of the runs · mean 0.06250 ms" == found[2]
    assert "layers       1, 0.05250 ms together, 84 % of a run" == found[3]
    assert "GPU          –" in found[4]


def test_what_tells_no_run_has_no_step() -> None:
    found = lines(tensorrt(3))

    assert "input        layer profile of TensorRT, 10 iterations" == found[1]
    assert [] == [each for each in found if each.startswith("step")]


def test_the_costliest_come_first_and_the_rest_is_counted() -> None:
    (table,) = (each for each in layered_views.summary(tensorrt(10)) if isinstance(each, Table))

    assert [f"fc{at}" for at in range(9, 1, -1)] == [row[-1].text for row in table.rows]
    assert table.notes[0].startswith("8 of 10 layers, ")
    assert table.notes[0].endswith("`farm profile kernels` shows more")
    assert "shares count" in table.notes[-1]


def test_nothing_that_matches_is_said() -> None:
    table = layered_views.layers(choosing.layers(tensorrt(2), pattern="conv"))

    assert "no layer here" == table.notes[0]


def test_kinds_of_work_are_a_table_of_their_own(tmp_path: Path) -> None:
    table = layered_views.ops(choosing.ops(onnxruntime(tmp_path, 2)))

    assert [["100.0", "0.05050", "1", "1", "Gemm"]] == [
        [cell.text for cell in row] for row in table.rows
    ]
