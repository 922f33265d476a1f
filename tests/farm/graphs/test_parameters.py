"""The laws of parameters: what was learned by the use that is made of it, and no number twice."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from farm import graphs
from tests.farm.graphs import drawn
from tests.farm.graphs.drawn import FLOAT, HALF, INT64, node


def _graph(tmp_path: Path, nodes: Sequence[Any], **weights: Any) -> graphs.Graph:
    path = drawn.save(
        tmp_path / "net.onnx",
        nodes,
        inputs=[("x", FLOAT, ["batch", 4, 8, 8])],
        outputs=[("y", FLOAT, None)],
        weights=weights,
    )
    return graphs.read(path)


def _split(graph: graphs.Graph) -> tuple[set[str], set[str]]:
    parameters, constants = graphs.parameters(graph)
    return {each.name for each in parameters}, {each.name for each in constants}


def test_weights_and_biases_are_parameters(tmp_path: Path) -> None:
    graph = graphs.read(drawn.mlp(tmp_path / "net.onnx"))

    parameters, constants = graphs.parameters(graph)

    assert 2410 == sum(each.size for each in parameters)
    assert [] == constants


def test_what_a_norm_has_counted_is_a_constant(tmp_path: Path) -> None:
    """Scale and bias were learned; the mean and variance of a batch norm were not."""
    graph = _graph(
        tmp_path,
        [node("BatchNormalization", "x scale bias mean var", "y")],
        **{name: np.ones(4, np.float32) for name in ("scale", "bias", "mean", "var")},
    )

    assert ({"scale", "bias"}, {"mean", "var"}) == _split(graph)


def test_shapes_indices_and_single_numbers_are_constants(tmp_path: Path) -> None:
    graph = _graph(
        tmp_path,
        [node("Mul", "x half", "a"), node("Reshape", "a to", "y")],
        half=np.float32(0.5),
        to=np.array([1, -1]),
    )

    assert (set(), {"half", "to"}) == _split(graph)


def test_quantised_weights_are_parameters_and_their_scales_are_not(tmp_path: Path) -> None:
    """Integers of 8 bits, and the bias of 32 bits that goes with them."""
    graph = _graph(
        tmp_path,
        [
            node("DequantizeLinear", "w scale zero", "wf", axis=0),
            node("DequantizeLinear", "b bscale", "bf", axis=0),
            node("Conv", "x wf bf", "y"),
        ],
        w=np.ones((2, 4, 3, 3), np.int8),
        scale=np.ones(2, np.float32),
        zero=np.zeros(2, np.int8),
        b=np.ones(2, np.int32),
        bscale=np.ones(2, np.float32),
    )

    assert ({"w", "b"}, {"scale", "zero", "bscale"}) == _split(graph)
    assert "int8" == graphs.precision(graph)


def test_a_filled_tensor_is_a_parameter_where_a_layer_learns(tmp_path: Path) -> None:
    """The test graphs of `onnx` fill their weights with one number; a mask is filled as well."""
    one = numpy_helper.from_array(np.ones(1, np.float32), "")
    graph = _graph(
        tmp_path,
        [
            node("ConstantOfShape", "of", "w", value=one),
            node("ConstantOfShape", "of", "mask", value=one),
            node("Transpose", "w", "wt", perm=[0, 1, 2, 3]),
            node("Conv", "x wt", "c"),
            node("Add", "c mask", "y"),
        ],
        of=np.array([4, 4, 1, 1]),
    )

    parameters, constants = _split(graph)

    assert {"w"} == parameters
    assert {"mask", "of"} == constants


def test_what_no_node_uses_is_neither(tmp_path: Path) -> None:
    """A runtime drops it before it loads it."""
    graph = _graph(tmp_path, [node("Relu", "x", "y")], left=drawn.weight(4, 4))

    assert (set(), set()) == _split(graph)


def test_a_tensor_that_is_used_twice_counts_once(tmp_path: Path) -> None:
    """Tied weights are one tensor."""
    graph = _graph(
        tmp_path,
        [node("MatMul", "x w", "a"), node("MatMul", "a w", "y")],
        w=drawn.weight(8, 8),
    )

    assert ["w"] == [each.name for each in graphs.parameters(graph)[0]]


@pytest.mark.parametrize(("kind", "word"), [(FLOAT, "fp32"), (HALF, "fp16")])
def test_the_precision_is_that_of_the_parameters(tmp_path: Path, kind: int, word: str) -> None:
    assert word == graphs.precision(graphs.read(drawn.mlp(tmp_path / "net.onnx", kind=kind)))


def test_most_of_the_bytes_decide_the_precision(tmp_path: Path) -> None:
    """A norm that stays wide in a model of half precision does not make it a wide model."""
    graph = _graph(
        tmp_path,
        [node("Cast", "x", "h", to=HALF), node("MatMul", "h w", "a"), node("Mul", "a g", "y")],
        w=drawn.weight(8, 64, dtype="float16"),
        g=drawn.weight(64),
    )

    assert "fp16" == graphs.precision(graph)


def test_without_parameters_the_inputs_decide(tmp_path: Path) -> None:
    path = drawn.save(
        tmp_path / "net.onnx",
        [node("Neg", "x", "y")],
        inputs=[("n", INT64, [2]), ("x", HALF, [2])],
        outputs=[("y", HALF, [2])],
    )
    nothing = drawn.save(
        tmp_path / "ints.onnx",
        [node("Neg", "n", "y")],
        inputs=[("n", INT64, [2])],
        outputs=[("y", INT64, [2])],
    )

    assert "fp16" == graphs.precision(graphs.read(path))
    assert "unspecified" == graphs.precision(graphs.read(nothing))


def test_what_is_filled_for_nobody_fills_nothing(tmp_path: Path) -> None:
    """A `ConstantOfShape` without an output is odd, and no reason to tell nothing of the rest."""
    graph = _graph(
        tmp_path,
        [node("ConstantOfShape", "n", ""), node("MatMul", "x w", "y")],
        n=np.array([4, 3]),
        w=np.ones((8, 8), np.float32),
    )

    assert ({"w"}, {"n"}) == _split(graph)


@pytest.mark.parametrize(
    ("dtype", "word"), [("float32", "fp32"), ("bfloat16", "bf16"), ("int64", "int64")]
)
def test_a_type_has_a_short_word(dtype: str, word: str) -> None:
    assert word == graphs.word(dtype)
