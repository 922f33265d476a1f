"""What the verbs of the instrument read: files of its own and of other tools, sound and not."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from farm import interchange, schema
from farm.trace import blocks, files, opening, sidecar
from tests.farm import make
from tests.farm.graphs.test_profile import run, written
from tests.farm.interchange import calls
from tests.farm.trace import g8
from tests.farm.trace.importing.made import INFERENCE

HEADER: Final = "layer,time_pct,average_ms,median_ms,std_dev,total_ms\n"
# As `trtexec --exportProfile` writes it.
TRT: Final[list[dict[str, Any]]] = [
    {"count": 100},
    {"name": "conv1 + relu1", "timeMs": 12.0, "averageMs": 0.12, "medianMs": 0.11},
    {"name": "fc", "timeMs": 4.0, "averageMs": 0.04, "medianMs": 0.04},
]
_LAYER: Final = TRT[1]
_MODEL: Final = "{task: depth, model: demo, identity: 'predict.py:predict', cost: none}"


def _roster(models: str, *, tag: str = "farm.roster/v1", more: str = "") -> str:
    return f"schema: {tag}\nname: demo\nmodels: {models}\n{more}"


FILES: Final[dict[str, str | bytes]] = {
    # functions and models
    "predict.py": "def predict(rgb):\n    return rgb\n",
    "later.py": "async def predict(rgb):\n    return rgb\n",
    "yields.py": "def predict(rgb):\n    yield rgb\n",
    "slash.py": "def predict(rgb, /):\n    return rgb\n",
    "scaled.py": "def predict(rgb, scale):\n    return rgb * scale\n",
    "bare.py": "",
    "broken.onnx": b"\x08\x07 no graph",
    # layer profiles
    "trt.json": json.dumps(TRT),
    "idle.json": json.dumps([TRT[0], {**_LAYER, "timeMs": 0.0}]),
    "odd.json": json.dumps([TRT[0], {**_LAYER, "averageMs": "fast"}]),
    "counted.json": json.dumps([{"count": "many"}, _LAYER]),
    "half.json": '[{"count": 100}, {"name": "conv1',
    "other.json": '{"a": 1}',
    "deep.json": "[" * 100_000,
    "foreign.csv": "a,b\n1,2\n",
    "empty.csv": "",
    "bare.csv": HEADER,
    "cells.csv": f"{HEADER}conv1,50.0,0.1\n",
    "words.csv": f"{HEADER}conv1,half,0.1,0.1,,10\n",
    "latin.csv": "layer\xe9".encode("latin-1"),
    "taken.csv": HEADER + "conv1,100.0,0.1,0.1,,10\n",
    "taken.json": '{"mine": true}',
    # rosters
    "roster.yaml": _roster(f"[{_MODEL}]"),
    "rosters/none.yaml": _roster("[]"),
    "rosters/tag.yaml": _roster(f"[{_MODEL}]", tag="farm.rooster/v1"),
    "rosters/key.yaml": _roster(f"[{_MODEL}]", more="modles: []\n"),
    "rosters/field.yaml": _roster("[{task: depth, model: demo, identiy: x}]"),
    "rosters/task.yaml": _roster("[{model: demo}]"),
    "rosters/blank.yaml": _roster("[{task: depth, model: '  '}]"),
    "rosters/twice.yaml": _roster(f"[{_MODEL}, {_MODEL}]"),
    "rosters/batch.yaml": _roster("[{task: depth, model: demo, batch: -1}]"),
    "rosters/many.yaml": _roster("[{task: depth, model: demo, batch: many}]"),
    "rosters/cost.yaml": _roster("[{task: depth, model: demo, cost: free}]"),
    "rosters/place.yaml": _roster("[{task: depth, model: demo, file: out/demo.json}]"),
    "rosters/absent.yaml": _roster(f"[{_MODEL}, {{task: depth, model: other}}]"),
    "rosters/syntax.yaml": "models: [",
}
ARRAYS: Final[dict[str, dict[str, Any]]] = {
    "rgb.npz": {"rgb": np.zeros((4, 6, 3), "uint8")},
    "bgr.npz": {"bgr": np.zeros((4, 6, 3), "uint8")},
    "unnamed.npz": {"arr_0": np.zeros((4, 6, 3), "uint8")},
    "x.npz": {"x": np.zeros((1, 64), "float32")},
    "two.npz": {"x": np.zeros((1, 64), "float32"), "y": np.zeros((1, 64), "float32")},
    "flat.npz": {"x": np.zeros(64, "float32")},
    "void.npz": {"x": np.zeros((0, 64), "float32")},
    "nothing.npz": {},
    "pickled.npz": {"x": np.array([{"a": 1}], dtype=object)},
}


def furnish(folder: Path) -> None:
    """Write them all: these files, the arrays, a layer CSV of two blocks, callable JSONs."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, arrays in ARRAYS.items():
        np.savez(folder / name, allow_pickle=True, **arrays)
    whole = (folder / "x.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (folder / "flipped.npz").write_bytes(whole.replace(b"\0" * 64, b"\1" * 64))
    for names in (("a", "b"), ("a", "b", "c")):
        _append(folder / "layers.csv", make.layer_table(*names))
    _callables(folder)
    _traces(folder)


def _append(csv: Path, table: schema.LayerTable) -> None:
    job = make.job()
    known = sidecar.about(table, written_at=make.STARTED, job_id=job.job_id, model="mlp", batch=1)
    files.append(csv, blocks.rows_of(table), known)


def _callables(folder: Path) -> None:
    data = interchange.encode(calls.document())
    (folder / "callable.json").write_bytes(data)
    plain: Mapping[str, Any] = json.loads(data)
    for name, changes in {
        "silent.json": {"latency_samples_ms": []},
        "frozen.json": {"latency_samples_ms": [1.0, 0.0]},
        "worded.json": {"latency_samples_ms": "fast"},
        "newer.json": {"schema": "farm.callable/v2"},
    }.items():
        (folder / name).write_text(json.dumps({**plain, **changes}))
    (folder / "nan.json").write_bytes(data.replace(b'"p50_ms": 2.0', b'"p50_ms": NaN'))


def _traces(folder: Path) -> None:
    g8.file(folder / "trace.json.gz")
    g8.file(folder / "cpu.json", g8.host())
    lost = [each for each in g8.events() if each["cat"] != "kernel"]
    g8.file(folder / "unrecorded.json", lost)
    g8.file(folder / "no-events.json", [])
    marks = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]
    g8.file(folder / "only-marks.json", marks)
    ort = [g8.span("model_run", 1, 90, cat="Session"), g8.span("fc_kernel_time", 2, 50, cat="Node")]
    (folder / "ort.json").write_text(json.dumps(ort))
    written(folder / "runs.json", [*run(0, ("fc", "Gemm", 50)), *run(100, ("fc", "Gemm", 40))])
    (folder / "libreyolo.json").write_text(json.dumps(INFERENCE))
    (folder / "original.json").write_text(
        '{"schema": "libreyolo.profile.analysis/v1", "step_ms": 1}'
    )
    kept = schema.encode(opening.opened(folder / "trace.json.gz").analysis)
    (folder / "analysis.json").write_bytes(kept.replace(bytes(folder) + b"/", b""))
    (folder / "newer-analysis.json").write_bytes(
        kept.replace(b"farm.analysis/v1", b"farm.analysis/v2")
    )
    (folder / "cut-analysis.json").write_bytes(kept[: len(kept) // 2])
