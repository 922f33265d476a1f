"""The laws of a graph's cost: exact parameters, FLOPs as torch counts them, no byte made up."""

import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from farm.models import zoo
from farm.schema import Tensor
from tests.farm.graphs import drawn
from tests.farm.graphs.drawn import FLOAT, node
from workers.backends import LayerAsk

ROWS = zoo()
X = {"x": Tensor(shape=("batch", 4))}


def _cost(load, assignment):
    return load(assignment).cost()


def test_parameters_are_exact(ask, load, tmp_path):
    """All of them, by type and in bytes; which were trained nobody knows."""
    drawn.mlp(tmp_path / "net.onnx")

    cost = _cost(load, ask())

    assert (2410, 4 * 2410, 0) == (cost.params_total, cost.params_unique_bytes, cost.buffers_bytes)
    assert {"fp32": 4 * 2410} == cost.param_dtypes
    assert cost.params_trainable is None
    assert cost.reasons["params_trainable"].startswith("not_applicable")


def test_flops_are_those_of_the_batch(ask, load, tmp_path):
    """2·64·32 + 2·32·10 an item; bias and activation are nothing by convention."""
    drawn.mlp(tmp_path / "net.onnx")

    one, eight = _cost(load, ask(batch=1)), _cost(load, ask(batch=8))

    assert 2 * 64 * 32 + 2 * 32 * 10 == one.flops_per_batch
    assert 8 * one.flops_per_batch == eight.flops_per_batch
    assert ("measured", 1.0, [], "none") == (
        one.flops_status,
        one.flops_coverage,
        one.uncounted_ops,
        one.attention,
    )
    assert one.flops_counter.startswith("shapes of a run, onnxruntime ")


@pytest.mark.parametrize(
    "name",
    [
        *("mlp", "cnn", "lstm", "gpt_nano"),
        pytest.param("resnet18", marks=pytest.mark.long),
        pytest.param("vit_tiny", marks=pytest.mark.long),
    ],
)
def test_an_exported_model_costs_what_the_model_costs(assign, ask, load, tmp_path, name):
    """The same outputs, and to the last FLOP what torch counts for the same architecture."""
    import torch

    row = ROWS[name]
    source = load(assign(row.ref, spec=row.inputs))
    module, tensors = source._target, tuple(source._inputs.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no further package is the old one
        torch.onnx.export(
            module,
            tensors,
            tmp_path / "net.onnx",
            dynamo=False,
            opset_version=17,
            input_names=list(row.inputs),
            dynamic_axes={each: {0: "batch"} for each in row.inputs},
        )
    wanted = source()
    graph = load(ask(spec=row.inputs))

    found = graph()[0]

    np.testing.assert_allclose(wanted.numpy(), found, rtol=1e-3, atol=1e-4)
    assert source.cost().flops_per_batch == graph.cost().flops_per_batch


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_each_layer_has_the_flops_of_what_it_stands_for(ask, load, tmp_path, named):
    """Fused, moved to a layout with padded channels, and renamed: the sum is the whole.

    Ten filters fill no vector, so the runtime computes sixteen; the model has ten.
    """
    nodes = [
        node("Conv", "x w0 b0", "c", "conv", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r", "act"),
        node("Conv", "r w1", "d", "again", pads=[1, 1, 1, 1]),
        node("Add", "d r", "s", "shortcut"),
        node("Relu", "s", "t", "act2"),
        node("GlobalAveragePool", "t", "g", "pool"),
        node("Flatten", "g", "f", "flat"),
        node("Gemm", "f w2", "y", "head"),
    ]
    for each in nodes:
        each.name = each.name if named else ""
    drawn.save(
        tmp_path / "net.onnx",
        nodes,
        inputs=[("x", FLOAT, ["batch", 3, 8, 8])],
        outputs=[("y", FLOAT, None)],
        weights={
            "w0": drawn.weight(10, 3, 3, 3),
            "b0": drawn.weight(10),
            "w1": drawn.weight(10, 10, 3, 3),
            "w2": drawn.weight(10, 5),
        },
    )
    first, second = (2 * 2 * 10 * 64 * channels * 9 for channels in (3, 10))
    head = 2 * 2 * 10 * 5
    step = load(ask())

    cost = step.cost()

    assert first + second + head == cost.flops_per_batch
    assert sorted([first, second, head]) == sorted(cost.flops_by_layer.values())
    asked = LayerAsk(
        iterations=2, warmup=1, budget_ns=None, clock=lambda: 0, progress=lambda *a: None
    )
    assert set(cost.flops_by_layer) <= set(step.layers(asked).reading.layers)


@pytest.mark.parametrize(
    ("names", "status", "flops"),
    [
        (("", ""), "measured", 2 * (2 * 4 * 3) + 2 * 3 * 5),
        (("one", "other"), "measured", 2 * (2 * 4 * 3) + 2 * 3 * 5),
        (("same", "same"), "unsupported", None),
    ],
)
def test_each_einsum_is_counted_by_the_equation_of_its_own(
    ask, load, tmp_path, names, status, flops
):
    """Named or not, in a branch or outside; of two that cannot be told apart neither is."""
    ones = [
        helper.make_node(
            "Constant", [], [name], value=numpy_helper.from_array(np.ones(shape, np.float32))
        )
        for name, shape in (("w", (4, 3)), ("v", (3, 5)))
    ]
    branch = helper.make_graph(
        [
            ones[0],
            node("Neg", "x", "minus"),
            node("Einsum", "minus w", "h", names[0], equation="bi,ij->j"),
        ],
        "branch",
        [],
        [helper.make_tensor_value_info("h", FLOAT, None)],
    )
    drawn.save(
        tmp_path / "net.onnx",
        [
            ones[1],
            node("If", "c", "a", then_branch=branch, else_branch=branch),
            node("Relu", "a", "r"),
            node("Einsum", "r v", "y", names[1], equation="j,jk->k"),
        ],
        inputs=[("x", FLOAT, ["batch", 4]), ("c", TensorProto.BOOL, [])],
        outputs=[("y", FLOAT, None)],
    )
    step = load(ask())

    cost = step.cost()

    assert (status, flops) == (cost.flops_status, cost.flops_per_batch)
    asked = LayerAsk(
        iterations=2, warmup=1, budget_ns=None, clock=lambda: 0, progress=lambda *a: None
    )
    assert set(cost.flops_by_layer) <= set(step.layers(asked).reading.layers)


def test_an_operator_without_a_formula_lowers_the_coverage(ask, load, tmp_path):
    """It is named, and the count says that it is not all."""
    drawn.save(
        tmp_path / "net.onnx",
        [
            node("Einsum", "x x w", "e", "three", equation="bi,bi,ij->bj"),
            node("MatMul", "e v", "y"),
        ],
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[("y", FLOAT, None)],
        weights={"w": drawn.weight(4, 4), "v": drawn.weight(4, 3)},
    )

    cost = _cost(load, ask())

    assert ("partial", 0.5, ["Einsum"]) == (
        cost.flops_status,
        cost.flops_coverage,
        cost.uncounted_ops,
    )
    assert 2 * 2 * 4 * 3 == cost.flops_per_batch


def test_nothing_counted_is_null_and_not_zero(ask, load, tmp_path):
    drawn.save(
        tmp_path / "net.onnx",
        [node("Det", "x", "y")],
        inputs=[("x", FLOAT, ["batch", 4, 4])],
        outputs=[("y", FLOAT, None)],
    )

    cost = _cost(load, ask())

    assert ("unsupported", None, 0.0) == (
        cost.flops_status,
        cost.flops_per_batch,
        cost.flops_coverage,
    )
    assert "not_supported: no formula for Det" == cost.reasons["flops_per_batch"]


def test_a_graph_that_computes_nothing_has_no_flops(ask, load, tmp_path):
    """Every node of it is free: that is a count."""
    drawn.save(
        tmp_path / "net.onnx",
        [node("Relu", "x", "y")],
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[("y", FLOAT, None)],
    )

    cost = _cost(load, ask())

    assert ("measured", 0, 1.0) == (cost.flops_status, cost.flops_per_batch, cost.flops_coverage)


def test_integer_products_are_counted_and_told(ask, load, tmp_path):
    drawn.save(
        tmp_path / "net.onnx",
        [node("MatMulInteger", "x w", "y")],
        inputs=[("x", TensorProto.UINT8, ["batch", 8])],
        outputs=[("y", TensorProto.INT32, None)],
        weights={"w": np.ones((8, 4), np.uint8)},
    )
    spec = {"x": Tensor(shape=("batch", 8), dtype="uint8")}

    cost = _cost(load, ask(spec=spec))

    assert 2 * 2 * 8 * 4 == cost.flops_per_batch
    assert cost.flops_counter.endswith(", integer products included")
    assert {"uint8": 32} == cost.param_dtypes


def test_bytes_are_what_the_nodes_must_read_and_write(ask, load, tmp_path):
    """Input, weights and output of one product; a view moves nothing, a lookup what it returns."""
    product = drawn.save(
        tmp_path / "net.onnx",
        [node("Reshape", "x to", "r"), node("MatMul", "r w", "y")],
        inputs=[("x", FLOAT, ["batch", 8])],
        outputs=[("y", FLOAT, None)],
        weights={"to": np.array([-1, 4]), "w": drawn.weight(4, 3)},
    )
    assert product.is_file()
    drawn.save(
        tmp_path / "table.onnx",
        [node("Gather", "table x", "y")],
        inputs=[("x", TensorProto.INT64, ["batch"])],
        outputs=[("y", FLOAT, None)],
        weights={"table": drawn.weight(1000, 16)},
    )
    ids = {"x": Tensor(shape=("batch",), dtype="int64", high=1000)}

    cost, table = _cost(load, ask()), _cost(load, ask("table.onnx", spec=ids))

    assert 4 * (4 * 4 + 4 * 3 + 4 * 3) == cost.bytes_lower_bound_per_batch
    assert 2 * 8 + 2 * (2 * 16 * 4) == table.bytes_lower_bound_per_batch


def test_attention_by_matrix_products_is_told(ask, load, tmp_path):
    drawn.save(
        tmp_path / "net.onnx",
        [
            node("Transpose", "x", "k", perm=[0, 2, 1]),
            node("MatMul", "x k", "s"),
            node("Softmax", "s", "p"),
            node("MatMul", "p x", "y"),
        ],
        inputs=[("x", FLOAT, ["batch", 6, 4])],
        outputs=[("y", FLOAT, None)],
    )

    cost = _cost(load, ask())

    assert "matrix_products" == cost.attention
    assert 4 * 2 * 6 * 6 * 4 == cost.flops_per_batch


def test_shared_weights_are_stored_once(ask, load, tmp_path):
    """Two names for one place in a file are one tensor."""
    path = drawn.save(
        tmp_path / "net.onnx",
        [node("MatMul", "x a", "h"), node("MatMul", "h b", "y")],
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[("y", FLOAT, None)],
        weights={"a": drawn.weight(4, 4), "b": drawn.weight(4, 4)},
        external="net.weights",
    )
    model = onnx.load(path, load_external_data=False)
    a, b = model.graph.initializer
    b.CopyFrom(a)
    b.name = "b"
    path.write_bytes(model.SerializeToString())

    cost = _cost(load, ask())

    assert (16, 64) == (cost.params_total, cost.params_unique_bytes)


def test_a_graph_that_runs_optimised_alone_still_has_parameters(ask, load, tmp_path):
    """What a run would show is null with its reason; the file tells the rest."""
    path = drawn.mlp(tmp_path / "net.onnx")
    step = load(ask())
    path.unlink()

    cost = step.cost()

    assert 2410 == cost.params_total
    assert (None, None) == (cost.flops_per_batch, cost.bytes_lower_bound_per_batch)
    assert cost.flops_status.startswith("failed: ")
    assert all(
        cost.reasons[field].startswith("error: ")
        for field in ("flops_per_batch", "flops_counter", "flops_coverage", "attention")
    )
    assert cost.reasons["bytes_lower_bound_per_batch"].startswith("error: ")


def test_the_branch_that_runs_is_counted(ask, load, tmp_path):
    """Of an `If`, what the inputs choose: the other branch costs nothing this time."""
    branches = [
        helper.make_graph(
            [node("MatMul", f"x w{width}", f"o{width}", f"to{width}")],
            f"b{width}",
            [],
            [helper.make_tensor_value_info(f"o{width}", FLOAT, None)],
        )
        for width in (3, 5)
    ]
    drawn.save(
        tmp_path / "net.onnx",
        [node("If", "c", "y", "choice", then_branch=branches[0], else_branch=branches[1])],
        inputs=[("x", FLOAT, ["batch", 4]), ("c", TensorProto.BOOL, [])],
        outputs=[("y", FLOAT, None)],
        weights={"w3": drawn.weight(4, 3), "w5": drawn.weight(4, 5)},
    )
    step = load(ask())
    width = 3 if step._inputs["c"] else 5

    assert 2 * 2 * 4 * width == step.cost().flops_per_batch
