import warnings

import numpy as np
import pytest
import torch
from torch import nn

from workers.backends.torch import weights
from workers.models import gpt_nano


def total(module):
    found = weights.holdings(module)
    return found.total, found.trainable, found.unique_bytes


@pytest.mark.seed("S1.49")
def test_parameters_are_exact_integers():
    """Linear(128, 64) has 8,256; 618 print 618, and are 0.001 M to nobody."""
    small = nn.Sequential(nn.Linear(20, 27), nn.Linear(27, 1, bias=False), nn.PReLU(24))

    assert (8_256, 8_256, 4 * 8_256) == total(nn.Linear(128, 64))
    assert (618, 618, 4 * 618) == total(small)


@pytest.mark.seed("S1.49")
def test_a_frozen_model_has_parameters_and_trains_none():
    model = nn.Linear(8, 8).requires_grad_(False)

    assert (72, 0, 4 * 72) == total(model)


@pytest.mark.seed("S1.49")
def test_shared_weights_count_once():
    """Whether one parameter has two names, or two parameters lie in one place."""
    tied = nn.ModuleList([nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)])
    tied[1].weight = tied[0].weight
    viewed = nn.ModuleList([nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)])
    viewed[1].weight = nn.Parameter(viewed[0].weight.data)

    assert (64, 64, 256) == total(tied) == total(viewed)
    assert 758_912 == total(gpt_nano.build())[0]


def test_parts_of_one_storage_hold_it_once():
    """Two halves of a flat array are all of it."""
    flat = torch.zeros(100)
    model = nn.ParameterList([flat[:50], flat[50:]])

    assert (100, 100, 400) == total(model)


def test_bytes_are_told_by_dtype_and_buffers_apart():
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 2, bias=False).bfloat16())
    model.register_buffer("seen", torch.zeros(3, dtype=torch.int64))

    found = weights.holdings(model)

    assert {"bf16": 16, "fp32": 64} == found.dtypes
    assert 24 == found.buffers_bytes


@pytest.mark.seed("S2.15")
def test_quantised_layers_hold_a_byte_for_each_weight():
    """Four times less than fp32, of which their packed weights are no parameters to torch."""
    model = nn.Sequential(nn.Linear(64, 32, bias=False), nn.LSTM(32, 16))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch moves this tool to a package of its own
        packed = torch.ao.quantization.quantize_dynamic(model.eval(), {nn.Linear, nn.LSTM})

    before, after = weights.holdings(model), weights.holdings(packed)

    matrices, biases = 64 * 32 + 4 * 16 * (32 + 16), 2 * 4 * 16
    assert {"fp32": 4 * (matrices + biases)} == before.dtypes
    assert {"fp32": 4 * biases, "qint8": matrices} == after.dtypes
    assert (before.total, 0) == (after.total, after.trainable)


@pytest.mark.seed("S2.25")
def test_the_spread_of_the_weights_matches_numpy(seed):
    generator = torch.Generator().manual_seed(seed)
    model = nn.Linear(50, 40)
    with torch.no_grad():
        for each in model.parameters():
            each.copy_(torch.randn(each.shape, generator=generator) * 0.1)

    found = weights.spread(model)

    sizes = np.abs(np.concatenate([each.detach().numpy().ravel() for each in model.parameters()]))
    expected = {f"p{q}": np.percentile(sizes, q) for q in (10, 25, 50, 75, 90)}
    assert pytest.approx(expected) == found.percentiles
    below = {f"{limit:g}": np.mean(sizes < limit) for limit in (0.001, 0.01, 0.1)}
    assert pytest.approx(below) == found.shares_below
    assert (2_040, 2_040) == (found.n, found.used)


@pytest.mark.seed("S2.25")
def test_a_share_is_of_the_weights_strictly_below():
    model = nn.ParameterList([torch.tensor([0.0, -0.0005, 0.001, -0.05, 0.1, 2.0])])

    found = weights.spread(model)

    assert {"0.001": 2 / 6, "0.01": 3 / 6, "0.1": 4 / 6} == found.shares_below


def test_many_weights_are_looked_at_by_every_nth():
    """The number of those that were looked at is told."""
    model = nn.ParameterList([torch.zeros(2**24 + 5, dtype=torch.bfloat16)])

    found = weights.spread(model)

    assert (2**24 + 5, 2**23 + 3) == (found.n, found.used)


def test_no_weights_have_no_spread():
    assert weights.spread(nn.ReLU()) is None
