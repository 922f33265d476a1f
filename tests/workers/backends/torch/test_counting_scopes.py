import warnings

import pytest
import torch
from torch import nn
from torch.nn.modules import module as registry

from workers.backends.torch.counting_scopes import Scopes


class Whole(nn.Module):
    """Calls its parts by keyword, one of them twice, and works a little itself."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.again = self.first
        self.hidden = [nn.Linear(3, 3)]  # not registered

    def forward(self, x):
        return self.first(input=self.hidden[0](self.first(x) + 1))


def followed(model, call):
    scopes, ended, here = Scopes(model), [], []

    class Here(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            here.append((scopes.here, func.overloadpacket.__name__))
            return func(*args, **(kwargs or {}))

    with scopes.followed(ended.append), torch.no_grad(), Here():
        call()
    return ended, here


def test_every_operator_belongs_to_the_innermost_module():
    """One that is not registered counts as its parent, a shared one goes by its first name."""
    model = Whole()

    _, here = followed(model, lambda: model(torch.ones(1, 3)))

    products = [name for name, operator in here if operator == "addmm"]
    assert ["first", "", "first"] == products
    assert ("", "add") in here


def test_a_leaf_is_told_with_all_its_arguments_and_its_output():
    model = Whole()

    ended, _ = followed(model, lambda: model(torch.ones(1, 3)))

    assert ["first", "first"] == [each.name for each in ended]
    assert (1, 3) == tuple(ended[1].given[1]["input"].shape)
    assert all(each.output.shape == (1, 3) for each in ended)


def test_a_layer_whose_parts_are_not_called_is_a_leaf():
    """The fused encoder has four products inside, and calls nothing."""
    layer = nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    model = nn.Sequential(layer)

    ended, here = followed(model, lambda: model(torch.randn(1, 3, 8)))

    assert ["0"] == [each.name for each in ended]
    assert [("0", "_transformer_encoder_layer_fwd")] == [each for each in here if "enc" in each[1]]


class Careful(nn.Module):
    def __init__(self):
        super().__init__()
        self.bad = Failing()
        self.good = nn.Linear(2, 2)

    def forward(self, x):
        try:
            self.bad(x)
        except ValueError:
            return self.good(x)


class Failing(nn.Module):
    def forward(self, x):
        raise ValueError("not today")


def test_a_module_that_fails_is_left_again():
    """What its parent does next belongs to the parent, and a failure is no end of a leaf."""
    model = Careful()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ended, here = followed(model, lambda: model(torch.ones(1, 2)))

    assert ["good"] == [each.name for each in ended]
    assert "good" == next(name for name, operator in here if operator == "addmm")


def test_no_hook_stays_even_if_the_model_raises():
    def state():
        return (
            dict(registry._global_forward_hooks),
            dict(registry._global_forward_pre_hooks),
            dict(registry._global_forward_hooks_with_kwargs),
            dict(registry._global_forward_hooks_always_called),
        )

    model, before = Failing(), state()

    with pytest.raises(ValueError, match="not today"):
        followed(model, lambda: model(torch.ones(1)))

    assert before == state()
