"""Every graph of the zoo's table, loaded and run as a job would, where its package is there."""

from importlib.util import find_spec

import pytest

from farm import graphs, models
from farm.errors import NoResult

ROWS = {name: row for name, row in models.zoo().items() if graphs.is_graph(row.ref)}
# Those that take longer than a test may, or much memory.
HEAVY = ("rapid_det", "light_resnet50", "light_densenet121", "light_vgg19", "light_inception")


def test_the_table_names_the_graphs():
    """These names may be used in a sweep."""
    rapid = ["rapid_cls", "rapid_rec", "rapid_det"]
    light = ["squeezenet", "shufflenet", "resnet50", "densenet121", "inception", "vgg19"]

    assert ["silero_onnx", *rapid, *(f"light_{each}" for each in light)] == list(ROWS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.long if each in HEAVY else ()) for each in ROWS],
)
def test_a_graph_runs_as_its_row_says(ask, load, tmp_path, name):
    """With its own inputs, at batch 2 where it has one, finite, in one precision."""
    try:
        resolved = models.resolve(name, root=tmp_path)
    except NoResult as error:
        pytest.skip(f"{error.hint.removeprefix('pip install ')} is not installed")
    assert resolved.defaults is not None
    spec = resolved.defaults.inputs
    batch = 2 if any("batch" in each.shape for each in spec.values()) else 1

    step = load(ask(resolved.model.ref, spec=spec, batch=batch, bundle="", precision="fp32"))

    output = step()
    assert [] == step.check_output(output)
    assert batch == len(output[0])
    assert "fp32" == step.facts().precision_observed["parameters"]
    assert not step.inputs_mutated()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("light_resnet50", 25_557_032), ("light_vgg19", 143_667_240), ("light_squeezenet", 1_235_496)],
)
def test_the_light_graphs_have_the_parameters_of_their_models(tmp_path, name, parameters):
    """They hold no weights, but fill them with one number: as many as the papers count."""
    if find_spec("onnx") is None:
        pytest.skip("onnx is not installed")
    graph = models.resolve(name, root=tmp_path).graph
    assert graph is not None

    assert parameters == sum(each.size for each in graphs.parameters(graph)[0])
