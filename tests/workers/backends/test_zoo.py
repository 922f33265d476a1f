"""Every module of the zoo's table, loaded and run as a job would; graphs are in onnx/test_zoo."""

from importlib.util import find_spec

import pytest

from farm import graphs
from farm.models import zoo
from workers import backends

ROWS = {name: row for name, row in zoo().items() if not graphs.is_graph(row.ref)}


def test_the_table_names_the_zoo():
    """These names may be used in a sweep."""
    ours = ["mlp", "cnn", "resnet18", "vit_tiny", "lstm", "gpt_nano", "detector-t"]
    assert [*ours, "silero_jit"] == list(ROWS)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", list(ROWS))
def test_a_row_runs_as_it_is_written(assign, load, name, precision):
    """With its default inputs, at batch 2, finite and in the precision; silero has one only."""
    row = ROWS[name]
    assignment = assign(row.ref, spec=row.inputs, kind=row.kind, precision=precision)
    if name == "silero_jit" and find_spec("silero_vad") is None:
        pytest.skip("silero-vad is not installed")
    if (name, precision) == ("silero_jit", "bf16"):
        with pytest.raises(NotImplementedError) as caught:
            load(assignment)
        assert "unsupported" == backends.explain(caught.value).kind
        return

    step = load(assignment)

    output = step()
    assert [] == step.check_output(output)
    assert 2 == len(output)
    assert precision == step.facts().precision_observed["parameters"]
    assert not step.inputs_mutated()


@pytest.mark.parametrize("name", list(ROWS))
def test_denormals_are_flushed_for_random_weights_only(name):
    """Trained weights are measured as they are."""
    assert ("as_is" if ROWS[name].weights else "flush") == ROWS[name].denormals


@pytest.mark.parametrize("name", ["resnet18", "vit_tiny", "gpt_nano", "lstm", "detector-t"])
def test_random_weights_keep_signals_normal(assign, load, name):
    """Without flushing, less than a thousandth of what the deep models hold is subnormal."""
    step = load(assign(ROWS[name].ref, spec=ROWS[name].inputs))

    step.check_output(step())

    assert step.facts().subnormal_share < 0.001
