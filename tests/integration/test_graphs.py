"""An ONNX file from a sweep to a profile: it travels with its weights, and ONNX Runtime runs it."""

import pytest

from tests.farm.graphs import drawn
from tests.integration.farm_here import Place

pytestmark = pytest.mark.redis

SWEEP = """
name: graphs
matrix: {model: net.onnx, batch: [1, 4], device: cpu}
measure: {repeats: 1, warmup: 2, iterations: 20, layer_iterations: 5}
"""


def test_a_graph_is_measured_as_any_model(place: Place) -> None:
    """Without a word about inputs, precision or backend; with its layers and what it needs."""
    drawn.mlp(place.folder / "net.onnx", external="net.weights")
    sweep = place.write("graphs.yaml", SWEEP)

    said = place.farm("run", sweep, "--no-report")

    assert "COMPLETE" in said.out
    one, four = sorted(place.profiles(), key=lambda each: int(each["job"]["workload"]["batch"]))
    assert ("onnx", "fp32") == (
        one["job"]["workload"]["backend"],
        one["job"]["workload"]["precision"],
    )
    execution = one["execution"]
    assert execution["threads"] == execution["effective_threads"]["onnxruntime"]
    assert "fp32" == execution["precision_observed"]["parameters"]
    assert "CPUExecutionProvider" == execution["resolved"]["provider"]
    assert 2410 == one["cost"]["params_total"]
    assert 4 * one["cost"]["flops_per_batch"] == four["cost"]["flops_per_batch"]
    assert "profiler" == one["layers"]["method"]
    assert one["layers"]["rows"] >= 2
