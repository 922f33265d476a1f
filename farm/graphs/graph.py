"""The parts of an ONNX graph: its inputs, its nodes, and its constant tensors."""

import math
from typing import Final

from msgspec import Struct

from farm.graphs.wire import Span

# The types of a tensor by their numbers in the format, with the bits of one element.
TYPES: Final = {
    **{1: ("float32", 32), 2: ("uint8", 8), 3: ("int8", 8), 4: ("uint16", 16), 5: ("int16", 16)},
    **{6: ("int32", 32), 7: ("int64", 64), 8: ("string", 0), 9: ("bool", 8), 10: ("float16", 16)},
    **{11: ("float64", 64), 12: ("uint32", 32), 13: ("uint64", 64), 14: ("complex64", 64)},
    **{15: ("complex128", 128), 16: ("bfloat16", 16), 17: ("float8e4m3fn", 8)},
    **{18: ("float8e4m3fnuz", 8), 19: ("float8e5m2", 8), 20: ("float8e5m2fnuz", 8)},
    **{21: ("uint4", 4), 22: ("int4", 4), 23: ("float4e2m1", 4), 24: ("float8e8m0", 8)},
    **{25: ("uint2", 2), 26: ("int2", 2)},
}
_BITS: Final = dict(TYPES.values())


class Port(Struct, frozen=True, kw_only=True):
    """An input of the graph. dtype: "" for what is no tensor; shape: None where it is not said.

    An axis is its length, its name where it is open, or None where it is open and has no name.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


class Weight(Struct, frozen=True, kw_only=True):
    """A constant tensor: an initializer, or what a node stands for that computes nothing.

    file: "" for the model's own file, else one beside it. span: where its numbers lie there, None
    where they lie nowhere as they are in memory. values: of a short list of integers.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    file: str = ""
    span: Span | None = None
    values: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        return (self.size * _BITS.get(self.dtype, 0) + 7) // 8


class Node(Struct, frozen=True, kw_only=True):
    """A node, also one of a graph inside another. words: its attributes that are text.

    name: where the file gives none, that of ONNX Runtime, such as `MatMul_3`; "" within a function.
    """

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    words: dict[str, str]


class Graph(Struct, frozen=True, kw_only=True):
    """A whole file. inputs: those that the caller gives. weights, nodes: of all graphs in it."""

    opsets: dict[str, int]
    inputs: list[Port]
    nodes: list[Node]
    weights: list[Weight]

    @property
    def external(self) -> list[str]:
        """The files beside the model that hold weights, each once."""
        return sorted({each.file for each in self.weights if each.file})
