import numpy as np
import pytest
import torch
from torch import nn

from workers.backends import LoadFailed
from workers.backends.torch import precision


def module():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))


@pytest.mark.parametrize(
    ("declared", "dtype"),
    [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)],
)
def test_a_module_is_cast_with_its_buffers(declared, dtype):
    """Floating parameters and buffers take the precision; counters keep their type."""
    cast = precision.cast_module(module(), declared)

    floating = {each.dtype for each in cast.state_dict().values() if each.is_floating_point()}
    assert {dtype} == floating
    assert torch.int64 == cast[1].num_batches_tracked.dtype
    assert declared == precision.observed(cast)["parameters"]


def test_unspecified_casts_nothing():
    """What the model came with is what is measured."""
    cast = precision.cast_module(module().double(), "unspecified")

    assert "fp64" == precision.observed(cast)["parameters"]


def test_only_floating_inputs_are_cast():
    """Token ids and masks keep their type."""
    given = {"x": torch.ones(2), "ids": torch.ones(2, dtype=torch.int64)}

    cast = precision.cast_inputs(given, "bf16")

    assert {"x": torch.bfloat16, "ids": torch.int64} == {n: each.dtype for n, each in cast.items()}
    assert torch.float32 == precision.cast_inputs(given, "unspecified")["x"].dtype


def test_complex_parameters_cannot_be_cast():
    """Casting would drop their imaginary part; the hint says how to declare it."""
    held = nn.Module()
    held.weight = nn.Parameter(torch.ones(2, dtype=torch.complex64))

    with pytest.raises(LoadFailed, match="'weight' is complex64") as caught:
        precision.cast_module(held, "bf16")

    assert "unsupported" == caught.value.kind
    assert "accepts `precision`" in caught.value.hint


@pytest.mark.parametrize(
    ("declared", "dtypes", "agree"),
    [
        ("fp32", [torch.float32], True),
        ("fp32", [np.dtype("float32")], True),
        ("fp32", [np.dtype("float64")], False),
        ("bf16", [torch.float32], False),
        ("bf16", [torch.float32, torch.bfloat16], True),
        ("bf16", [torch.int64], True),
        ("bf16", [], True),
        ("unspecified", [torch.float64], True),
    ],
)
def test_a_declaration_agrees_where_one_floating_type_is_the_declared_one(declared, dtypes, agree):
    """Integers say nothing, and nothing is declared by `unspecified`."""
    assert agree == precision.is_declared(declared, dtypes)


def test_types_are_named_in_the_words_of_a_job():
    """Sorted, once each; nothing to name is `none`."""
    assert "bf16+fp32+int64" == precision.words(
        [torch.float32, torch.int64, torch.bfloat16, np.dtype("float32")]
    )
    assert "none" == precision.words([])


def test_autocast_is_seen():
    """Held open around the step it would decide what is measured."""
    assert "off" == precision.observed(None)["autocast"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert "bf16" == precision.observed(None)["autocast"]
