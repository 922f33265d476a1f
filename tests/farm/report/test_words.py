"""Numbers and causes in words: rounded honestly, and harmless on any terminal."""

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.report import words


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (11.4213, None, "11.42"),
        (0.0514623, None, "0.05146"),
        (1234.56, None, "1235"),
        (123456.0, None, "123456"),
        (0.0, None, "0.000"),
        (11.4213, 0.05, "11.42"),
        (11.4213, 0.004, "11.421"),
        (11.4213, 1e-9, "11.4213"),
        (11.4213, 0.0, "11.42"),
        (268.3, 20.0, "268.3"),
        (None, None, "–"),
        (math.inf, None, "inf"),
        (-math.inf, 0.05, "-inf"),
        (math.nan, None, "nan"),
        (11.4213, math.inf, "11.42"),
    ],
)
def test_a_number_shows_four_digits_or_what_its_uncertainty_needs(value, half, shown):
    """Neither digits that mean nothing nor an interval that rounds to a point."""
    assert shown == words.number(value, half=half)


@pytest.mark.parametrize(
    ("half", "reliable", "shown"),
    [(0.05, True, "11.42 ±0.05"), (None, False, "11.42~"), (0.05, False, "11.42 ±0.05~")],
)
def test_an_unreliable_number_carries_its_mark(half, reliable, shown):
    """`~` goes wherever the number goes."""
    assert shown == words.plus_minus(11.42, half, reliable=reliable)


def test_an_unknown_number_is_a_dash_whatever_else_is_asked():
    """No 0, no empty text, no mark on nothing."""
    assert "–" == words.plus_minus(None, None, reliable=False)
    assert "–" == words.interval(None, 2.0, value=1.0, half=None)
    assert "–" == words.mebibytes(None)
    assert "–" == words.percent(None)


def test_an_interval_has_the_decimals_of_its_value():
    """So that one can be compared with the other by eye."""
    assert "[0.4472, 0.5250]" == words.interval(0.4472, 0.525, value=0.4861, half=0.0389)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.2, "0s"), (59.4, "59s"), (252, "4m12s"), (3600, "1h00m"), (90_000, "1d"), (-1, "0s")],
)
def test_a_span_has_its_two_leading_units(seconds, shown):
    """A person reads no seconds after an hour."""
    assert shown == words.span(seconds)


def test_a_list_is_cut_only_where_that_saves_something():
    """`and 1 more` would take the room of the one."""
    assert "a, b, c" == words.listed(["a", "b", "c"], most=2)
    assert "a, b and 2 more" == words.listed(["a", "b", "c", "d"], most=2)


def test_every_flag_and_every_reason_of_the_schema_has_words():
    """No report shows a bare code for what the method page defines."""
    assert set() == (schema.INVALIDATING | schema.DEGRADING) - words.FLAGS.keys()
    assert set(words.REASONS) <= schema.NULL_CODES


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (17_664, "17,664"),
        (0, "0"),
        (2.0, "2"),
        (1234.25, "1,234.2"),
        (2**60 + 1, "1,152,921,504,606,846,977"),
        (math.inf, "inf"),
        (None, "–"),
    ],
)
def test_a_count_has_commas_and_a_fraction_is_not_hidden(value, shown):
    assert shown == words.whole(value)


def test_short_steps_are_said_to_be_what_was_done_with_them():
    """Only blocks are timed together: calls of a preset that counts them stand alone."""
    unknown = words.flag("timer_limited")

    assert f"{unknown}, and each was timed alone" == words.flag("timer_limited", of_blocks=1)
    assert f"{unknown}, and 50 were timed together" == words.flag("timer_limited", of_blocks=50)
    assert "together" not in unknown
    assert words.flag("paging") == words.flag("paging", of_blocks=1)


def test_what_a_newer_farm_wrote_stays_readable():
    """Open sets grow: an unknown name is shown, not dropped."""
    assert "cosmic rays" == words.flag("cosmic_rays")
    assert "melted" == words.failure("melted")
    assert "too few independent samples for an interval (368)" == words.reason(
        "below_resolution: 368"
    )


@given(st.text())
def test_visible_text_steers_nothing_and_loses_nothing(text):
    """No control, direction or private character survives; ordinary text is untouched."""
    shown = words.visible(text)

    assert all(unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Co") for each in shown)
    assert shown == words.visible(shown)
    if text.isprintable():
        assert text == shown or "\\u" in shown


def test_visible_keeps_lines_only_where_they_are_wanted():
    """A log has lines, a name has none."""
    assert "a\\x0ab" == words.visible("a\nb")
    assert "a\nb\\x1b[31m" == words.visible("a\nb\x1b[31m", lines=True)
    assert "\\u202egnp" == words.visible("\u202egnp")


@given(st.floats(min_value=1e-9, max_value=1e12), st.none() | st.floats(0, 1e9))
def test_a_number_is_off_by_less_than_a_thousandth(value, half):
    """Rounding for the eye changes no conclusion."""
    assert float(words.number(value, half=half)) == pytest.approx(value, rel=1e-3, abs=1e-9)


def test_a_program_that_was_seen_often_is_one_line():
    """The busiest first; what another writer said stays as it is."""
    seen = [
        "python (pid 7), 34 % of a core",
        "chrome (pid 812), 64 % of a core",
        "python (pid 7), 46 % of a core",
        "python (pid 9), 12 % of a core",
        "something else",
    ]

    assert [
        "chrome (pid 812), 64 % of a core",
        "python (2 processes), up to 46 % of a core",
        "something else",
    ] == words.neighbours(seen)
    assert ["python (pid 7), 46 % of a core"] == words.neighbours([seen[0], seen[2]])
    assert [] == words.neighbours([])
    endless = f"python (pid {'9' * 5000}), 12 % of a core"  # another writer's words again
    assert [endless] == words.neighbours([endless])


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (None, "–"),
        (0.0, "0"),
        (1e-9, "0.1"),
        (0.5, "50"),
        (0.997, "99.7"),
        (0.99999, "99.9"),
        (1.0, "100"),
    ],
)
def test_only_all_of_a_whole_is_100_percent_and_only_nothing_is_0(part, shown):
    assert shown == words.share(part)
