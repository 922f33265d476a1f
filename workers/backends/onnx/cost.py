"""What a graph needs: parameters from the file, FLOPs and bytes from the shapes of one run each.

The run whose FLOPs count takes the graph as it is written, no node fused or moved to a layout that
pads; so the count is that of the model. The bytes are those of the nodes as they really run: what
is fused never reaches the memory. Both runs are profiled, and nothing of them is timed.
"""

import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from farm import graphs
from farm.errors import FarmError
from farm.graphs import Graph, Weight
from farm.graphs import profile as ort
from farm.graphs.profile import NodeRun, Shape
from farm.trace.layers import numbered
from workers.backends import LoadFailed
from workers.backends.numbers import Array
from workers.backends.onnx import session
from workers.backends.onnx.flops import ATTENTION, FREE, flops
from workers.backends.onnx.session import Settings
from workers.record import CostReading

# Nodes that move nothing, or only run others.
_STILL: Final = {
    *("Constant", "Flatten", "Identity", "If", "Loop", "Optional", "Reshape", "Scan", "Shape"),
    *("Size", "Squeeze", "Unsqueeze"),
}
# Nodes that read no more of their first input than they return.
_PICKING: Final = {"Gather", "GatherElements", "GatherND", "Slice", "Split"}
_BYTES: Final = {"float": 4, "double": 8, "int64": 8, "uint64": 8, "int32": 4, "uint32": 4} | {
    **{"float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1}
}
# How the runtime calls a node into which it fused another, and one in a layout of its own.
_FUSED, _PADDED = "fused ", "_nchwc"
_CHAIN: Final = 6  # nodes that are fused into one
_INTEGER: Final = ("ConvInteger", "MatMulInteger", "QGemm", "QLinearConv", "QLinearMatMul")


@dataclass(frozen=True, kw_only=True)
class _Count:
    """What one run of the graph as it is written shows. by_node: FLOPs by the name of a node."""

    flops: int
    by_node: dict[str, int]
    counted: int
    unknown: dict[str, int]
    attention: str
    integers: bool

    @property
    def coverage(self) -> float:
        """The share of calls with a formula, among those that compute anything."""
        calls = self.counted + sum(self.unknown.values())
        return self.counted / calls if calls else 1.0


def read(
    settings: Settings, graph: Graph, outputs: Sequence[str], inputs: Mapping[str, Array]
) -> CostReading:
    """Return what the graph needs for one call, which is a batch of items.

    Parameters are floating and quantised tensors but for statistics, scales and single numbers;
    nobody knows which of them were trained. What a run shows is None, with its reason, where the
    graph cannot be run as it is written, or its profile cannot be read.
    """
    reasons = {
        "params_trainable": "not_applicable: a graph does not say what was trained",
        "activation_peak_bytes": "not_supported: onnxruntime does not tell",
    }
    found: dict[str, Any] = _parameters(graph)
    try:
        written = _nodes(settings, outputs, inputs, optimised=False)
        count = _count(written, graph)
        found |= _flops(count, reasons)
    except (FarmError, LoadFailed) as error:
        why = " ".join(str(error).split())[:200]
        found["flops_status"] = f"failed: {why}"
        for field in ("flops_per_batch", "flops_counter", "flops_coverage", "attention"):
            reasons[field] = f"error: {why}"
        count = None
    try:
        as_run = _nodes(settings, outputs, inputs, optimised=True)
        found["bytes_lower_bound_per_batch"] = sum(_moved(each) for each in as_run)
        found["flops_by_layer"] = _by_layer(as_run, count, graph) if count else {}
    except (FarmError, LoadFailed) as error:
        reasons["bytes_lower_bound_per_batch"] = f"error: {' '.join(str(error).split())[:200]}"
    return CostReading(**found, reasons=reasons)


def _parameters(graph: Graph) -> dict[str, Any]:
    parameters, constants = (_stored_once(each) for each in graphs.parameters(graph))
    dtypes: dict[str, int] = {}
    for each in parameters:
        name = graphs.word(each.dtype)
        dtypes[name] = dtypes.get(name, 0) + each.nbytes
    return {
        "params_total": sum(each.size for each in parameters),
        "params_unique_bytes": sum(each.nbytes for each in parameters),
        "buffers_bytes": sum(each.nbytes for each in constants),
        "param_dtypes": dtypes,
    }


def _stored_once(weights: Iterable[Weight]) -> list[Weight]:
    """Return the tensors, those that lie at the same place in the same file once."""
    return list({(each.file, each.span or each.name): each for each in weights}.values())


def _nodes(
    settings: Settings, outputs: Sequence[str], inputs: Mapping[str, Array], *, optimised: bool
) -> list[NodeRun]:
    """Return the nodes of one run. Raises LoadFailed or a FarmError where it fails."""
    with tempfile.TemporaryDirectory(prefix="farm-cost-") as folder:
        prefix = Path(folder) / "profile"
        opened = session.opened(settings, profile=prefix, optimised=optimised, packed=False)
        with session.explained(settings.path.name):
            opened.session.run(outputs, inputs)
        return ort.read(Path(opened.session.end_profiling()))[0].nodes


# ── FLOPs ────────────────────────────────────────────────────────────────────────────────────────


def _count(nodes: Iterable[NodeRun], graph: Graph) -> _Count:
    equations = _equations(graph)
    by_node: dict[str, int] = {}
    unknown: dict[str, int] = {}
    seen: list[NodeRun] = []
    for node in nodes:
        found = _flops_of(node, equations)
        if found is None:
            unknown[node.op] = unknown.get(node.op, 0) + 1
        elif node.op not in FREE:
            by_node[node.name] = by_node.get(node.name, 0) + found
            seen.append(node)
    return _Count(
        flops=sum(by_node.values()),
        by_node=by_node,
        counted=len(seen),
        unknown=unknown,
        attention=_attention(nodes),
        integers=any(each.op in _INTEGER for each in seen),
    )


def _equations(graph: Graph) -> dict[str, str]:
    """Return the equation of each Einsum by its name; none where one name has several.

    A name is that of one graph, and a graph inside another may have it once more.
    """
    found: dict[str, set[str]] = {}
    for each in graph.nodes:
        if each.op == "Einsum":
            found.setdefault(each.name, set()).add(each.words.get("equation", ""))
    return {name: each.pop() for name, each in found.items() if len(each) == 1}


def _flops_of(node: NodeRun, equations: Mapping[str, str]) -> int | None:
    inputs, outputs = node.shapes()
    shapes = [shape for _, shape in inputs], [shape for _, shape in outputs]
    return flops(node.op, *shapes, equation=equations.get(node.name, ""))


def _flops(count: _Count, reasons: dict[str, str]) -> dict[str, Any]:
    integers = ", integer products included" if count.integers else ""
    found: dict[str, Any] = {
        "flops_counter": f"shapes of a run, onnxruntime {session.runtime().__version__}{integers}",
        "flops_coverage": count.coverage,
        "uncounted_ops": list(count.unknown),
        "attention": count.attention,
    }
    if count.unknown and not count.counted:
        reasons["flops_per_batch"] = f"not_supported: no formula for {next(iter(count.unknown))}"
        return {**found, "flops_status": "unsupported"}
    status = "partial" if count.unknown else "measured"
    return {**found, "flops_status": status, "flops_per_batch": count.flops}


def _attention(nodes: Iterable[NodeRun]) -> str:
    """Return what computes attention: an operator for it, or a softmax between two products."""
    found = {each.op for each in nodes if each.op in ATTENTION}
    softmax = product = False
    for each in nodes:
        if each.op == "Softmax":
            softmax = product
        elif each.op == "MatMul" and all(len(shape) > 2 for _, shape in each.shapes()[0]):
            if softmax:
                found.add("matrix_products")
            product, softmax = True, False
    return "+".join(sorted(found)) or "none"


def _by_layer(as_run: Iterable[NodeRun], count: _Count, graph: Graph) -> dict[str, int]:
    """Return the FLOPs of the nodes as they run, by the names that a layer table gives them.

    Each takes those of the node that it stands for. One that stands for several is counted by its
    own shapes, unless its layout pads the channels.
    """
    layers = {(each.name, each.number, each.op): each for each in as_run}
    names = numbered(key[0] for key in layers)
    working = {
        name: node for name, node in zip(names, layers.values(), strict=True) if node.op not in FREE
    }
    origins = _origins({name: each.name for name, each in working.items()}, count, graph)
    found: dict[str, int] = {}
    for name, node in working.items():
        if name in origins:
            found[name] = count.by_node[origins[name]]
        elif not node.name.endswith(_PADDED):
            found[name] = _flops_of(node, {}) or 0
    return {name: each for name, each in found.items() if each}


def _origins(layers: Mapping[str, str], count: _Count, graph: Graph) -> dict[str, str]:
    """Return which counted node each layer stands for, every node once; layers: their own names.

    A fused node keeps the name of one of its parts, or is called after its output: then the nearest
    counted node before that is the one.
    """
    makers = {output: node for node in graph.nodes for output in node.outputs}
    free = set(count.by_node)
    found: dict[str, str] = {}
    waiting: dict[str, list[str]] = {}
    for layer, name in layers.items():
        plain = name.removeprefix(_FUSED)
        if plain in free:
            found[layer] = plain
            free.discard(plain)
        elif name.endswith(_PADDED):
            waiting[layer] = [name.removesuffix(_PADDED)]
    for _ in range(_CHAIN):
        for layer, tensors in list(waiting.items()):
            made = [makers[each] for each in tensors if each in makers]
            if origin := next((each.name for each in made if each.name in free), ""):
                found[layer] = origin
                free.discard(origin)
                del waiting[layer]
            else:
                waiting[layer] = [each for node in made for each in node.inputs]
    return found


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────


def _moved(node: NodeRun) -> int:
    """Return the bytes of what a node reads and writes, each tensor once."""
    if node.op in _STILL:
        return 0
    inputs, outputs = ([_nbytes(each) for each in some] for some in node.shapes())
    if node.op in _PICKING and inputs:
        inputs[0] = min(inputs[0], sum(outputs))
    return sum(inputs) + sum(outputs)


def _nbytes(tensor: Shape) -> int:
    dtype, shape = tensor
    return _BYTES.get(dtype, 0) * math.prod(shape)
