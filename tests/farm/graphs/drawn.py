"""Small ONNX files for tests: written by the library `onnx`, which the product does without."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64
Axis = int | str | None
Value = tuple[str, int, Sequence[Axis] | None]


def save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    *,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    weights: Mapping[str, Any] | None = None,
    opset: int = 17,
    domains: Sequence[str] = (),
    external: str = "",
) -> Path:
    """Write a graph; external: the file beside it that holds its weights, "" for none."""
    graph = helper.make_graph(
        list(nodes),
        "drawn",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in (weights or {}).items()],
    )
    sets = [helper.make_opsetid("", opset), *(helper.make_opsetid(each, 1) for each in domains)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    more = {"save_as_external_data": True, "location": external, "size_threshold": 0}
    onnx.save(model, path, **(more if external else {}))
    return path


def node(op: str, inputs: str, outputs: str, name: str = "", **attributes: Any) -> onnx.NodeProto:
    """Return a node; inputs and outputs by their names with blanks between."""
    return helper.make_node(op, inputs.split(), outputs.split(), name=name, **attributes)


def weight(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Return small random numbers."""
    return (np.random.default_rng(seed).standard_normal(shape) / 8).astype(dtype)


def mlp(path: Path, *, kind: int = FLOAT, external: str = "") -> Path:
    """Write 64-32-10 with a bias, 2,410 parameters and 4,736 FLOPs an item; its axis is `batch`."""
    dtype = "float16" if kind == HALF else "float32"
    return save(
        path,
        [
            node("MatMul", "x w0", "h", "first"),
            node("Add", "h b0", "hb", "bias"),
            node("Relu", "hb", "a", "act"),
            node("MatMul", "a w1", "y0", "second"),
            node("Add", "y0 b1", "y", "last"),
        ],
        inputs=[("x", kind, ["batch", 64])],
        outputs=[("y", kind, ["batch", 10])],
        weights={
            "w0": weight(64, 32, dtype=dtype),
            "b0": weight(32, dtype=dtype),
            "w1": weight(32, 10, dtype=dtype),
            "b1": weight(10, dtype=dtype),
        },
        external=external,
    )


# ── bytes that no library writes ─────────────────────────────────────────────────────────────────


def varint(value: int) -> bytes:
    """Return a whole number as a protocol buffer holds it."""
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, value: int | bytes) -> bytes:
    """Return a field of a message: a whole number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value
