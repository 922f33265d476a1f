"""The laws of inputs: by name, in the types that the graph takes, or the one that does not fit."""

import numpy as np
import pytest

from farm.graphs import Port
from farm.schema import Inputs, Model, Tensor, Workload
from workers.backends import LoadFailed
from workers.backends.onnx.feeding import feed

X = Port(name="x", dtype="float32", shape=("batch", 4))
HALF = Port(name="x", dtype="float16", shape=("batch", 4))


def _workload(spec=None, *, batch=2, digest=None):
    more = {} if digest is None else {"digest": digest}
    return Workload(
        model=Model(name="net.onnx", ref="net.onnx", source="file", digest="0"),
        inputs=Inputs(spec=spec or {}, **more),
        precision="unspecified",
        batch=batch,
        backend="onnx",
    )


def test_without_a_specification_the_graph_says_what_it_takes():
    found = feed([X], _workload(batch=3), npz="")

    assert ("float32", (3, 4)) == (found["x"].dtype.name, found["x"].shape)


def test_floats_are_cast_to_what_the_graph_takes():
    """A specification of float32 is what one writes without thinking; integers are never cast."""
    found = feed([HALF], _workload({"x": Tensor(shape=("batch", 4))}), npz="")

    assert "float16" == found["x"].dtype.name


def test_inputs_come_in_the_order_of_the_graph():
    ports = [X, Port(name="b", dtype="bool", shape=(2,))]
    spec = {"b": Tensor(shape=(2,), dtype="bool"), "x": Tensor(shape=("batch", 4))}

    assert ["x", "b"] == list(feed(ports, _workload(spec), npz=""))


@pytest.mark.seed("S0.2")
def test_arrays_of_an_npz_go_by_name_else_by_order(tmp_path):
    """Names that the graph knows count; where it knows none, their order does."""
    named, unnamed = tmp_path / "named.npz", tmp_path / "unnamed.npz"
    a, b = np.arange(8, dtype="float32").reshape(2, 4), np.array([True, False])
    np.savez(named, b=b, x=a)
    np.savez(unnamed, a, b)
    ports = [X, Port(name="b", dtype="bool", shape=(2,))]

    for file in (named, unnamed):
        found = feed(ports, _workload(), npz=str(file))

        np.testing.assert_array_equal(a, found["x"])
        np.testing.assert_array_equal(b, found["b"])


@pytest.mark.parametrize(
    ("port", "spec", "says", "hint"),
    [
        (
            Port(name="x", dtype="float32", shape=("batch", "seq")),
            {},
            "input 'x': nothing says how long 'seq' is",
            "write a number",
        ),
        (
            Port(name="x", dtype="float32", shape=("batch", None)),
            {},
            "input 'x' of net.onnx has an axis of any length without a name: [batch, ?]",
            "say it: inputs: {x: {shape: [batch, LENGTH]}}",
        ),
        (
            Port(name="x", dtype="int64", shape=("batch",)),
            {},
            "input 'x' of net.onnx is int64, and the graph does not say which numbers it takes",
            "say it: inputs: {x: {shape: [batch], dtype: int64, high: N}}",
        ),
        (X, {"x": Tensor(shape=("batch", 5))}, "input 'x' of net.onnx cannot have the shape", ""),
        (X, {"y": X, "z": X}, "net.onnx takes no input 'y': it takes x", ""),
        (
            Port(name="x", dtype="int64", shape=(4,)),
            {"x": Tensor(shape=(4,), dtype="int32", high=3)},
            "input 'x' of net.onnx is int64, not int32",
            "",
        ),
        (
            Port(name="x", dtype="bfloat16", shape=(4,)),
            {"x": Tensor(shape=(4,), dtype="bfloat16")},
            "input 'x' is bfloat16, which numpy has not",
            "",
        ),
        (
            Port(name="x", dtype="", shape=None),
            {"x": Tensor(shape=(4,))},
            "input 'x' is no tensor",
            "",
        ),
    ],
)
def test_an_input_that_is_open_or_does_not_fit_is_named(port, spec, says, hint):
    spec = {name: Tensor(shape=("batch", 4)) if each is X else each for name, each in spec.items()}

    with pytest.raises(LoadFailed) as caught:
        feed([port], _workload(spec), npz="")

    assert says in caught.value.message
    assert hint in caught.value.hint


def test_a_fixed_batch_is_told():
    port = Port(name="x", dtype="float32", shape=(1, 4))

    with pytest.raises(LoadFailed, match=r"shape \[8, 4\]: the graph fixes it at \[1, 4\]"):
        feed([port], _workload({"x": Tensor(shape=("batch", 4))}, batch=8), npz="")
