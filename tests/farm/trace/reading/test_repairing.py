"""A text that is no JSON, and the event that it still means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.reading.repairing import mended
from farm.trace.reading.tally import Tally

START = b'{"ph":"X","cat":"kernel","ts":1.5,"name":'


def mend(text: bytes) -> tuple[str | None, dict[str, int]]:
    """Return the name of the event that a text means, and what was mended."""
    tally = Tally()
    event = mended(text, tally)
    assert {} == tally.dropped
    return None if event is None else event.name, dict(tally.repaired)


@pytest.mark.parametrize(
    ("rest", "name", "repaired"),
    [
        (rb'"C:\Users\me"}', r"C:\Users\me", {"escape": 1}),
        (rb'"\x","a":"\u12"}', r"\x", {"escape": 1}),
        (b'"a\0b\x1f"}', "ab", {"control": 1}),
        (b'"two\r\nlines"}', "two lines", {"control": 1}),
        (b'"a"\0\0,"dur":1}', "a", {"control": 1}),
        (b'"\xff\xfe"}', "\ufffd\ufffd", {"utf8": 1}),
        (b'"a","dur":nan}', "a", {"non_finite": 1}),
        (b'"a","dur":-Infinity}', "a", {"non_finite": 1}),
        (b'"a","args":{"x":[inf,-inf,+inf,N/A,na,NaN]}}', "a", {"non_finite": 1}),
        (b'"a",}', "a", {"structure": 1}),
        (b'"a",,"args":{"x":[1,2,],},}', "a", {"structure": 1}),
        (b'null,"dur":nan}', "unknown", {"non_finite": 1, "null_name": 1}),
        (b'"a","dur":"2.5",}', "a", {"structure": 1, "number_text": 1}),
        (rb'"nan, inf, ],} \d",}', r"nan, inf, ],} \d", {"escape": 1, "structure": 1}),
    ],
)
def test_what_is_known_to_be_wrong_is_mended(
    rest: bytes, name: str, repaired: dict[str, int]
) -> None:
    assert (name, repaired) == mend(START + rest)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"1",
        b"[nan]",
        b'{"ph":',
        START + b'"a"',
        START + b'"a" "b"}',
        START + b'"a"b"}',
        START + b"a}",
        b'{"cat":"kernel","ts":nan}',  # no phase: no event
        b'{"ph":1,"ts":nan}',
        b'{"a":' * 100_000,
    ],
)
def test_what_means_no_event_is_none_and_nothing_is_counted(text: bytes) -> None:
    assert (None, {}) == mend(text)


@given(st.binary(max_size=40))
def test_whatever_stands_in_a_name_nothing_is_raised(inner: bytes) -> None:
    mend(START + b'"' + inner + b'"}')


@given(
    st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs", "Cc"]), max_size=30)
)
def test_what_stands_in_a_string_is_left_alone(inner: str) -> None:
    """The mends of commas and of words know where a string begins and ends."""
    assert (inner, {"structure": 1}) == mend(START + f'"{inner}",}}'.encode())


def test_line_ends_between_words_are_no_fault() -> None:
    assert ("a", {"structure": 1}) == mend(START + b'\r\n\t"a"\n,\n}')
