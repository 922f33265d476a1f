from dataclasses import dataclass

import numpy as np
import pytest
import torch

from workers.backends.torch import outputs


@dataclass
class Boxes:
    scores: object


def test_leaves_are_found_wherever_they_are_nested():
    """Tuples, lists, mappings and records, in order; other values are passed over."""
    one, two, three = torch.ones(1), np.ones(2), torch.ones(3)

    found = list(outputs.leaves(({"a": [one, "text"]}, Boxes(scores=two), None, three)))

    assert [1, 2, 3] == [len(each) for each in found]


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ({"a": torch.ones(1), "b": np.ones(2)}, ["a", "b"]),
        ({"a": (torch.ones(1),), "b": Boxes(scores=np.ones(2))}, ["a", "b"]),
        ({1: torch.ones(1), "1": torch.ones(2)}, ["output_0", "output_1"]),
        ({"a": [], "b": (torch.ones(1), torch.ones(2))}, ["output_0", "output_1"]),
        ((torch.ones(1), torch.ones(2)), ["output_0", "output_1"]),
    ],
    ids=["flat", "one leaf each", "keys that read alike", "none and two", "no mapping"],
)
def test_every_array_of_an_output_has_a_name_of_its_own(output, names):
    """None is lost, and none goes by the name of another."""
    found = outputs.named(output)

    assert names == list(found)
    assert [1, 2] == [len(each) for each in found.values()]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_one_bad_element_is_not_finite(dtype, bad):
    """In every floating type, as tensor and as array."""
    values = torch.ones(1000, dtype=dtype)
    assert outputs.is_finite(values)

    values[777] = bad

    assert not outputs.is_finite(values)
    assert not outputs.is_finite(values.double().numpy())


def test_integers_are_finite():
    """They have no other values, and torch has no check for some."""
    assert outputs.is_finite(torch.ones(3, dtype=torch.bool))
    assert outputs.is_finite(np.ones(3, dtype=np.int8))
    assert outputs.is_finite(np.array(["text"]))


@pytest.mark.parametrize(
    ("dtype", "least"),
    [
        (torch.float16, 2.0**-14),
        (torch.bfloat16, 2.0**-126),
        (torch.float32, 2.0**-126),
        (torch.float64, 2.0**-1022),
    ],
)
def test_subnormals_are_counted_by_their_bits(dtype, least):
    """Below the least normal number and not zero, of either sign; also while they are flushed."""
    values = torch.tensor([0.0, least, -least / 2, least / 4, 1.0], dtype=torch.float64).to(dtype)
    expected = 2 / 5

    assert expected == outputs.subnormal_share([values])
    torch.set_flush_denormal(True)
    flushed = outputs.subnormal_share([values])
    torch.set_flush_denormal(False)
    assert expected == flushed


def test_shares_are_over_all_floating_elements():
    """Integers do not dilute the share, and without a float there is none."""
    tiny = np.full(10, 1e-40, dtype=np.float32)

    assert 0.5 == outputs.subnormal_share([tiny, torch.ones(10), torch.ones(99, dtype=torch.int64)])
    assert outputs.subnormal_share([torch.ones(3, dtype=torch.int64)]) is None


def test_large_tensors_are_read_in_parts():
    """Every part counts, the last and shortest too."""
    values = torch.zeros((1 << 20) + 5)
    values[-1] = 1e-40

    assert 1 / values.numel() == outputs.subnormal_share([values])


def test_a_digest_changes_with_one_element():
    """Whatever the type, the layout or the device view."""
    for values in (torch.zeros(4, 4).T, torch.zeros(3).bfloat16(), torch.tensor(0), np.zeros(3)):
        before = outputs.digest([values])
        assert before == outputs.digest([values])

        values[...] = 1

        assert before != outputs.digest([values])
