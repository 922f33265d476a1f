"""Times in µs as whole nanoseconds, the same from a float and from a decimal."""

from decimal import ROUND_FLOOR, Decimal
from math import nan
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.reading.collecting import NO_TIME, TooFar, nanoseconds

FAR: Final = 2**43  # µs


@given(st.integers(-(2**53) + 1, 2**53 - 1))
def test_a_time_with_three_digits_is_exact_as_a_float(number: int) -> None:
    """104 days in ns: a half that is added before rounding goes wrong from 52 days on."""
    told = float(Decimal(number) / 1000)
    if abs(told) < FAR:
        assert [number] == nanoseconds([told]).tolist()


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (0.0005, 1),
        (-0.0005, 0),
        (0.0015, 2),
        (-0.0015, -1),
        (0.0004, 0),
        (12.25, 12250),
        (0.00049999999999999994, 0),
        (-1.0, -1000),
        (4503599627370.497, 4503599627370497),
    ],
)
def test_halves_are_rounded_up(time: float, expected: int) -> None:
    assert [expected] == nanoseconds([time]).tolist()
    assert [expected] == nanoseconds([Decimal(repr(time))]).tolist()


@given(st.floats(-FAR, FAR, exclude_min=True, exclude_max=True))
def test_a_time_is_the_same_from_either_decoder(time: float) -> None:
    assert nanoseconds([time]).tolist() == nanoseconds([Decimal(repr(time))]).tolist()


@given(st.decimals(FAR, 2**52 - 1, places=5), st.sampled_from([1, -1]))
def test_far_times_are_rounded_as_they_are_written(told: Decimal, sign: int) -> None:
    time = told * sign
    exact = (time * 1000 + Decimal("0.5")).to_integral_value(ROUND_FLOOR)

    assert [int(exact)] == nanoseconds([time]).tolist()


@pytest.mark.parametrize("time", [float(FAR), -float(FAR), 1.7e15, 1e300, float("inf")])
def test_a_float_that_is_too_far_is_decoded_again(time: float) -> None:
    with pytest.raises(TooFar):
        nanoseconds([0.0, time])
    if abs(time) < 2**52:
        with pytest.raises(TooFar):
            nanoseconds([Decimal(0), time])


@pytest.mark.parametrize("time", [Decimal("NaN"), Decimal(2**52), Decimal("-1e400"), nan])
def test_no_time_is_told_by_a_number_of_its_own(time: float | Decimal) -> None:
    assert [NO_TIME, 0] == nanoseconds([time, Decimal(0)]).tolist()
    assert [NO_TIME, 0] == nanoseconds([nan, 0.0]).tolist()
