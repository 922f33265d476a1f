import pytest
import torch
from torch import nn

from workers.backends.torch.counting_calls import heard_by


class Names:
    def __init__(self):
        self.heard_of, self.puzzles = [], []

    def heard(self, operator, args, kwargs, out):
        self.heard_of.append(str(operator))

    def puzzled(self, name):
        self.puzzles.append(name)


def heard(call, mode=torch.inference_mode):
    names = Names()
    with mode(), heard_by(names):
        call()
    return names


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_both_gradient_modes_show_the_products_of_a_layer(mode):
    """In inference mode `linear` comes whole, and is taken apart."""
    layer, x = nn.Linear(4, 3), torch.randn(2, 4)

    assert "aten.addmm.default" in heard(lambda: layer(x), mode).heard_of


def test_the_result_is_what_it_would_have_been():
    model = nn.Sequential(nn.Linear(4, 3), nn.LSTM(3, 2), nn.Identity())
    x = torch.randn(5, 4)

    with torch.inference_mode():
        alone, _ = model(x)
        with heard_by(Names()):
            listened, _ = model(x)

    assert torch.equal(alone, listened)


def test_dropout_outside_training_is_no_operator_at_all():
    """The kernel that runs hands its input on; the form for tracing would copy it."""
    x = torch.randn(3)

    assert [] == heard(lambda: nn.Dropout().eval()(x)).heard_of


def test_a_script_is_heard_from_inside():
    """Its operators go through the same dispatcher."""
    with pytest.warns(DeprecationWarning, match="torch.jit.script"):
        script = torch.jit.script(nn.Linear(4, 3).eval())

    assert "aten.addmm.default" in heard(lambda: script(torch.randn(2, 4))).heard_of


def test_what_takes_functions_is_told_by_its_name():
    """A conditional, for one: nobody hears what goes on inside."""
    x = torch.randn(3)

    def chosen():
        return torch.ops.higher_order.cond(True, torch.sin, torch.cos, (x,))

    found = heard(chosen, torch.no_grad)

    assert ["cond"] == found.puzzles


def test_afterwards_nobody_listens():
    names = Names()
    with heard_by(names):
        torch.ones(2)

    torch.ones(3)

    assert 1 == len(names.heard_of)
