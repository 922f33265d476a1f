"""Differences of pairs, and the exact p of their signs."""

import itertools
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.stats.pairs import differences, sign_flip_p

shifts = st.floats(-0.2, 0.2).map(lambda x: round(x, 6))


def test_differences_are_positive_where_b_is_worse() -> None:
    """Longer is worse of a latency, and better of a throughput."""
    a, b = [10.0, 20.0], [11.0, 19.0]

    assert [log(1.1), log(0.95)] == pytest.approx(list(differences(a, b)))
    assert [-log(1.1), -log(0.95)] == pytest.approx(list(differences(a, b, larger_is="better")))


@given(
    st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0.1, 1e6)), min_size=1, max_size=30),
    st.floats(1e-3, 1e3),
)
def test_differences_have_no_unit_and_turn_with_the_sides(
    values: list[tuple[float, float]], unit: float
) -> None:
    """A change of unit changes nothing; a swap of the sides changes the sign."""
    a, b = np.array(values).T

    assert differences(a, b) == pytest.approx(differences(unit * a, unit * b), abs=1e-9)
    assert differences(a, b) == pytest.approx(-differences(b, a), abs=1e-12)


def test_differences_need_pairs_of_positive_values() -> None:
    """A process without partner, and a value without logarithm, are refused."""
    with pytest.raises(Refused, match="2 and 1 processes"):
        differences([1.0, 2.0], [1.0])
    for pair in (([0.0], [1.0]), ([1.0], [0.0]), ([1.0], [-1.0])):
        with pytest.raises(Refused, match="not positive"):
            differences(*pair)


@given(st.lists(shifts, min_size=1, max_size=9))
def test_the_sign_flip_p_is_that_of_all_signs(values: list[float]) -> None:
    """Every way to choose the signs, one by one."""
    observed = abs(sum(values))
    slack = 1e-9 * sum(map(abs, values))
    flips = [
        abs(sum(sign * each for sign, each in zip(signs, values, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]

    assert pytest.approx(np.mean(np.array(flips) >= observed - slack)) == sign_flip_p(values)


@pytest.mark.parametrize("pairs", [1, 2, 6, 7, 15, 30])
def test_the_least_sign_flip_p_is_that_of_equal_signs(pairs: int) -> None:
    """Two of 2^K sums are as far out, so six pairs never reach 1 %."""
    values = 0.01 + 0.001 * np.arange(pairs)

    assert 2.0 / 2.0**pairs == sign_flip_p(values)
    assert 2.0 / 2.0**pairs == sign_flip_p(-values)


def test_no_difference_has_a_sign_flip_p_of_one() -> None:
    """Sums of nothing are all as far out."""
    assert 1.0 == sign_flip_p([0.0] * 6)
    assert 1.0 == sign_flip_p([0.25, -0.25])


def test_no_more_than_thirty_pairs_are_flipped() -> None:
    """2^31 sums are not needed, since nobody compares so many pairs."""
    with pytest.raises(Refused, match="31 differences"):
        sign_flip_p([0.01] * 31)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_difference_that_is_no_number_has_no_p(odd: float) -> None:
    """An infinite ratio is no measurement."""
    with pytest.raises(Refused, match="not finite"):
        sign_flip_p([0.01, odd])
