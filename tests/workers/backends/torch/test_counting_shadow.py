import pytest
import torch
from torch import nn

from workers.backends.torch.counting_shadow import shadow, shadows


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.layer.weight
        self.register_buffer("table", torch.arange(4.0))
        self.kept = {"scale": [torch.full((1,), 2.0)]}  # no buffer, and nobody moves it

    def forward(self, x):
        return (self.tied(self.layer(x)) + self.table) * self.kept["scale"][0]


def test_a_shadow_runs_without_numbers_and_leaves_the_module_as_it_was():
    module, x = Odd(), torch.randn(2, 4)
    before, expected = [*module.parameters(), module.kept["scale"][0]], module(x)

    made = shadow(module)
    out = made(**shadows({"x": x}))

    assert ("meta", (2, 4)) == (out.device.type, tuple(out.shape))
    after = [*module.parameters(), module.kept["scale"][0]]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert torch.equal(expected, module(x))


def test_shared_weights_stay_shared():
    made = shadow(Odd())

    assert made.tied.weight is made.layer.weight
    assert 3 == len(list(made.parameters()))


def test_a_shadow_keeps_dtypes_strides_and_what_is_trained():
    module = nn.Conv2d(3, 4, 3).to(torch.bfloat16, memory_format=torch.channels_last)
    module.bias.requires_grad_(False)

    made = shadow(module)

    assert module.weight.stride() == made.weight.stride()
    assert torch.bfloat16 is made.weight.dtype
    assert [True, False] == [each.requires_grad for each in made.parameters()]
    assert all(isinstance(each, nn.Parameter) for each in made.parameters())


def test_recurrent_layers_hold_their_weights_twice_and_have_a_shadow():
    """They keep a list of them besides."""
    made = shadow(nn.LSTM(3, 4))

    assert "meta" == made(torch.empty(2, 1, 3, device="meta"))[0].device.type


def test_other_inputs_pass():
    given = {"x": torch.ones(2), "mask": None, "n": 3}

    made = shadows(given)

    assert ("meta", None, 3) == (made["x"].device.type, made["mask"], made["n"])


def test_a_script_has_no_shadow():
    """Its constants would stay real."""
    with pytest.warns(DeprecationWarning, match="torch.jit.script"):
        script = torch.jit.script(nn.Linear(2, 2))

    with pytest.raises(TypeError, match="TorchScript"):
        shadow(nn.Sequential(script))
