"""The laws of looking at numbers: by their bits, all of them, in any shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.backends import numbers


@pytest.mark.parametrize(
    ("array", "finite"),
    [
        (np.ones((2, 3)), True),
        (np.array([1.0, np.inf]), False),
        (np.array(np.nan, np.float16), False),
        (np.array([1 << 60]), True),
        (np.zeros((0, 4), np.float32), True),
        (np.array([1j, complex(0, np.inf)]), False),
    ],
)
def test_what_is_no_number_is_noticed(array, finite):
    assert finite == numbers.is_finite(array)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@given(count=st.integers(0, 8))
def test_subnormal_numbers_are_counted(dtype, count):
    """Smaller than the smallest normal number, and not zero, of either sign."""
    values = np.full(8, np.finfo(dtype).smallest_normal)
    values[:count] /= -2

    assert count / 8 == numbers.subnormal_share([(values.astype(dtype), dtype)])


def test_shares_are_of_all_elements_together():
    tiny = np.full(2, 1e-40, np.float32)

    assert 0.25 == numbers.subnormal_share([(tiny, "float32"), (np.ones(6), "float64")])


def test_a_type_that_numpy_has_not_is_told_by_name():
    """The bits of a bfloat16, as 16-bit integers: a subnormal one, a normal one."""
    assert 0.5 == numbers.subnormal_share([(np.array([1, 0x3F80], np.int16), "bfloat16")])


def test_without_floats_there_is_no_share():
    assert numbers.subnormal_share([(np.arange(3), "int64")]) is None
    assert numbers.subnormal_share([]) is None


@given(st.lists(st.integers(-9, 9), min_size=1), st.integers(0, 100), st.integers(1, 5))
def test_a_digest_differs_where_an_element_does(values, at, by):
    array = np.array(values)
    other = array.copy()
    other[at % len(values)] += by

    assert numbers.digest([array]) == numbers.digest([array.copy()])
    assert numbers.digest([array]) != numbers.digest([other])


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (3, 0, 2), (2, 2)])
def test_any_shape_has_a_digest(shape):
    """Also one without elements, as where a detector finds nothing."""
    assert 32 == len(numbers.digest([np.zeros(shape), np.zeros(shape, bool)]))


def test_a_view_is_digested_as_its_elements():
    array = np.arange(12).reshape(3, 4)

    assert numbers.digest([array.T.copy()]) == numbers.digest([array.T])
