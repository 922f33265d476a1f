"""Reading an ONNX file. The numbers of the fields are those of `onnx.proto3` of the specification.

No weight is read, only where it lies, so gigabytes of them cost nothing.
"""

import mmap
import os
import struct
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from farm.archive import Files
from farm.errors import Refused
from farm.graphs.graph import TYPES, Graph, Node, Port, Weight
from farm.graphs.wire import Damaged, Span, Value, Wire

SUFFIX: Final = ".onnx"

# Fields of a tensor that hold its numbers as they lie in memory: float_data, raw_data, double_data.
_PLAIN: Final = (4, 9, 10)
_DEEPEST: Final = 100  # graphs within graphs
_IN_FUNCTION: Final = 7  # the field of the nodes of a function
_SHORT: Final = 8  # integers that are read: as many as a shape has axes
_MOST_AXES: Final = 64  # as many as numpy can have; the product of 100,000 lengths takes 20 s


def is_graph(reference: str) -> bool:
    """Return whether a reference names an ONNX file, by its words."""
    return reference.lower().endswith(SUFFIX)


def read(path: Path) -> Graph:
    """Return what the file holds. Raises Refused if it cannot be read or is no whole ONNX model."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reading(Wire(data)).model()
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error
    except (Damaged, ValueError) as error:  # ValueError: an empty file
        raise Refused(f"{path.name} is no ONNX model", why=str(error)) from error


def files(path: Path, graph: Graph, *, name: str) -> Files:
    """Return the model and the files with its weights by their names in a bundle; name: its own.

    Raises Refused for weights that are not there.
    """
    found = [(name, path)]
    for each in graph.external:
        beside = path.parent / each
        if not os.path.isfile(beside):
            raise Refused(f"{path.name} keeps weights in {each!r}, which is not beside it")
        found.append((str(PurePosixPath(name).parent / each), beside))
    return found


class _Reading:
    """One file being read; what is found in inner graphs is gathered in one list."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._nodes: list[Node] = []
        self._weights: list[Weight] = []

    def model(self) -> Graph:
        wire = self._wire
        opsets: dict[str, int] = {}
        graph: Value | None = None
        for number, value in wire.fields(wire.whole):
            if number == 7:
                graph = value
            elif number == 8:
                said = dict(wire.fields(value))
                opsets[wire.text(said.get(1))] = _whole(said.get(2))
            elif number == 25:  # a function: nodes, as in a graph
                self._graph(value, depth=1, node=_IN_FUNCTION, weight=0)
        if not isinstance(graph, tuple):
            raise Damaged("it holds no graph")
        self._graph(graph, depth=0)
        constant = {each.name for each in self._weights}
        ports = [self._port(each) for each in wire.spans(graph, 11)]
        return Graph(
            opsets=opsets,
            inputs=[each for each in ports if each.name not in constant],
            nodes=self._nodes,
            weights=self._filled(),
        )

    def _graph(self, span: Value, *, depth: int, node: int = 1, weight: int = 5) -> None:
        if depth > _DEEPEST:
            raise Damaged(f"graphs within graphs, more than {_DEEPEST} deep")
        at = 0  # where the runtime counts a node: it takes out constant ones first
        for number, value in self._wire.fields(span):
            if number == node:
                found = self._node(value, depth=depth, at=None if node == _IN_FUNCTION else at)
                at += found.op != "Constant"
            elif number == weight:
                self._weights.append(self._weight(value))

    def _node(self, span: Value, *, depth: int, at: int | None) -> Node:
        """Note a node and what is in it. at: its number in its graph, for one without a name."""
        texts: dict[int, list[str]] = {number: [] for number in (1, 2, 3, 4, 7)}
        attributes: list[Value] = []
        for number, value in self._wire.fields(span):
            if number in texts:
                texts[number].append(self._wire.text(value))
            elif number == 5:
                attributes.append(value)
        op = "".join(texts[4])
        node = Node(
            name="".join(texts[3]) or ("" if at is None else f"{op}_{at}"),
            op=op,
            domain="".join(texts[7]),
            inputs=tuple(texts[1]),
            outputs=tuple(texts[2]),
            words={},
        )
        self._nodes.append(node)
        for each in attributes:
            self._attribute(each, node, depth=depth)
        return node

    def _attribute(self, span: Value, node: Node, *, depth: int) -> None:
        """Note a text, read a graph, and take the tensor that a constant node stands for."""
        name = ""
        for number, value in self._wire.fields(span):
            if number == 1:
                name = self._wire.text(value)
            elif number == 4:
                node.words[name] = self._wire.text(value)
            elif number == 5 and node.op in ("Constant", "ConstantOfShape") and node.outputs:
                weight = self._weight(value)
                self._weights.append(msgspec.structs.replace(weight, name=node.outputs[0]))
            elif number in (6, 11):
                self._graph(value, depth=depth + 1)

    def _filled(self) -> list[Weight]:
        """Return the weights, those of a node ConstantOfShape in the shape that it is given."""
        shapes = {each.name: each for each in self._weights if each.dtype == "int64"}
        filling = [node for node in self._nodes if node.op == "ConstantOfShape"]
        fills = {name: node for node in filling for name in node.outputs[:1]}
        found = []
        for weight in self._weights:
            if (node := fills.get(weight.name)) is not None:
                shape = shapes.get(node.inputs[0]) if node.inputs else None
                if (
                    shape is None
                    or len(shape.values) != shape.size
                    or min(shape.values, default=0) < 0
                ):
                    continue  # it depends on what the model is called with
                weight = msgspec.structs.replace(weight, dims=shape.values, span=None, values=())
            found.append(weight)
        return found

    def _weight(self, span: Value) -> Weight:
        wire = self._wire
        dims: list[int] = []
        name, kind, place, values = "", 0, None, None
        said: dict[str, str] = {}
        for number, value in wire.fields(span):
            if number == 1:
                dims += wire.wholes(value)
            elif number == 2:
                kind = _whole(value)
            elif number == 8:
                name = wire.text(value)
            elif number == 7:
                values = value
            elif number in _PLAIN and isinstance(value, tuple):
                place = value
            elif number == 13:
                pair = dict(wire.fields(value))
                said[wire.text(pair.get(1))] = wire.text(pair.get(2))
        _check_shape(name, dims)
        weight = Weight(name=name, dtype=TYPES.get(kind, ("", 0))[0], dims=tuple(dims), span=place)
        if "location" in said:
            return _outside(weight, said)
        return msgspec.structs.replace(weight, values=self._short(weight, values))

    def _short(self, weight: Weight, packed: Value | None) -> tuple[int, ...]:
        if weight.dtype != "int64" or weight.size > _SHORT:
            return ()
        if packed is not None:
            return tuple(self._wire.wholes(packed))
        raw = self._wire.bytes(weight.span)
        return struct.unpack(f"<{len(raw) // 8}q", raw[: len(raw) // 8 * 8])

    def _port(self, span: Span) -> Port:
        wire = self._wire
        said = dict(wire.fields(span))
        tensor = dict(wire.fields(said.get(2))).get(1)
        of = dict(wire.fields(tensor))
        shape = of.get(2)
        return Port(
            name=wire.text(said.get(1)),
            dtype=TYPES.get(_whole(of.get(1)), ("", 0))[0],
            shape=None
            if shape is None
            else tuple(self._axis(each) for each in wire.spans(shape, 1)),
        )

    def _axis(self, span: Span) -> int | str | None:
        said = dict(self._wire.fields(span))
        length = said.get(1)
        if isinstance(length, int) and length > 0:  # exporters of old wrote 0 for an open axis
            return length
        return self._wire.text(said.get(2)) or None


def _check_shape(name: str, dims: list[int]) -> None:
    if len(dims) > _MOST_AXES:
        raise Damaged(f"the shape of {name!r} has {len(dims)} axes")
    if any(each < 0 for each in dims):
        raise Damaged(f"the shape of {name!r} is {dims}")


def _outside(weight: Weight, said: dict[str, str]) -> Weight:
    """Return the weight where its numbers lie: beside the model, and nowhere else."""
    location, start = said["location"], said.get("offset", "0")
    path = PurePosixPath(location)
    if path.is_absolute() or ".." in path.parts or "\\" in location or not path.parts:
        raise Damaged(f"it keeps weights in {location!r}, which is not beside it")
    if not (start.isdecimal() and len(start) < 19):
        raise Damaged(f"the weights {weight.name!r} begin at {start[:20]!r}")
    span = (int(start), int(start) + weight.nbytes)
    return msgspec.structs.replace(weight, file=str(path), span=span)


def _whole(value: Value | None) -> int:
    return value if isinstance(value, int) else 0
