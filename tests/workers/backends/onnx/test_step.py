"""The laws of a step: one run of the session, and everything that can be told about it."""

import numpy as np
import pytest
from onnx import TensorProto

from farm.schema import Tensor
from tests.farm.graphs import drawn
from tests.farm.graphs.drawn import FLOAT, INT64, node
from workers.backends import LoadFailed, NotOffered, StageAsk, TraceAsk

X = {"x": Tensor(shape=("batch", 4))}


def _net(tmp_path, *nodes, weights=None, outputs=("y",), kind=FLOAT):
    return drawn.save(
        tmp_path / "net.onnx",
        nodes,
        inputs=[("x", kind, ["batch", 4])],
        outputs=[(name, kind, None) for name in outputs],
        weights=weights,
    )


def test_a_call_returns_what_the_graph_computes(ask, load, tmp_path):
    """The runtime's result is that of the same arithmetic in numpy."""
    drawn.mlp(tmp_path / "net.onnx")
    step = load(ask())
    w0, b0 = drawn.weight(64, 32), drawn.weight(32)
    w1, b1 = drawn.weight(32, 10), drawn.weight(10)
    (x,) = step._inputs.values()

    (output,) = step()

    wanted = np.maximum(x @ w0 + b0, 0) @ w1 + b1
    np.testing.assert_allclose(wanted, output, rtol=1e-4, atol=1e-5)


def test_a_step_knows_what_it_ran_as(ask, load, tmp_path):
    drawn.mlp(tmp_path / "net.onnx")
    step = load(ask(threads=2))
    step.check_output(step())

    facts = step.facts()

    assert {"parameters": "fp32", "inputs": "fp32", "output": "fp32"} == facts.precision_observed
    assert {"onnxruntime": 2, "onnxruntime_interop": 1} == facts.effective_threads
    assert {"provider": "CPUExecutionProvider", "denormals": "as_is"} == facts.resolved
    assert {"model": "graph"} == facts.kinds
    assert 0.0 == facts.subnormal_share
    assert (None, None, None) == (step.sync, step.compiles, step.accelerator)


def test_a_graph_is_a_forward_pass_that_no_profiler_of_torch_sees(ask, load, tmp_path):
    """A trace of it is null, and the options of a pipeline have no use."""
    drawn.mlp(tmp_path / "net.onnx")
    step = load(ask())
    asked = TraceAsk(
        iterations=1,
        warmup=1,
        file=tmp_path / "trace.json",
        limit_bytes=1,
        clock=lambda: 0,
        progress=lambda *_: None,
    )

    alone = StageAsk(iterations=1, clock=asked.clock, progress=asked.progress)

    with pytest.raises(NotOffered, match="not_supported: a graph runs outside"):
        step.trace(asked)
    with pytest.raises(NotOffered, match="not_applicable: a graph has one phase"):
        step.stages(alone)

    assert (("conf", "iou", "max_det", "imgsz"), "plain") == (
        step.facts().unused,
        step.facts().pipeline,
    )


def test_the_digest_follows_the_numbers(ask, load, tmp_path):
    """Equal outputs have one digest, others another."""
    _net(tmp_path, node("Neg", "x", "y"))
    first, again, other = load(ask(spec=X)), load(ask(spec=X)), load(ask(spec=X, seed=1))

    digests = []
    for step in (first, again, other):
        step.check_output(step())
        digests.append(step.facts().output_digest)

    assert digests[0] == digests[1] != digests[2]


def test_a_number_that_is_none_is_a_failure(ask, load, tmp_path):
    _net(
        tmp_path,
        node("Neg", "x", "n"),
        node("Mul", "n big", "y"),
        weights={"big": np.full(4, np.inf, "f")},
    )
    step = load(ask(spec=X))

    with pytest.raises(LoadFailed, match="NaN or infinity") as caught:
        step.check_output(step())

    assert "nonfinite" == caught.value.kind


def test_changed_inputs_are_noticed(ask, load, tmp_path):
    _net(tmp_path, node("Neg", "x", "y"))
    step = load(ask(spec=X))
    step()
    before = step.inputs_mutated()

    step._inputs["x"] += 1

    assert (False, True) == (before, step.inputs_mutated())


@pytest.mark.parametrize("where", ["weights", "external", "inputs"])
def test_subnormal_numbers_are_counted_wherever_they_are(ask, load, tmp_path, where):
    """In weights inside and beside the file, and in what the graph is called with."""
    tiny = np.array([1e-40, 1, 1, 1], np.float32)
    if where == "inputs":
        _net(tmp_path, node("Neg", "x", "y"))
        np.savez(tmp_path / "in.npz", x=tiny[None, :])
        step = load(ask(npz=tmp_path / "in.npz", batch=1))
    else:
        path = _net(tmp_path, node("Add", "x w", "y"), weights={"w": tiny})
        if where == "external":
            path = drawn.save(
                path,
                [node("Add", "x w", "y")],
                inputs=[("x", FLOAT, ["batch", 4])],
                outputs=[("y", FLOAT, None)],
                weights={"w": tiny},
                external="net.weights",
            )
        step = load(ask())

    assert 0.25 == step.facts().subnormal_share


@pytest.mark.seed("S0.3")
def test_outputs_are_kept_by_the_names_that_the_graph_gives_them(ask, load, tmp_path):
    _net(tmp_path, node("Neg", "x", "down"), node("Abs", "x", "up"), outputs=("up", "down"))
    step = load(ask(spec=X))

    found = step.arrays(step())

    assert ["up", "down"] == list(found)
    np.testing.assert_array_equal(np.abs(found["down"]), found["up"])


def test_integers_have_no_precision_to_check(ask, load, tmp_path):
    """A graph of integers alone may be declared as anything."""
    _net(tmp_path, node("Neg", "x", "y"), kind=INT64)
    spec = {"x": Tensor(shape=("batch", 4), dtype="int64", high=9)}

    step = load(ask(spec=spec, precision="fp32"))

    step.check_output(step())
    assert {"parameters": "none", "inputs": "int64", "output": "int64"} == (
        step.facts().precision_observed
    )
    assert step.facts().subnormal_share is None


def test_what_fails_in_a_run_is_an_error_of_the_model(ask, load, tmp_path):
    """A graph may fail on what it is called with, and names the node."""
    _net(tmp_path, node("Reshape", "x to", "y", "fold"), weights={"to": np.array([3, 3])})
    step = load(ask(spec=X))

    with pytest.raises(LoadFailed, match="fold") as caught:
        step()

    assert "model_error" == caught.value.kind


def test_an_output_without_elements_or_without_numbers_is_one(ask, load, tmp_path):
    """As of a detector that finds nothing, and of a classifier that answers in words."""
    drawn.save(
        tmp_path / "net.onnx",
        [node("Sub", "x x", "none"), node("NonZero", "none", "y"), node("Cast", "x", "t", to=8)],
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[("y", INT64, None), ("t", TensorProto.STRING, None)],
    )
    step = load(ask(spec=X))

    assert [] == step.check_output(step())
    assert {"y": (2, 0)} == {name: each.shape for name, each in step.arrays(step()).items()}
