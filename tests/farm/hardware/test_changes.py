import pytest

from farm.hardware import changes
from farm.hardware.changes import Part


@pytest.mark.seed("S2.21")
def test_backward_is_twice_forward() -> None:
    assert 32_768 == changes.backward_flops(16_384)


@pytest.mark.seed("S2.22")
def test_sgd_keeps_nothing_and_adam_two_moments() -> None:
    """Of the size of the gradients each."""
    assert {"sgd": 0, "adam": 2_000, "adamw": 2_000} == changes.optimiser_bytes(1_000)


@pytest.mark.seed("S2.15")
def test_packed_integers_are_four_times_smaller_than_fp32() -> None:
    """And an odd number of half bytes is rounded up."""
    assert (4_000, 1_000) == (
        changes.modelled_bytes(1_000, "fp32"),
        changes.modelled_bytes(1_000, "int8"),
    )
    assert 2 == changes.modelled_bytes(3, "int4")


@pytest.mark.seed("S2.11")
def test_layers_with_float_weights_are_candidates_where_their_type_takes_time() -> None:
    """The largest first; two halves of 5 % are enough together, and 4.9 % are not."""
    parts = [
        Part("norm", "LayerNorm", 30.0),
        Part("first", "Linear", 2.5),
        Part("last", "Linear", 2.5),
        Part("patch", "Conv2d", 4.9),
        Part("fused", "TransformerEncoderLayer", 20.0),
    ]

    found = changes.candidates(parts, precision="fp32")

    assert ["fused", "first", "last"] == [each.layer for each in found]
    assert {"TransformerEncoderLayer": 20.0, "Linear": 5.0} == changes.by_type(found)
    assert [] == changes.candidates(parts, precision="int8")


@pytest.mark.parametrize(
    "type",
    [
        "DynamicQuantizedLinear",
        "MatMulInteger",
        "QLinearConv",
        "ReLU",
        "VADRNNJITMerge",
        "Sequential",
    ],
)
def test_what_computes_with_integers_or_without_weights_is_none(type: str) -> None:
    assert not changes.multiplies(type)


@pytest.mark.parametrize(
    "type",
    [
        *("Linear", "NonDynamicallyQuantizableLinear", "Conv2d", "ConvTranspose1d", "Conv"),
        *("LSTM", "GRUCell", "MultiheadAttention", "TransformerEncoderLayer", "Gemm", "MatMul"),
    ],
)
def test_what_multiplies_by_weights_is_known_by_its_type(type: str) -> None:
    """Of torch and of ONNX."""
    assert changes.multiplies(type)


def test_the_rule_names_its_limit_and_what_the_shares_are_of() -> None:
    """It is printed beside what it found, so the two must not drift apart."""
    assert changes.quantisation_rule("time").endswith("take at least 5 % of the time")
    assert changes.quantisation_rule("FLOPs").endswith("do at least 5 % of the FLOPs")


def test_saved_bytes_are_a_share_of_those_that_are_moved() -> None:
    """A thousand fp32 weights become 1,000 of 4,000 bytes: 30 % of ten thousand."""
    assert pytest.approx(0.3) == changes.bytes_saved(10_000, 1_000, precision="fp32")
    assert changes.bytes_saved(10_000, 1_000, precision="unspecified") is None
    assert changes.bytes_saved(0, 1_000, precision="fp32") is None


def test_no_more_is_saved_than_was_read() -> None:
    """A model may hold weights that this input never touches: three quarters at most go away."""
    assert 0.75 == changes.bytes_saved(10_000, 1_000_000, precision="fp32")
    assert 0.0 == changes.bytes_saved(10_000, 1_000, precision="int4")
