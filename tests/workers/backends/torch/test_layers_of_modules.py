"""The layer pass on modules as torch makes them: fused, lazy, scripted, compiled."""

import inspect
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from farm.trace.layers import reduce
from tests.workers.backends.torch.layer_clock import ask
from workers.backends import LayerPass, NotOffered
from workers.backends.torch import layers


def real(model: nn.Module, *inputs: torch.Tensor, grad: bool = False, **more) -> LayerPass:
    from time import perf_counter_ns

    with torch.set_grad_enabled(grad):
        return layers.measure(model, lambda: model(*inputs), ask(perf_counter_ns, **more))


def scripted(model: nn.Module) -> nn.Module:
    """Return it as TorchScript, which torch would rather not make any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(model)


def test_an_attention_is_one_layer_with_the_projection_that_it_never_calls() -> None:
    model = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 16)

    found = real(model, x, x, x)

    assert ["MultiheadAttention"] == found.reading.layers
    assert 0 < int(found.layer_ns.min())


def test_a_fused_encoder_stays_fused_and_is_one_layer() -> None:
    """A hook would switch the fused path off, and another model would be measured."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(2, 5, 16)

    found = real(layer, x)

    assert ["TransformerEncoderLayer"] == found.reading.layers


def test_an_encoder_that_is_not_fused_shows_its_parts() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).train()

    found = real(layer, torch.randn(2, 5, 16), grad=True)

    assert {"self_attn", "linear1", "norm2"} < set(found.reading.layers)
    assert "TransformerEncoderLayer (self)" == found.reading.layers[0]


def test_a_lazy_module_becomes_what_it_is_before_it_is_timed() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())

    found = real(model, torch.randn(2, 5))

    assert ["Sequential", "Linear", "ReLU"] == found.reading.types
    assert ("Linear", (3, 5)) == (type(model[0]).__name__, tuple(model[0].weight.shape))


def test_a_lazy_module_is_left_whole_without_a_warm_up_too() -> None:
    model = nn.Sequential(nn.LazyLinear(3))

    found = real(model, torch.randn(2, 5), warmup=0)

    assert (2, 10) == found.layer_ns.shape
    assert "forward" not in vars(model[0])


def test_a_scripted_part_is_one_layer() -> None:
    """Its own parts run without Python, where nobody sees them."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before = nn.Linear(4, 4)
            self.body = scripted(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(self.before(x))

    model = Net().eval()

    found = real(model, torch.randn(2, 4))

    assert ["Net (self)", "before", "body"] == found.reading.layers
    assert "Sequential" == found.reading.types[2]
    # torch keeps the script's own method there, once it was called
    assert not inspect.isfunction(vars(model.body).get("forward"))


def test_a_model_that_is_scripted_is_one_layer() -> None:
    model = scripted(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))

    found = real(model, torch.randn(2, 4))

    assert ["Sequential"] == found.reading.layers


def test_the_numbers_of_a_model_do_not_change() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    x = torch.randn(3, 8)
    before = model(x)

    real(model, x)

    assert torch.equal(before, model(x))


def compiled(model: nn.Module) -> nn.Module:
    """Compile without a compiler: the graph is traced, and then run as it was."""
    return torch.compile(model, backend="eager")


def test_a_compiled_model_is_one_piece_and_refused() -> None:
    in_place = nn.Linear(4, 4)
    in_place.compile(backend="eager")

    for model in (compiled(nn.Sequential(nn.Linear(4, 4))), in_place):
        with pytest.raises(NotOffered, match="fused"):
            real(model, torch.ones(1, 4))


@pytest.mark.parametrize("how", ["wrapped", "in place"])
def test_a_compiled_part_is_one_layer_and_is_not_compiled_anew(how: str) -> None:
    body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    if how == "in place":
        body.compile(backend="eager")
    model = nn.Sequential(nn.Linear(4, 4), compiled(body) if how == "wrapped" else body)
    x = torch.ones(1, 4)
    with torch.no_grad():
        model(x)
    counters = sys.modules["torch._dynamo.utils"].counters
    before = dict(counters["stats"])

    found = real(model, x)

    assert ["Sequential (self)", "0", "1"] == found.reading.layers
    assert before == dict(counters["stats"])
    assert "forward" not in vars(body[0])


def test_a_real_pass_reduces_to_a_table_of_the_whole() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).eval()
    found = real(model, torch.randn(8, 64), iterations=20)

    made = reduce(
        found.reading,
        found.layer_ns,
        profiled_ns=found.profiled_ns,
        clean_ns=found.clean_ns,
        precision="fp32",
        device="cpu:0",
    )

    assert np.all(found.layer_ns.sum(axis=0) <= found.profiled_ns)
    assert made.unattributed_ms is not None
    assert 0 <= made.unattributed_ms
    assert {"0", "1", "2"} <= {row.layer for row in made.rows}
