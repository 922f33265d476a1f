import msgspec
import numpy as np
import pytest
import torch

from farm.schema import Protocol, Tensor
from workers import backends

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.layer(x))


def build():
    return Net()


def cast_self(precision):
    return Net().to({"bf16": torch.bfloat16}.get(precision, torch.float32))


def cast_step(precision):
    def step(x):
        return x.to(torch.bfloat16) if precision == "bf16" else x
    return step


def quantised(precision):
    raise NotImplementedError(f"no {precision} here")


def hungry():
    return bytearray(1 << 60)


def step(x):
    return x.sum(dim=1)


def modes(x):
    return torch.tensor([torch.is_inference_mode_enabled(), torch.is_grad_enabled()])
"""


@pytest.fixture
def folder(bundle):
    return bundle({"model.py": MODEL})


def test_a_zoo_model_runs_without_a_bundle(assign, load):
    """Its code is installed, its inputs come from the specification."""
    step = load(assign(spec={"x": Tensor(shape=("batch", 64))}, batch=3))

    output = step()

    assert (3, 10) == tuple(output.shape)
    assert [] == step.check_output(output)
    assert not step.inputs_mutated()
    assert "factory" == step.facts().resolved["kind"]


def test_a_module_is_measured_in_eval_mode(assign, load, folder):
    """Dropout is off: equal calls give equal outputs."""
    step = load(assign("model.py:build", bundle=folder))

    assert torch.equal(step(), step())


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_module_runs_in_the_declared_precision(assign, load, folder, precision):
    """Parameters, inputs and output are all in it."""
    step = load(assign("model.py:build", bundle=folder, precision=precision))

    assert [] == step.check_output(step())
    seen = step.facts().precision_observed
    assert [precision] * 3 == [seen["parameters"], seen["inputs"], seen["output"]]


def test_a_step_is_measured_as_it_is(assign, load, folder):
    """With fp32 or unspecified there is nothing to cast."""
    for precision in ("fp32", "unspecified"):
        step = load(assign("model.py:step", bundle=folder, precision=precision))

        assert [] == step.check_output(step())
        assert "step" == step.facts().resolved["kind"]


def test_a_step_cannot_be_cast(assign, load, folder):
    """Another precision is unsupported, and the hint says how to declare it."""
    with pytest.raises(backends.LoadFailed, match="a step cannot be cast to bf16") as caught:
        load(assign("model.py:step", bundle=folder, precision="bf16"))

    assert "unsupported" == caught.value.kind
    assert "a factory that accepts `precision` casts itself" in caught.value.hint


@pytest.mark.parametrize("name", ["cast_self", "cast_step"])
def test_a_factory_that_accepts_the_precision_casts_itself(assign, load, folder, name):
    """Modules and steps alike; what is observed agrees with what was declared."""
    step = load(assign(f"model.py:{name}", bundle=folder, precision="bf16"))

    assert [] == step.check_output(step())
    assert "bf16" == step.facts().precision_observed["output"]


def test_a_factory_may_refuse_a_precision(assign, load, folder):
    """`NotImplementedError` is the way to say that a model has no such variant."""
    with pytest.raises(NotImplementedError) as caught:
        load(assign("model.py:quantised", bundle=folder, precision="fp16"))

    assert "unsupported" == backends.explain(caught.value).kind


def test_a_model_that_does_not_fit_is_out_of_memory(assign, load, folder):
    """Python's own error is the host's memory."""
    with pytest.raises(MemoryError) as caught:
        load(assign("model.py:hungry", bundle=folder))

    assert "host_oom" == backends.explain(caught.value).kind


@pytest.mark.parametrize(
    ("grad", "expected"),
    [("inference", [True, False]), ("no_grad", [False, False]), ("function", [False, True])],
)
def test_the_gradient_mode_is_the_protocols(assign, load, folder, grad, expected):
    """Entered before the loop and left when the step is closed; `function` leaves it alone."""
    step = load(assign("model.py:modes", bundle=folder, protocol=Protocol(grad=grad)))

    assert expected == step().tolist()
    step.close()
    assert torch.is_grad_enabled()


def test_denormals_are_flushed_where_the_protocol_says_so(assign, load, folder):
    """And what was done is recorded."""
    kept = load(assign("model.py:step", bundle=folder))
    assert "as_is" == kept.facts().resolved["denormals"]

    flushed = load(assign("model.py:step", bundle=folder, protocol=Protocol(denormals="flush")))

    assert "flush" == flushed.facts().resolved["denormals"]
    assert 0.0 == (torch.tensor([2.0**-126]) * 0.5).item()


def test_the_threads_are_those_of_the_lease(assign, load, folder):
    """Read back after the model's own code has run."""
    facts = load(assign("model.py:step", bundle=folder, threads=2)).facts()

    assert (2, 1) == (facts.effective_threads["torch"], facts.effective_threads["torch_interop"])


def test_a_model_cannot_take_more_threads_than_its_lease(assign, load, bundle):
    """What its file sets when imported is set back."""
    folder = bundle({"model.py": "import torch\ntorch.set_num_threads(7)\ndef step(x): return x\n"})

    facts = load(assign("model.py:step", bundle=folder, threads=1)).facts()

    assert 1 == facts.effective_threads["torch"]


def test_inputs_come_from_an_npz_where_one_is_given(assign, load, folder, tmp_path):
    """Its rows, repeated to the batch."""
    np.savez(tmp_path / "in.npz", x=np.array([[1, 2, 3, 4]], dtype=np.float32))

    step = load(assign("model.py:step", bundle=folder, npz=tmp_path / "in.npz", batch=3))

    assert [10.0, 10.0, 10.0] == step().tolist()


def test_a_bfloat16_input_is_one_before_it_reaches_the_model(assign, load, folder):
    """numpy cannot draw it, so it is cast on the way."""
    spec = {"x": Tensor(shape=("batch", 4), dtype="bfloat16")}

    step = load(assign("model.py:step", bundle=folder, spec=spec, precision="unspecified"))

    assert torch.bfloat16 == step().dtype


def test_equal_assignments_do_equal_work(assign, load):
    """Weights and inputs are seeded: every repeat computes the same numbers."""
    assignment = assign(spec={"x": Tensor(shape=("batch", 64))})

    assert torch.equal(load(assignment)(), load(assignment)())


def test_an_unknown_option_is_refused(assign, load):
    """With the nearest known one."""
    with pytest.raises(backends.LoadFailed, match="no option 'array'") as caught:
        load(assign(options={"array": "numpy"}))

    assert "did you mean `arrays`?" == caught.value.hint


def test_a_step_gets_the_arrays_that_were_asked_for(assign, load, bundle):
    """The option beats what the imports suggest."""
    folder = bundle({"model.py": "import numpy\nimport torch\ndef step(x):\n    return x\n"})

    for asked, kind in (("numpy", np.ndarray), ("torch", torch.Tensor), ("auto", torch.Tensor)):
        step = load(assign("model.py:step", bundle=folder, options={"arrays": asked}))
        assert isinstance(step(), kind)

    with pytest.raises(backends.LoadFailed, match="none of auto, numpy, torch"):
        load(assign("model.py:step", bundle=folder, options={"arrays": "jax"}))


def test_a_factory_of_modules_gets_tensors_whatever_its_imports_say(assign, load, bundle):
    """A file that imports numpy and a library that hides torch still builds a module."""
    hidden = "__import__('tor' + 'ch').nn.Identity()"
    folder = bundle({"model.py": f"import numpy\ndef build():\n    return {hidden}\n"})

    step = load(assign("model.py:build", bundle=folder))

    assert isinstance(step(), torch.Tensor)
    assert "torch" == step.facts().kinds["arrays"]


@pytest.mark.seed("S1.10")
def test_the_placeholder_runs_without_torch(assign, child):
    """A numpy step is loaded and run, and torch is never imported."""
    spec = {"rgb": Tensor(shape=("batch", 8, 6, 3), dtype="uint8")}
    assignment = assign("workers.models.placeholder:demo_depth", spec=spec)

    said = child(
        "import sys, time, msgspec\nfrom workers import backends\n"
        "from workers.record import Assignment\n"
        "sys.modules['torch'] = None\n"
        "assignment = msgspec.json.decode(sys.argv[1], type=Assignment)\n"
        "step = backends.load(assignment, clock=time.perf_counter_ns).step\n"
        "output = step()\n"
        "print(output.shape, step.check_output(output), step.facts().precision_observed)",
        msgspec.json.encode(assignment).decode(),
    )

    assert "(2, 8, 6) [] {'inputs': 'uint8', 'output': 'fp32'}\n" == said


def test_a_standby_that_has_torch_loads_the_same_step(assign, load, folder):
    """What a step works on does not depend on what was imported before."""
    spec = {"rgb": Tensor(shape=("batch", 8, 6, 3), dtype="uint8")}
    assert torch.__version__

    step = load(assign("workers.models.placeholder:demo_depth", spec=spec))

    assert "numpy" == step.facts().kinds["arrays"]
    assert "numpy" == step.facts().resolved["arrays"]


def test_flushing_without_torch_is_not_supported_and_says_so(assign, load):
    """numpy has no switch for it."""
    spec = {"rgb": Tensor(shape=("batch", 8, 6, 3), dtype="uint8")}
    protocol = Protocol(denormals="flush")

    step = load(assign("workers.models.placeholder:demo_depth", spec=spec, protocol=protocol))

    assert "not_supported" == step.facts().resolved["denormals"]
