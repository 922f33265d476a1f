"""The law of reading a damaged ONNX file: what can be told of it, or that it is none, at once."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from farm import graphs
from farm.errors import FarmError, Refused
from tests.farm.graphs import drawn
from tests.farm.graphs.drawn import FLOAT, INT64, field, node


@pytest.mark.parametrize("axes", [64, 65])
def test_a_tensor_of_more_axes_than_any_is_refused(tmp_path: Path, axes: int) -> None:
    """A file cannot make the reader multiply without end: 64 axes are as many as numpy has."""
    tensor = field(8, b"w") + field(2, FLOAT) + field(1, b"\x02" * axes)
    path = tmp_path / "net.onnx"
    path.write_bytes(field(7, field(5, tensor)))

    if axes == 64:
        assert 2**64 == graphs.read(path).weights[0].size
        return
    with pytest.raises(Refused, match="is no ONNX model") as caught:
        graphs.read(path)
    assert "the shape of 'w' has 65 axes" == caught.value.why


def _kinds(folder: Path) -> list[bytes]:
    """Return small models with what the reader looks into: graphs, shapes, weights elsewhere."""
    branch = helper.make_graph(
        [node("Mul", "x s", "o", "m")],
        "branch",
        [],
        [helper.make_tensor_value_info("o", FLOAT, ["batch", 4])],
        [numpy_helper.from_array(np.ones(4, np.float32), "s")],
    )
    ones = numpy_helper.from_array(np.ones(1, "f"), "")
    tiny = np.ones((2, 4), np.int8)
    drawn.save(
        folder / "of_all.onnx",
        [
            node("Constant", "", "k", value=numpy_helper.from_array(drawn.weight(4, 4), "")),
            node("ConstantOfShape", "n", "f", value=ones),
            node("DequantizeLinear", "q scale zero", "d"),
            node("Transpose", "d", "t"),
            node("If", "c", "b", then_branch=branch, else_branch=branch),
            node("MatMul", "x k", "a"),
        ],
        inputs=[("x", FLOAT, ["batch", 4]), ("c", TensorProto.BOOL, []), ("i", INT64, [None])],
        outputs=[("a", FLOAT, None)],
        weights={"n": np.array([4, 3]), "q": tiny, "scale": np.float32(1), "zero": np.int8(0)},
    )
    drawn.mlp(folder / "outside.onnx", external="net.weights")
    return [(folder / f"{name}.onnx").read_bytes() for name in ("of_all", "outside")]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return _kinds(tmp_path_factory.mktemp("kinds"))


EDITS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 6), st.binary(max_size=6)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=200)
@given(which=st.integers(0, 1), edits=EDITS)
def test_a_damaged_model_is_read_or_refused_and_nothing_else(
    kinds: list[bytes],
    tmp_path_factory: pytest.TempPathFactory,
    which: int,
    edits: list[tuple[float, int, bytes]],
) -> None:
    """Whatever bytes were cut out and put in; each edit: where, how many out, and what in."""
    data = kinds[which]
    for place, cut, put in edits:
        at = int(place * len(data))
        data = data[:at] + put + data[at + cut :]
    path = tmp_path_factory.mktemp("damaged") / "net.onnx"
    path.write_bytes(data)

    with suppress(FarmError):
        graph = graphs.read(path)
        graphs.precision(graph)
        assert all(each.nbytes >= 0 for each in graph.weights)
        given = graphs.spec(graph.inputs, model="net.onnx")
        graphs.check(graph.inputs, given, model="net.onnx", batch=2)
        graphs.files(path, graph, name="net.onnx")
