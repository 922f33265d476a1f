"""Which constant tensors of a graph are its parameters, and what precision they make it.

A graph says what is constant and not what was learned, so the use of a tensor decides. Parameters
are floating tensors and quantised ones; what a batch norm has counted, the scales and zero points
of a quantisation, shapes, indices and single numbers are constants beside them.
"""

from collections.abc import Iterable
from typing import Final

from farm.graphs.graph import Graph, Weight

_WORDS: Final = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
_SMALL: Final = ("int8", "uint8", "int4", "uint4", "int2", "uint2")

_NO_PARAMETERS: Final = {  # operator → its inputs that are none, by position
    "BatchNormalization": (3, 4),
    "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2),
    "QLinearConv": (1, 2, 4, 5, 6, 7),
    "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "ConvInteger": (2, 3),
    "MatMulInteger": (2, 3),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
    "Clip": (1, 2),
    "Pad": (1, 2, 3),
}
# Where integers of 32 bits are parameters: a quantised bias.
_BIASES: Final = {("DequantizeLinear", 0), ("QLinearConv", 8)}
# Whose inputs are parameters even where the graph fills them with one number.
_LEARNING: Final = {"BatchNormalization", "Conv", "ConvTranspose", "GRU", "Gemm", "LSTM", "MatMul"}

# What only looks at its first input in another way: its uses are those of what it looks at.
_VIEWS: Final = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}

Use = tuple[str, int]  # an operator, and which of its inputs


def parameters(graph: Graph) -> tuple[list[Weight], list[Weight]]:
    """Return the parameters and the other constants that a node uses; of one name the first."""
    uses = _uses(graph)
    filling = [node for node in graph.nodes if node.op == "ConstantOfShape"]
    filled = {name for node in filling for name in node.outputs[:1]}
    found: dict[str, Weight] = {}
    for weight in graph.weights:
        if weight.name in uses:
            found.setdefault(weight.name, weight)
    chosen = {
        name
        for name, weight in found.items()
        if _is_parameter(weight, uses[name], filled=name in filled)
    }
    return (
        [weight for name, weight in found.items() if name in chosen],
        [weight for name, weight in found.items() if name not in chosen],
    )


def precision(graph: Graph) -> str:
    """Return the word of what most of the parameters' bytes are: fp32, fp16, int8 …

    Without parameters that of the floating inputs counts; `unspecified` where there is neither.
    """
    count: dict[str, int] = {}
    for weight in parameters(graph)[0]:
        count[weight.dtype] = count.get(weight.dtype, 0) + weight.nbytes
    if not count:
        count = {each.dtype: 1 for each in reversed(graph.inputs) if each.dtype in _WORDS}
    return word(max(count, key=lambda dtype: count[dtype])) if count else "unspecified"


def word(dtype: str) -> str:
    """Return the short word of a type: float32 is fp32, int64 stays int64."""
    return _WORDS.get(dtype, dtype)


def _uses(graph: Graph) -> dict[str, set[Use]]:
    """Return what each tensor is used for; nodes come after those whose output they take."""
    uses: dict[str, set[Use]] = {}
    for node in reversed(graph.nodes):
        for position, name in enumerate(node.inputs):
            seen = uses.get(node.outputs[0], set()) if node.outputs else set()
            through = node.op in _VIEWS and position == 0
            uses.setdefault(name, set()).update(seen if through and seen else {(node.op, position)})
    return uses


def _is_parameter(weight: Weight, uses: Iterable[Use], *, filled: bool) -> bool:
    if not weight.dims:
        return False
    if filled and not all(op in _LEARNING and position for op, position in uses):
        return False
    if weight.dtype == "int32":
        return any(use in _BIASES for use in uses)
    if "float" not in weight.dtype and weight.dtype not in _SMALL:
        return False
    return any(position not in _NO_PARAMETERS.get(op, ()) for op, position in uses)
