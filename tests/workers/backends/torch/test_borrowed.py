import gc
import random
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules import module as registry

from farm.errors import Refused
from workers.backends.torch.borrowed import borrowed, checked


class Two(nn.Module):
    def forward(self, left, right):
        return left - right


@pytest.mark.parametrize(
    "given",
    [
        (torch.ones(2, 3), torch.zeros(2, 3)),
        {"right": torch.zeros(2, 3), "left": torch.ones(2, 3)},
    ],
    ids=["order", "name"],
)
def test_several_inputs_go_by_order_or_by_name(given):
    with borrowed(Two(), given) as guest:
        assert torch.equal(torch.ones(2, 3), guest.call())
        assert 2 == guest.batch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_shape_is_drawn_the_same_each_time_in_the_dtype_of_the_weights(dtype):
    model = nn.Linear(3, 3).to(dtype)

    with borrowed(model, (4, 3)) as one, borrowed(model, [4, 3]) as other:
        first, second = one.inputs["input_0"], other.inputs["input_0"]

    assert (dtype, (4, 3)) == (first.dtype, tuple(first.shape))
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    "given",
    [
        np.ones((2, 3), "float32"),
        [np.ones((2, 3), "float32")],
        {"input": np.ones((2, 3), "float32")},
    ],
    ids=["alone", "order", "name"],
)
def test_arrays_are_inputs_as_tensors_are(given):
    with borrowed(nn.Linear(3, 1), given) as guest:
        assert (2, 1) == tuple(guest.call().shape)
        assert 2 == guest.batch


@pytest.mark.parametrize(
    ("given", "batch"),
    [
        ((torch.ones(()), torch.ones(5, 3)), 5),
        ({"left": torch.ones(()), "right": torch.ones(())}, 1),
    ],
    ids=["one", "none"],
)
def test_the_batch_is_the_leading_dimension_of_the_first_input_that_has_one(given, batch):
    """C15."""
    with borrowed(Two(), given) as guest:
        assert batch == guest.batch


@pytest.mark.parametrize("given", [torch.zeros(0, 3), [torch.zeros(()), torch.zeros(0)]])
def test_an_empty_batch_is_refused(given):
    with pytest.raises(Refused, match="the batch is empty") as caught, borrowed(Two(), given):
        pass

    assert "the shape (0" in caught.value.why


@pytest.mark.parametrize("given", [(), {}, {"x": 2.0}, (0, 3), "picture", b"picture", None])
def test_what_holds_no_numbers_is_no_input(given):
    with pytest.raises(Refused, match="is no input"), borrowed(Two(), given):
        pass


def test_inside_nothing_trains_and_no_gradient_is_kept():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())

    with borrowed(model, (1, 2)) as guest:
        assert not any(each.training for each in model.modules())
        assert not guest.call().requires_grad
        assert guest.sync is None

    assert all(each.training for each in model.modules())


def test_what_is_no_module_is_refused_by_its_name():
    with pytest.raises(Refused, match="'len' is no torch module"):
        checked(len)


@pytest.mark.parametrize("fails", [False, True])
def test_every_call_leaves_the_model_and_torch_as_they_were(fails):
    """Modes, gradients asked for, hooks, random numbers, collector: also when the model raises."""

    class Moody(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.layer = nn.BatchNorm1d(4), nn.Linear(4, 4)
            self.layer.eval()
            self.norm.weight.requires_grad_(False)

        def forward(self, x):
            if fails:
                raise RuntimeError("no")
            return self.layer(self.norm(x))

    model = Moody()
    generators = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    before = state(model)

    with suppress(RuntimeError), borrowed(model, (3, 4)) as guest:
        guest.cost()
        guest.call()
        assert not fails

    assert before == state(model)
    assert torch.equal(generators[0], torch.random.get_rng_state())
    assert generators[1] == random.getstate()
    assert np.array_equal(generators[2], np.random.get_state()[1])


def state(model):
    return {
        "training": [each.training for each in model.modules()],
        "gradients": [each.requires_grad for each in model.parameters()],
        "weights": [each.tolist() for each in model.state_dict().values()],
        "attributes": [set(vars(each)) for each in model.modules()],
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "hooks": (len(registry._global_forward_hooks), len(registry._global_forward_pre_hooks)),
        "modes": len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()),
        "threads": torch.get_num_threads(),
        "collector": gc.isenabled(),
    }


def test_a_model_can_be_trained_afterwards():
    """Also one that keeps a tensor of the call."""

    class Keeping(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.kept = nn.Linear(2, 2), None

        def forward(self, x):
            self.kept = self.layer(x) if self.kept is None else self.kept
            return self.layer(x) * self.kept

    model = Keeping()
    with borrowed(model, (1, 2)) as guest:
        guest.call()

    model(torch.ones(1, 2)).sum().backward()

    assert model.layer.weight.grad is not None


def test_a_lazy_module_is_refused_until_it_was_called_once():
    model = nn.Sequential(nn.ReLU(), nn.LazyLinear(2))

    with pytest.raises(Refused, match="'1' have no shape") as caught:
        checked(model)

    assert "call the model once first" in str(caught.value.hint)
    model(torch.ones(1, 3))
    assert model is checked(model)
