"""Levels of effort are those of the decisions, and durations read as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.effort import DAY_S, EFFORTS, LEVELS, duration_s, repeat_words


def test_the_levels_are_those_of_the_decisions() -> None:
    """Rule 7: quick 2 repeats, 2 % or 2 s; standard 3, 0.5 % or 10 s; thorough 5, with tails."""
    told = {
        level: (each.level, each.repeats, each.half_width_ppm, each.budget_ms, each.tails)
        for level, each in EFFORTS.items()
    }

    assert {
        "quick": ("quick", 2, 20_000, 2_000, False),
        "standard": ("standard", 3, 5_000, 10_000, False),
        "thorough": ("thorough", 5, 5_000, 10_000, True),
    } == told
    assert tuple(told) == LEVELS


@pytest.mark.parametrize(
    ("word", "seconds"),
    [
        ("1s", 1),
        ("90s", 90),
        ("10m", 600),
        ("6h", 21_600),
        ("7d", 7 * DAY_S),
        ("999999999s", 10**9 - 1),
    ],
)
def test_a_duration_is_a_whole_number_and_one_unit(word: str, seconds: int) -> None:
    assert seconds == duration_s(word)


@pytest.mark.parametrize(
    "word",
    [
        *("", "10", "m", "0s", "010s", "-1s", "+1s", "1.5h", "1 s", "1s ", " 1s", "1S", "1w"),
        *("1s\n", "1h30m", "9999999999s", "٣s", "¹s", "1e3s", "∞s", "1\u200bs"),
    ],
)
def test_anything_else_is_no_duration(word: str) -> None:
    """None, so that the caller can name the flag."""
    assert duration_s(word) is None


@given(st.text(max_size=12))
def test_no_text_makes_it_raise(word: str) -> None:
    """A duration is a positive number of seconds or nothing."""
    found = duration_s(word)

    assert found is None or found > 0


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "repeat 1 of 3"), (3, "repeat 3 of 3"), (4, "repeat 4, in place of a disturbed one")],
)
def test_a_repeat_beyond_those_asked_says_what_it_is_for(number: int, words: str) -> None:
    """`repeat 4 of 3` would be a riddle."""
    assert words == repeat_words(number, 3)
