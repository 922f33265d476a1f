from functools import partial

import pytest
import torch
from torch import nn

from workers.backends import LoadFailed
from workers.backends.torch.calling import bind, make

OFFER = {"device": "cpu", "precision": "bf16", "batch": 2, "inputs": {}}
X = {"x": torch.ones(2, 3)}


def made(named, kind="auto", inputs=X):
    return make(named, kind, offer=OFFER, inputs=inputs)


def step(x):
    return x + 1


def test_what_returns_a_module_is_a_factory():
    """It is called once, and its module is what gets measured."""
    found = made(lambda: nn.Identity())

    assert "factory" == found.kind
    assert isinstance(found.target, nn.Module)


def test_what_returns_a_function_is_a_factory():
    """The function is then called with the inputs by name."""
    found = made(lambda: step)

    assert "factory" == found.kind
    assert step is found.target


def test_what_takes_the_inputs_is_a_step_and_is_not_run_to_find_out():
    """Its first iteration belongs to the measurement."""

    def never(x):
        raise AssertionError

    found = made(never)

    assert "step" == found.kind


def test_a_module_itself_can_be_named():
    """`file.py:model` works where the file builds it."""
    assert "module" == made(nn.Identity()).kind


def test_a_class_of_modules_is_a_factory():
    """Its constructor is called like any other factory."""
    assert isinstance(made(nn.Identity, inputs={}).target, nn.Identity)


def test_a_factory_receives_what_it_accepts():
    """Of device, precision, batch and inputs, and nothing else."""
    seen = {}

    def build(batch, *, precision="fp32", width=64):
        seen.update(batch=batch, precision=precision, width=width)
        return nn.Identity()

    found = made(build)

    assert {"batch": 2, "precision": "bf16", "width": 64} == seen
    assert found.casts


def test_a_factory_that_takes_anything_receives_everything():
    """`**options` is an acceptance; but it is no promise to cast."""
    seen = {}

    def build(**options):
        seen.update(options)
        return nn.Identity()

    found = made(build, kind="factory")

    assert OFFER == seen
    assert not found.casts


def test_the_first_call_decides_where_the_signature_leaves_it_open():
    """A function of any keyword that returns an output was a step all along."""
    assert "step" == made(lambda **anything: anything["x"]).kind
    assert "factory" == made(lambda **anything: nn.Identity()).kind


def test_a_call_without_inputs_is_decided_by_what_it_returns():
    """A step that needs no input, and a factory that takes nothing, look alike until then."""
    assert "step" == made(lambda: 3.0, inputs={}).kind
    assert "factory" == made(lambda: step_of_nothing, inputs={}).kind


def step_of_nothing():
    return 1.0


def test_kind_settles_it():
    """A factory may take a parameter called like an input; a step may return a function."""
    assert "factory" == made(lambda x=None: nn.Identity(), kind="factory").kind
    assert "step" == made(lambda x: step, kind="step").kind


@pytest.mark.parametrize(
    ("named", "kind", "inputs", "message"),
    [
        (3, "auto", X, "3 cannot be called"),
        (lambda width: width, "auto", X, "requires 'width'.*no input is called 'width'"),
        (lambda width: width, "factory", X, "no factory: it requires 'width'"),
        (lambda x, y: x, "step", X, "no step: no input is called 'y'"),
        (lambda x: x, "step", {"x": 1, "z": 2}, "takes no input 'z', but x"),
        (lambda: 1, "step", X, "takes no input 'x', but nothing"),
        (lambda x, /: x, "step", X, "parameter 'x' cannot be given by name"),
        (lambda: 3, "auto", X, "returned int, neither a module nor a function"),
        (lambda: lambda y: y, "auto", X, "returned a function: no input is called 'y'"),
    ],
)
def test_what_does_not_fit_names_the_culprit(named, kind, inputs, message):
    """The parameter that nobody fills, or the input that nobody takes."""
    with pytest.raises(LoadFailed, match=message) as caught:
        made(named, kind=kind, inputs=inputs)

    assert "model_error" == caught.value.kind


async def awaited(x):
    return x


def generated(x):
    yield x


class Awaited:
    async def __call__(self, x):
        return x


@pytest.mark.parametrize("named", [awaited, generated, Awaited(), lambda: awaited])
def test_a_call_that_would_run_nothing_is_refused(named):
    """Coroutines and generators return at once; their time would be a lie."""
    with pytest.raises(LoadFailed, match=r"coroutine|generator"):
        made(named)


def test_inputs_go_to_a_step_by_name():
    """In any order, and through partial functions too."""
    inputs = {"b": 1, "a": 10}

    assert 9 == bind(lambda a, b: a - b, inputs)()
    assert 9 == bind(partial(lambda a, b, c: a - b + c, c=0), inputs)()


class Named(nn.Module):
    def forward(self, first, second):
        return first - second


def test_inputs_go_to_a_module_by_name_else_by_order():
    """A sweep need not know what `forward` calls its parameters."""
    assert -9 == bind(Named(), {"second": 10, "first": 1})()
    assert 9 == bind(Named(), {"a": 10, "b": 1})()


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_inputs_go_to_a_script_by_order():
    """TorchScript shows no signature."""
    script = torch.jit.trace(nn.Identity(), torch.ones(1))

    assert torch.equal(X["x"], bind(script, {"anything": X["x"]})())


def test_a_function_of_c_is_called_with_the_inputs():
    """What has no signature is taken at its word."""
    found = made(torch.relu, inputs={"input": torch.ones(2)})

    assert "step" == found.kind
