"""A layer profile of another tool, or a block of a layer CSV, for the verbs about traces.

A layer profile tells nothing of a GPU but how long layers took on it, so every other number is null
with that reason. Source: `traces.md` §11.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct, structs, to_builtins

from farm.graphs import profile
from farm.schema import null_paths
from farm.trace import files, importers, importing_ort
from farm.trace.blocks import BlockRow
from farm.trace.files import Address, Chosen
from farm.trace.importing.names import NAMES
from farm.trace.importing.original import Value
from farm.trace.importing.record import LayerProfile, LayerTime, OpTime, Tool

_INITIALISED: Final = b'"session_initialization"'
_NO_GPU: Final = "not_supported: a layer profile tells the times of layers alone"
_NO_RUN: Final = "not_supported: the file tells its layers, and no run of the model"
_UNTOLD: Final = "not_probed: the file does not tell"
_OF_RUNS: Final = ("step_ms", "step_ms_mean", "runs", "coverage", "session_init_ms")


def tensorrt(data: bytes, where: Address) -> LayerProfile:
    """Return what `trtexec --exportProfile` wrote; raises Bad or Refused as `importers` does."""
    found = importers.of_bytes(data, where.path)
    rows = [_row(each) for each in found.rows]
    return _made(str(where.path), "TensorRT", rows, {"iterations": found.iterations})


def layer_csv(data: bytes, where: Address) -> LayerProfile:
    """Return a block of a layer CSV, the last one if none is named; rows are as printed.

    Raises as `farm.trace.files.block` does.
    """
    found: Chosen = files.block(data, where)
    iterations = None if found.about is None else found.about.iterations
    return _made(
        found.name, "layer CSV", [_row(each) for each in found.rows], {"iterations": iterations}
    )


def onnxruntime(data: bytes, where: Address) -> LayerProfile:
    """Return what the profiler of ONNX Runtime wrote; of three runs or more the first is dropped.

    A step is a run of the model, and coverage the share of it in nodes. Raises Bad as
    `importing_ort.table` does.
    """
    name = where.path.name
    table = importing_ort.table(data, name=name)
    runs = profile.of_bytes(data, name=name)
    kept_us = np.array([each.total_us for each in runs[table.warmup_iterations :]])
    rows = [
        LayerTime(
            layer=each.layer,
            op=each.type or None,
            ms_per_step=each.average_ms,
            pct=each.share_pct,
            count_per_step=each.calls_per_iteration,
            median_ms=each.median_ms,
            std_ms=each.std_ms,
        )
        for each in table.rows
    ]
    mean = float(kept_us.mean()) / 1e3
    told: dict[str, Value] = {
        "step_ms": float(np.median(kept_us)) / 1e3,
        "step_ms_mean": mean,
        "runs": len(runs),
        "iterations": table.iterations,
        "coverage": sum(each.ms_per_step for each in rows) / mean if mean else None,
        "session_init_ms": _initialised(data),
    }
    return _made(str(where.path), "ONNX Runtime", rows, told)


def _row(row: BlockRow) -> LayerTime:
    return LayerTime(
        layer=row.layer,
        op=None,
        ms_per_step=row.average_ms,
        pct=row.share_pct,
        count_per_step=None,
        median_ms=row.median_ms,
        std_ms=row.std_ms,
    )


def _made(name: str, tool: Tool, rows: Sequence[LayerTime], told: dict[str, Value]) -> LayerProfile:
    sums: dict[str, Value] = {
        "layers": len(rows),
        "layer_sum_ms": sum(each.ms_per_step for each in rows),
    }
    found = LayerProfile(
        trace=name,
        tool=tool,
        metrics=dict.fromkeys((*NAMES, *_OF_RUNS)) | told | sums,
        rows=list(rows),
        ops=_by_op(rows),
        null_reasons={},
    )
    reasons = {path: _reason(path, tool) for path in null_paths(to_builtins(found))}
    return structs.replace(found, null_reasons=reasons)


def _by_op(rows: Sequence[LayerTime]) -> list[OpTime]:
    """Return the rows by kind of work; none of those that do not tell theirs."""
    groups: dict[str, list[LayerTime]] = {}
    for each in rows:
        if each.op is not None:
            groups.setdefault(each.op, []).append(each)
    found = [
        OpTime(
            op=op,
            ms_per_step=sum(each.ms_per_step for each in some),
            pct=sum(each.pct for each in some),
            layers=len(some),
            count_per_step=sum(each.count_per_step or 0.0 for each in some),
        )
        for op, some in groups.items()
    ]
    return sorted(found, key=lambda each: (-each.ms_per_step, each.op))


def _reason(path: str, tool: Tool) -> str:
    name = path.rpartition(".")[2]
    if name in ("step_ms", *_OF_RUNS):
        return _UNTOLD if tool == "ONNX Runtime" else _NO_RUN
    if name == "std_ms" and tool == "ONNX Runtime":
        return "single_sample"
    return _NO_GPU if path.startswith("metrics.") and name in NAMES else _UNTOLD


class _Event(Struct, frozen=True):
    dur: float = 0.0


def _initialised(data: bytes) -> float | None:
    """Return how long the session took to begin, in ms; None where the file does not tell."""
    at = data.find(_INITIALISED)
    if at < 0:
        return None
    begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
    line = data[begin : end if end >= 0 else len(data)].strip().strip(b"[],")
    try:
        took = msgspec.json.decode(line, type=_Event).dur
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return took / 1e3 if 0 <= took < 1e15 else None
