"""The laws of reading an ONNX file: what `onnx` wrote is what is found, without `onnx`."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from farm import graphs
from farm.errors import Refused
from tests.farm.graphs import drawn
from tests.farm.graphs.drawn import FLOAT, INT64, field, node

LIGHT = "onnx/backend/test/data/light/light_squeezenet.onnx"


def _bytes_of(path: Path, weight: graphs.Weight) -> bytes:
    assert weight.span is not None
    file = path.parent / weight.file if weight.file else path
    return file.read_bytes()[slice(*weight.span)]


def test_inputs_nodes_and_opsets_are_found(tmp_path: Path) -> None:
    """Inputs with their open axes by name, nodes in order, the version of the operators."""
    graph = graphs.read(drawn.mlp(tmp_path / "net.onnx"))

    assert [graphs.Port(name="x", dtype="float32", shape=("batch", 64))] == graph.inputs
    assert ["first", "bias", "act", "second", "last"] == [each.name for each in graph.nodes]
    assert ("MatMul", ("x", "w0"), ("h",)) == (
        graph.nodes[0].op,
        graph.nodes[0].inputs,
        graph.nodes[0].outputs,
    )
    assert {"": 17} == graph.opsets


def test_weights_are_found_where_they_lie(tmp_path: Path) -> None:
    """Name, type, shape and place; the bytes at that place are the numbers."""
    path = drawn.mlp(tmp_path / "net.onnx")

    found = {each.name: each for each in graphs.read(path).weights}

    assert {"w0": (64, 32), "b0": (32,), "w1": (32, 10), "b1": (10,)} == {
        name: each.dims for name, each in found.items()
    }
    assert 64 * 32 * 4 == found["w0"].nbytes
    assert drawn.weight(64, 32).tobytes() == _bytes_of(path, found["w0"])


def test_weights_beside_the_model_are_found(tmp_path: Path) -> None:
    """External data: the file is named, and belongs to the model's files."""
    path = drawn.mlp(tmp_path / "sub" / "net.onnx", external="net.weights")

    graph = graphs.read(path)

    assert ["net.weights"] == graph.external
    (found,) = [each for each in graph.weights if each.name == "w1"]
    assert drawn.weight(32, 10).tobytes() == _bytes_of(path, found)
    assert [("sub/net.onnx", path), ("sub/net.weights", path.parent / "net.weights")] == list(
        graphs.files(path, graph, name="sub/net.onnx")
    )


def test_missing_weights_are_told(tmp_path: Path) -> None:
    path = drawn.mlp(tmp_path / "net.onnx", external="net.weights")
    (tmp_path / "net.weights").unlink()

    with pytest.raises(Refused, match=r"net.onnx keeps weights in 'net.weights', which is not"):
        graphs.files(path, graphs.read(path), name="net.onnx")


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "a/../../b", "c:\\x", ""])
def test_weights_elsewhere_are_refused(tmp_path: Path, location: str) -> None:
    """A file that travels names nothing outside of its folder."""
    path = drawn.mlp(tmp_path / "net.onnx", external="net.weights")
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = location
    path.write_bytes(model.SerializeToString())

    with pytest.raises(Refused, match=r"net.onnx is no ONNX model") as caught:
        graphs.read(path)

    assert "not beside it" in caught.value.why


@pytest.mark.parametrize("start", ["-1", "x", "9" * 19, "9" * 5000])
def test_weights_that_begin_nowhere_are_refused(tmp_path: Path, start: str) -> None:
    """No file is that long, and a number of thousands of digits is no reason to fail."""
    path = drawn.mlp(tmp_path / "net.onnx", external="net.weights")
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data.add(key="offset", value=start)
    path.write_bytes(model.SerializeToString())

    with pytest.raises(Refused, match=r"net.onnx is no ONNX model") as caught:
        graphs.read(path)

    assert f"begin at '{start[:20]}'" in caught.value.why


def test_inner_graphs_are_read_too(tmp_path: Path) -> None:
    """The nodes and weights of both branches of an `If` belong to the whole."""
    branches = [
        helper.make_graph(
            [node("Mul", f"x s{name}", f"o{name}", name)],
            name,
            [],
            [helper.make_tensor_value_info(f"o{name}", FLOAT, ["batch", 4])],
            [numpy_helper.from_array(np.ones(4, np.float32), f"s{name}")],
        )
        for name in ("then", "else")
    ]
    path = drawn.save(
        tmp_path / "net.onnx",
        [node("If", "c", "y", "choice", then_branch=branches[0], else_branch=branches[1])],
        inputs=[("x", FLOAT, ["batch", 4]), ("c", TensorProto.BOOL, [])],
        outputs=[("y", FLOAT, ["batch", 4])],
    )

    graph = graphs.read(path)

    assert {"choice", "then", "else"} == {each.name for each in graph.nodes}
    assert {"sthen", "selse"} == {each.name for each in graph.weights}


def test_a_node_without_a_name_has_that_of_the_runtime(tmp_path: Path) -> None:
    """Its operator and its number in its own graph, where constant nodes do not count."""
    constant = helper.make_node(
        "Constant", [], ["k"], value=numpy_helper.from_array(np.ones(3, np.float32))
    )
    branch = helper.make_graph(
        [constant, node("Add", "x k", "s"), node("Neg", "s", "o")],
        "branch",
        [],
        [helper.make_tensor_value_info("o", FLOAT, None)],
    )
    path = drawn.save(
        tmp_path / "net.onnx",
        [
            constant,
            node("Neg", "x", "a"),
            node("If", "c", "b", then_branch=branch, else_branch=branch),
            node("Add", "a b", "d", "mine"),
            node("Neg", "d", "y"),
        ],
        inputs=[("x", FLOAT, [3]), ("c", TensorProto.BOOL, [])],
        outputs=[("y", FLOAT, [3])],
    )

    nodes = [each for each in graphs.read(path).nodes if each.op != "Constant"]

    inside = ["Add_0", "Neg_1"]
    assert ["Neg_0", "If_1", *inside, *inside, "mine", "Neg_3"] == [each.name for each in nodes]


def test_constant_nodes_are_weights(tmp_path: Path) -> None:
    """A `Constant` holds its tensor; a `ConstantOfShape` fills the shape that it is given."""
    path = drawn.save(
        tmp_path / "net.onnx",
        [
            node("Constant", "", "k", value=numpy_helper.from_array(drawn.weight(4, 4), "")),
            node("ConstantOfShape", "n", "f", value=numpy_helper.from_array(np.ones(1, "f"), "")),
            node("ConstantOfShape", "open", "g"),
            node("MatMul", "x k", "a"),
            node("MatMul", "a f", "y"),
        ],
        inputs=[("x", FLOAT, [1, 4]), ("open", INT64, [2])],
        outputs=[("y", FLOAT, [1, 3])],
        weights={"n": np.array([4, 3])},
    )

    found = {each.name: each for each in graphs.read(path).weights}

    assert (4, 4) == found["k"].dims
    assert (4, 3) == found["f"].dims
    assert "g" not in found  # its size depends on what the graph is called with


def test_what_is_filled_for_nobody_is_no_weight(tmp_path: Path) -> None:
    """A `ConstantOfShape` without an output is odd, and no reason to read no further."""
    path = drawn.save(
        tmp_path / "net.onnx",
        [
            node("ConstantOfShape", "n", "", value=numpy_helper.from_array(np.ones(1, "f"), "")),
            node("Identity", "x", "y"),
        ],
        inputs=[("x", FLOAT, [1, 4])],
        outputs=[("y", FLOAT, [1, 4])],
        weights={"n": np.array([4, 3])},
    )

    assert ["n"] == [each.name for each in graphs.read(path).weights]


def test_an_initializer_among_the_inputs_is_no_input(tmp_path: Path) -> None:
    """Old files list their weights as inputs too."""
    path = drawn.save(
        tmp_path / "net.onnx",
        [node("MatMul", "x w", "y")],
        inputs=[("x", FLOAT, [1, 4]), ("w", FLOAT, [4, 2])],
        outputs=[("y", FLOAT, [1, 2])],
        weights={"w": drawn.weight(4, 2)},
    )

    assert ["x"] == [each.name for each in graphs.read(path).inputs]


def test_open_axes_and_other_types_are_told(tmp_path: Path) -> None:
    """No name, no shape, and no tensor: each is what it is."""
    path = drawn.save(
        tmp_path / "net.onnx",
        [node("Identity", "a", "y")],
        inputs=[("a", FLOAT, [None, 3]), ("b", INT64, []), ("c", FLOAT, None)],
        outputs=[("y", FLOAT, None)],
    )
    model = onnx.load(path)
    model.graph.input.append(helper.make_tensor_sequence_value_info("d", FLOAT, [2]))
    path.write_bytes(model.SerializeToString())

    found = [(each.name, each.dtype, each.shape) for each in graphs.read(path).inputs]

    assert [
        ("a", "float32", (None, 3)),
        ("b", "int64", ()),
        ("c", "float32", None),
        ("d", "", None),
    ] == found


ARRAYS = st.sampled_from(
    ["float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool", "uint16"]
)


@settings(max_examples=40)
@given(ARRAYS, st.lists(st.integers(0, 5), max_size=4), st.booleans())
def test_every_tensor_is_as_onnx_has_it(
    tmp_path_factory: Any, dtype: str, shape: list[int], as_list: bool
) -> None:
    """Type, shape, size in bytes, and a short list of integers by its values."""
    array = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype)
    tensor = numpy_helper.from_array(array, "w")
    if as_list and dtype == "int64":
        tensor = helper.make_tensor("w", INT64, shape, array.ravel().tolist())
    graph = helper.make_graph([node("Identity", "w", "y")], "g", [], [], [tensor])
    path = tmp_path_factory.mktemp("tensor") / "net.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())

    (found,) = graphs.read(path).weights

    assert (dtype, tuple(shape), array.nbytes) == (found.dtype, found.dims, found.nbytes)
    if dtype == "int64" and array.size <= 8:
        assert tuple(array.ravel().tolist()) == found.values


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", ""),
        (b"hello world" * 20, ""),
        (b"\x08\x08", "it holds no graph"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(data)

    with pytest.raises(Refused, match=r"net.onnx is no ONNX model") as caught:
        graphs.read(path)

    assert why in caught.value.why


@given(cut=st.floats(0.01, 0.99))
def test_a_file_that_is_cut_off_is_refused(tmp_path_factory: Any, cut: float) -> None:
    path = drawn.mlp(tmp_path_factory.mktemp("cut") / "net.onnx")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * cut)])

    with pytest.raises(Refused, match="is no ONNX model"):
        graphs.read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot read"):
        graphs.read(tmp_path / "none.onnx")


def test_graphs_deeper_than_any_are_refused(tmp_path: Path) -> None:
    """A file cannot make the reader call itself without end."""
    inner = b""
    for _ in range(101):
        inner = field(1, field(4, b"If") + field(5, field(1, b"then_branch") + field(6, inner)))
    path = tmp_path / "net.onnx"
    path.write_bytes(field(7, inner))

    with pytest.raises(Refused, match="is no ONNX model") as caught:
        graphs.read(path)

    assert "deep" in caught.value.why


def test_a_real_graph_has_the_nodes_that_onnx_finds() -> None:
    """One of the light test graphs: as many nodes and initializers as the library counts."""
    spec = find_spec("onnx")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parents[1] / LIGHT

    graph, known = graphs.read(path), onnx.load(path).graph

    assert len(known.node) == len(graph.nodes)
    assert {each.name for each in known.initializer} <= {each.name for each in graph.weights}
    assert [("data_0", (1, 3, 224, 224))] == [(each.name, each.shape) for each in graph.inputs]
