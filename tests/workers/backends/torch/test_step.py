from contextlib import ExitStack

import pytest
import torch
from torch import nn

from workers.backends import LoadFailed
from workers.backends.torch.calling import Made, bind
from workers.backends.torch.pipeline import Pipeline
from workers.backends.torch.step import TorchStep


def stepped(target, inputs, *, declared="fp32", casts=False):
    kind = "factory" if isinstance(target, nn.Module) else "step"
    resolved = {"arrays": "torch", "kind": kind}
    return TorchStep(
        Made(target=target, kind=kind, casts=casts),
        inputs,
        run=(run := bind(target, inputs)),
        pipeline=Pipeline(stages=[("forward", lambda _: run())]),
        declared=declared,
        batch=1,
        resolved=resolved,
        state=ExitStack(),
    )


class Broken(nn.Module):
    def forward(self, x):
        return {"good": x, "bad": x / 0}


class Wide(nn.Module):
    """Parameters of one type, an output of another."""

    def __init__(self, kept, given):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, dtype=kept))
        self.given = given

    def forward(self, x):
        return (x * self.weight).to(self.given)


def test_a_call_runs_one_iteration():
    """And returns what the model returned."""
    step = stepped(lambda x: x + 1, {"x": torch.ones(2)})

    assert [2.0, 2.0] == step().tolist()
    assert step.sync is None


@pytest.mark.seed("S1.39")
def test_a_module_that_gives_no_number_fails():
    """The farm answers for models that it loads."""
    step = stepped(Broken(), {"x": torch.ones(2)})

    with pytest.raises(LoadFailed) as caught:
        step.check_output(step())

    assert "nonfinite" == caught.value.kind


def test_a_callable_that_gives_no_number_is_flagged():
    """What a callable does is its own affair, and is told."""
    step = stepped(lambda x: x / 0, {"x": torch.ones(2)})

    assert ["nonfinite_output"] == step.check_output(step())


def test_parameters_in_another_precision_are_a_mismatch():
    """A module that undoes the cast is not what was declared."""
    step = stepped(Wide(torch.float32, torch.float32), {"x": torch.ones(1)}, declared="bf16")

    with pytest.raises(LoadFailed, match="declared bf16, observed fp32") as caught:
        step.check_output(step())

    assert "precision_mismatch" == caught.value.kind


def test_a_cast_module_may_return_something_wider():
    """Its parameters decide, since many heads end in float32."""
    step = stepped(Wide(torch.bfloat16, torch.float32), {"x": torch.ones(1)}, declared="bf16")

    assert [] == step.check_output(step())
    assert ("bf16", "fp32") == (
        step.facts().precision_observed["parameters"],
        step.facts().precision_observed["output"],
    )


def test_a_module_that_casts_itself_may_do_so_by_autocast():
    """Wide parameters and a narrow output agree with the declaration, wide ones alone do not."""
    narrow = Wide(torch.float32, torch.bfloat16)
    wide = Wide(torch.float32, torch.float32)
    given = {"x": torch.ones(1)}

    step = stepped(narrow, given, declared="bf16", casts=True)
    assert [] == step.check_output(step())

    step = stepped(wide, given, declared="bf16", casts=True)
    with pytest.raises(LoadFailed, match="declared bf16, observed fp32"):
        step.check_output(step())


def test_a_callable_in_another_precision_is_flagged():
    """Nothing is cast for it; a difference is a doubt, not a failure."""
    step = stepped(lambda x: x.double(), {"x": torch.ones(2)})

    assert ["precision_mismatch"] == step.check_output(step())


@pytest.mark.parametrize("output", [nn.Identity(), len])
def test_a_step_that_returns_a_model_was_a_factory(output):
    """It would have been timed building models; the hint says what to declare."""
    step = stepped(lambda x: output, {"x": torch.ones(2)})

    with pytest.raises(LoadFailed, match="returned a model") as caught:
        step.check_output(step())

    assert "kind: factory" in caught.value.hint


def test_a_step_may_return_nothing():
    """Then there is nothing to check, and no output to name."""
    step = stepped(lambda x: None, {"x": torch.ones(2)})

    assert [] == step.check_output(step())
    assert "none" == step.facts().precision_observed["output"]


def test_mutated_inputs_are_noticed():
    """Also when only one element of one input changed."""
    step = stepped(lambda x: x[0].add_(1), {"x": torch.zeros(3, 3)})
    assert not step.inputs_mutated()

    step()

    assert step.inputs_mutated()


def test_the_largest_share_of_subnormals_is_told():
    """Of inputs, parameters and first output; a large healthy one hides no small sick one."""
    module = Wide(torch.float32, torch.float32)
    step = stepped(module, {"x": torch.full((4,), 2.0**-100)})
    assert 0.0 == step.facts().subnormal_share

    with torch.no_grad():
        module.weight.fill_(2.0**-40)
    step.check_output(step())

    assert 1.0 == step.facts().subnormal_share


def test_facts_name_what_is_known_before_the_first_call():
    """Without an output there is no entry for it, and never an empty one."""
    facts = stepped(nn.Linear(2, 2), {"x": torch.ones(1, 2)}).facts()

    assert {
        "parameters": "fp32",
        "inputs": "fp32",
        "autocast": "off",
        "matmul_fp32": "highest",
    } == (facts.precision_observed)
    assert {"model": "module", "arrays": "torch"} == facts.kinds
    assert {"torch", "torch_interop"} <= set(facts.effective_threads)
