"""The layer pass as a library call."""

import pytest
import torch
from torch import nn

from farm.errors import NoResult, Refused
from farm.trace import blocks
from workers.profiler.per_layer import profile_per_layer


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))


@pytest.mark.seed("S0.38")
def test_a_library_call_gives_a_view_of_the_layers() -> None:
    """One row a layer, in order and by share; the samples behind it; the block of the CSV."""
    view = profile_per_layer(model(), torch.randn(8, 64), iterations=20, warmup=2)

    assert {"0", "1", "2"} <= {row.layer for row in view.rows}
    assert (20, 2, "fp32") == (
        *(view.table.iterations, view.table.warmup_iterations),
        view.table.precision,
    )
    assert (len(view.names), 20) == view.layer_ns.shape
    shares = [row.share_pct for row in view.hotspots]
    assert sorted(shares, reverse=True) == shares
    (block,) = blocks.split(view.csv, name="view")
    assert [row.layer for row in view.rows] == [row.layer for row in block.rows]


@pytest.mark.seed("S0.5", "S0.6")
@pytest.mark.parametrize(("iterations", "warmup"), [(1, 5), (20, 5), (100, 5), (101, 6), (200, 10)])
def test_untimed_iterations_come_first(iterations: int, warmup: int) -> None:
    """G1: five, or a twentieth rounded up; with as many clean ones as profiled ones."""
    calls = []

    class Counts(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(0)
            return x

    view = profile_per_layer(Counts(), torch.ones(1), iterations=iterations)

    assert warmup == view.table.warmup_iterations
    assert warmup + 2 * iterations == len(calls)


def test_the_model_is_left_in_its_mode_and_can_be_trained() -> None:
    trained = model().train()
    x = torch.randn(8, 64)

    profile_per_layer(trained, x, iterations=2, warmup=1)

    assert trained.training
    assert all(each.training for each in trained.modules())
    assert not any("forward" in vars(each) for each in trained.modules())
    trained(x).sum().backward()


def test_inputs_are_taken_by_name_and_in_order_and_as_a_shape() -> None:
    class Adds(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a - b

    one, two = torch.ones(2), torch.zeros(2)
    for given in ({"b": two, "a": one}, (one, two)):
        assert 1 == len(profile_per_layer(Adds(), given, iterations=1, warmup=1).rows)
    assert profile_per_layer(model(), (8, 64), iterations=1, warmup=1).rows


@pytest.mark.parametrize("asked", [{"iterations": 0}, {"warmup": -1}])
def test_numbers_that_make_no_sense_are_refused(asked: dict[str, int]) -> None:
    with pytest.raises(Refused):
        profile_per_layer(model(), (8, 64), **asked)


def test_what_has_no_layers_is_told() -> None:
    with pytest.raises(Refused, match="no torch module"):
        profile_per_layer(lambda x: x, (8, 64))
    compiled = torch.compile(model(), backend="eager")
    with pytest.raises(NoResult) as caught:
        profile_per_layer(compiled, (8, 64))
    assert "fused" in caught.value.why


def test_a_lazy_model_is_refused() -> None:
    with pytest.raises(Refused, match="no shape yet"):
        profile_per_layer(nn.Sequential(nn.LazyLinear(2)), (8, 64), iterations=1)
