"""When a latency pass looks at what it has, and when that is enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.stats.stopping import MOST, enough, next_look, out_of_time
from farm.stats.warmup import half_width

MS = 1_000_000
SECOND = 1000 * MS


def test_looks_double_from_32_on() -> None:
    """32·2^k, up to 131,072 and no further."""
    looks = [0]
    while looks[-1] < MOST:
        looks.append(next_look(looks[-1]))

    assert [32 * 2**k for k in range(13)] == looks[1:]
    assert 131_072 == MOST == next_look(MOST)


@given(st.integers(0, MOST - 1))
def test_the_next_look_is_the_first_one_above(n: int) -> None:
    """Whatever number of samples a block ended on."""
    found = next_look(n)

    assert n < found <= max(32, 2 * n)
    assert 0 == found & (found - 1)


def _samples(n: int, spread: float) -> np.ndarray:
    """Evenly spread over ± spread, in an order without correlation."""
    order = np.random.default_rng(7).permutation(n)
    return MS * (1.0 + spread * (2.0 * order / (n - 1) - 1.0))


def test_enough_is_a_narrow_median_and_the_least_time() -> None:
    """Each of both alone is not."""
    samples = _samples(256, 0.02)
    width = half_width(samples)
    assert width is not None

    def ask(goal: int, spent: int) -> bool:
        found = enough(samples, half_width_ppm=goal, spent_ns=spent, min_time_ns=SECOND)
        assert width == found.half_width_ppm
        return found.enough

    assert ask(width, SECOND)
    assert not ask(width - 1, SECOND)
    assert not ask(width, SECOND - 1)


@pytest.mark.parametrize(("tail", "needed"), [(90.0, 36), (99.0, 368)])
def test_a_tail_asks_for_its_own_number(tail: float, needed: int) -> None:
    """The highest percentile asked for must have an interval, effective samples counted."""

    def ask(samples: np.ndarray) -> bool:
        wide = 10_000_000
        return enough(
            samples, half_width_ppm=wide, spent_ns=SECOND, min_time_ns=0, tail=tail
        ).enough

    # alternation is worth all of its samples
    assert ask(np.resize([1.0, 1.1], needed) * MS)
    assert not ask(np.resize([1.0, 1.1], needed - 1) * MS)


def test_five_samples_are_never_enough() -> None:
    """They bound no median, so there is no half-width."""
    found = enough([1.0] * 5, half_width_ppm=10**9, spent_ns=SECOND, min_time_ns=0)

    assert (None, False) == (found.half_width_ppm, found.enough)


@pytest.mark.parametrize(
    ("n", "spent", "expected"),
    [(6, 10, True), (6, 9, False), (5, 10**12, False), (7, 11, True)],
)
def test_time_is_up_from_six_samples_on(n: int, spent: int, expected: bool) -> None:
    """However slow the step, a median gets the six samples that bound it."""
    assert expected == out_of_time(n, spent_ns=spent, budget_ns=10)
