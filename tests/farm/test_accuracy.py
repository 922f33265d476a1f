"""The laws of nearness: relative to the size of a reference, unless somebody says it in numbers."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import accuracy, schema
from farm.accuracy import Limits, distance, limits, worst

PRECISIONS = ("fp32", "unspecified", "fp16", "bf16")


def within(found, expected, bounds) -> bool:
    return distance("y", np.asarray(found), np.asarray(expected), bounds).within


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20),
    st.floats(0, 1e-2),
    st.floats(0, 1e-2),
)
def test_within_is_what_numpy_calls_close(values, atol, rtol):
    b = np.array(values, np.float64)
    a = b * (1 + rtol / 2) + atol / 2

    error = distance("y", a, b, Limits(atol, rtol))

    assert bool(np.allclose(a, b, atol=atol, rtol=rtol)) == error.within
    assert error.max_abs >= error.rmse - 1e-12


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("scale", [1e-6, 0.1, 1.0, 1e6])
def test_an_output_that_is_scaled_is_not_near_however_small_it_is(precision, scale, seed):
    """Absolute bounds let everything pass where all outputs are small."""
    reference = np.random.default_rng(seed).normal(size=(4, 10)) * scale
    bounds = limits(precision, atol=None, rtol=None)

    assert not within(reference * 0.72, reference, bounds)
    assert within(reference, reference, bounds)


@pytest.mark.parametrize(("precision", "bits"), [("bf16", 8), ("fp16", 11)])
def test_numbers_that_are_rounded_to_a_precision_are_near(precision, bits, seed):
    """A rounding to so many bits is off by 2^-bits of each number at most."""
    reference = np.random.default_rng(seed).normal(size=1000)
    mantissa, exponent = np.frexp(reference)
    rounded = np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)

    assert within(rounded, reference, limits(precision, atol=None, rtol=None))
    assert not within(rounded, reference, limits("fp32", atol=None, rtol=None))


def test_a_number_near_0_may_be_off_by_a_share_of_the_largest():
    bounds = limits("bf16", atol=None, rtol=None)

    assert within([100.0, 0.9], [100.0, 0.0], bounds)
    assert not within([100.0, 1.1], [100.0, 0.0], bounds)


def test_what_is_given_is_absolute():
    assert not within([100.0, 0.9], [100.0, 0.0], limits("bf16", atol=0.5, rtol=None))
    assert within([100.0, 0.4], [100.0, 0.0], limits("bf16", atol=0.5, rtol=None))


def test_what_is_not_finite_is_never_near_and_has_no_distance():
    bounds = limits("bf16", atol=None, rtol=None)
    error = distance("y", np.array([1.0, 2.0]), np.array([1.0, np.inf]), bounds)

    assert (False, None) == (error.within, error.max_abs)
    assert not within([np.nan], [1.0], bounds)
    assert worst([error], Limits(0.1, 0.1)).startswith("not finite")


USUAL = limits("fp32", atol=None, rtol=None)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_imaginary_part_counts(dtype):
    """A difference is as long as its two parts are together."""
    reference = np.array([[3 + 4j, 1j]], dtype)

    error = distance("y", reference.conj(), reference, USUAL)

    assert (8.0, 2.0, False) == (error.max_abs, error.max_rel, error.within)
    assert pytest.approx((9 - 16 - 1) / 26) == error.cosine
    assert error.argmax_agreement is None
    assert within(reference * (1 + 1e-6j), reference, USUAL)
    assert not within(reference.real, reference, USUAL)
    assert not within([complex(1, np.nan)], [1 + 1j], USUAL)
    assert not within(reference.conj(), reference, limits("fp32", atol=7.9, rtol=0.0))
    assert within(reference.conj(), reference, limits("fp32", atol=8.0, rtol=0.0))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (np.array([[32003, 7]]), np.array([[32000, 7]])),
        (np.array([32003], np.uint16), np.array([32000], np.int64)),
        (np.array([32003.0]), np.array([32000])),
        (np.array([32003]), np.array([32000.0])),
        (np.array([True, False]), np.array([True, True])),
        (np.array([2**62]), np.array([2**62 + 100])),
        (np.array([2**63 - 1]), np.array([2**63], np.uint64)),
        (np.array([2**62 + 1]), np.array([2.0**62])),
        (np.array([2.0**62]), np.array([2**62 + 1])),
        (np.array([2**62 + 1]), np.array([2**62 + 0j])),
        (np.array([-(2**63)]), np.array([2**63 - 1])),
        (np.array([255], np.uint8), np.array([0], np.uint8)),
    ],
)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_integers_and_booleans_are_equal_or_wrong(found, expected, precision):
    """No precision rounds a token to another, and no cast makes two of them one."""
    bounds = limits(precision, atol=None, rtol=None)

    error = distance("ids", found, expected, bounds)

    assert (True, False) == (error.whole, error.within)
    assert error.max_abs > 0
    assert within(expected, expected, bounds)
    assert within(found, found, bounds)


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6), st.integers(0, 2**62 - 1)
)
def test_the_distance_of_integers_is_theirs(values, further):
    """It wraps nowhere, and is 0 for the same ones alone."""
    b = np.array(values, np.int64)
    a = np.array([each - further if each > 0 else each + further for each in values], np.int64)

    error = distance("ids", a, b, USUAL)

    assert (float(further), further == 0) == (error.max_abs, error.within)


def test_what_is_allowed_of_integers_is_what_somebody_gave_and_no_more():
    """A given atol brings no rtol of the precision with it, nor the other way."""
    ids, near, far = np.array([32000]), np.array([32002]), np.array([32003])

    for bounds in (limits("bf16", atol=2.0, rtol=None), limits("bf16", atol=None, rtol=2 / 32000)):
        assert within(near, ids, bounds)
        assert not within(far, ids, bounds)


def test_it_is_said_what_integers_were_held_to():
    ids = distance("ids", np.array([1]), np.array([1]), USUAL)
    logits = distance("y", np.array([1.0]), np.array([1.0]), USUAL)

    assert worst([ids], USUAL).endswith(", at most 0, integers equal")
    both = worst([ids, logits], limits("fp32", atol=2, rtol=None))
    assert both.endswith(", atol 2, rtol 0.0001, integers atol 2, rtol 0")


def test_text_times_and_bytes_are_no_numbers():
    numbers = [np.ones(1, kind) for kind in ("?", "u2", "i8", "f2", "c8")]
    others = [np.zeros(1, kind) for kind in ("<U3", "S3", "M8[s]", "m8[s]", "V2", "O")]

    assert all(accuracy.is_numeric(each) for each in numbers)
    assert not any(accuracy.is_numeric(each) for each in others)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,), (2, 0, 3)])
def test_an_empty_output_is_near_and_is_a_document(shape):
    """A detector that found nothing: it has no class that could agree, and no number is NaN."""
    bounds = limits("fp32", atol=None, rtol=None)

    error = distance("boxes", np.empty(shape), np.empty(shape), bounds)

    assert (0, 0.0, None, True) == (
        error.items,
        error.max_abs,
        error.argmax_agreement,
        error.within,
    )
    assert error == msgspec.json.decode(schema.encode(error), type=type(error))


def test_the_worst_of_all_outputs_is_told():
    near = distance("a", np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]), Limits(0, 0))
    far = distance("b", np.array([[2.0, 1.0]]), np.array([[1.0, 2.0]]), Limits(0, 0))

    found = worst([near, far], Limits(0.5, 0.25, of_largest=True))

    assert (
        "rmse 1, cosine 0.800000, argmax 0 %, at most 1, atol 0.5 of the largest, rtol 0.25"
        == found
    )
