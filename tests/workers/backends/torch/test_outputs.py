from dataclasses import dataclass

import numpy as np
import pytest
import torch

from workers.backends.torch import outputs

# Told once by a process that makes the first complex number of two halves.
HALVES = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


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


@pytest.mark.parametrize(
    "values",
    [
        torch.tensor([1 + 2j, 3 - 4j]),
        torch.tensor([1 + 2j], dtype=torch.complex128),
        torch.tensor([2**16 - 1], dtype=torch.uint16),
        torch.tensor([2**32 - 1], dtype=torch.uint32),
        torch.tensor([2**63 + 1], dtype=torch.uint64),
        torch.tensor([2**62 + 1]),
        torch.tensor([True, False]),
        torch.tensor([0.1], dtype=torch.float16),
    ],
    ids=lambda values: str(values.dtype),
)
def test_a_type_that_numpy_has_is_kept_with_every_digit(values):
    """No imaginary part is lost, and no large integer is rounded to a float."""
    kept = outputs.named(values)["output_0"]

    assert str(values.dtype) == f"torch.{kept.dtype.name}"
    assert values.tolist() == kept.tolist()


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (torch.bfloat16, "float32"),
        (torch.float8_e4m3fn, "float32"),
        (torch.float8_e5m2, "float32"),
        pytest.param(torch.complex32, "complex64", marks=HALVES),
    ],
)
def test_a_type_that_numpy_lacks_is_widened_and_its_numbers_stay(dtype, kept):
    values = torch.tensor([1.5, -2.0]).to(dtype)

    found = outputs.named(values)["output_0"]

    assert (kept, [1.5, -2.0]) == (found.dtype.name, found.tolist())


def test_an_array_of_a_type_that_a_package_adds_is_widened_too():
    """An NPZ holds nothing of it but its bytes."""
    from ml_dtypes import bfloat16 as added  # comes with onnx

    found = outputs.named(np.array([1.5, -2.0], added))["output_0"]

    assert ("float32", [1.5, -2.0]) == (found.dtype.name, found.tolist())
    assert not outputs.is_finite(np.array([1.5, np.nan], added))
    assert [("a", "<f4")] == outputs.named(np.zeros(1, [("a", "<f4")]))["output_0"].dtype.descr


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_quantised_tensor_is_the_numbers_that_it_stands_for():
    """Two with the same integers and other scales are other numbers."""
    one, other = (
        torch.quantize_per_tensor(torch.tensor([1.0, 2.0]) * scale, scale, 0, torch.quint8)
        for scale in (0.5, 0.25)
    )

    assert [0.5, 1.0] == outputs.named(one)["output_0"].tolist()
    assert outputs.is_finite(one)
    assert outputs.digest([one]) != outputs.digest([other])


def test_what_is_only_noted_at_a_tensor_is_carried_out():
    """A conjugate and a negative are marks until somebody needs the numbers."""
    conjugate = torch.tensor([1 + 2j]).conj()

    assert [1 - 2j] == outputs.named(conjugate)["output_0"].tolist()
    assert [-2.0] == outputs.named(conjugate.imag)["output_0"].tolist()
    assert outputs.digest([torch.tensor([1 - 2j])]) == outputs.digest([conjugate])


class OnGpu(torch.Tensor):
    """A tensor that numpy cannot see into before it is brought to the host."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)

    def numpy(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def test_numbers_on_a_device_are_read_on_the_host():
    there, here = torch.ones(3).as_subclass(OnGpu), torch.ones(3)

    assert [1.0, 1.0, 1.0] == outputs.named(there)["output_0"].tolist()
    assert outputs.digest([here]) == outputs.digest([there])
    assert 0.0 == outputs.subnormal_share([there])


@HALVES
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex32, torch.float8_e4m3fn])
def test_half_a_number_that_is_none_is_not_finite(dtype):
    """The imaginary part counts, and a type that torch has no check for is checked."""
    bad = complex(1, float("nan")) if dtype.is_complex else float("nan")

    assert outputs.is_finite(torch.ones(2).to(dtype))
    assert not outputs.is_finite(torch.tensor([1, bad]).to(dtype))


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


@HALVES
def test_a_digest_changes_with_one_element():
    """Whatever the type, the layout or the device view."""
    for values in (
        torch.zeros(4, 4).T,
        torch.zeros(3).bfloat16(),
        torch.zeros(3).to(torch.float8_e5m2),
        torch.zeros(3, dtype=torch.complex32),
        torch.zeros(3, dtype=torch.uint16),
        torch.tensor(0),
        np.zeros(3),
    ):
        before = outputs.digest([values])
        assert before == outputs.digest([values])

        values[...] = 1

        assert before != outputs.digest([values])
