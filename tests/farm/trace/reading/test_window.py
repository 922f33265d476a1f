"""Where the text of a list may be cut between two events, and a buffer that is used again."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.reading.window import Cut, Window


def window(text: bytes, *, size: int = 5) -> Window:
    """Return one that holds the text, which came in pieces."""
    made = Window(text[:size], iter([text[at : at + size] for at in range(size, len(text), size)]))
    made.fill(len(text) + 1)
    return made


def taken(made: Window, cut: Cut) -> list[object] | None:
    """Return what comes before a cut, decoded; None if it is no list."""
    found: list[object] = []

    def take(text: memoryview) -> bool:
        try:
            found.extend(msgspec.json.decode(text))
        except msgspec.DecodeError:
            return False
        return True

    return found if made.try_list(cut, take) else None


@given(st.binary(max_size=60), st.integers(1, 9), st.integers(0, 70))
def test_it_holds_what_was_wanted_or_all_there_is(data: bytes, size: int, wanted: int) -> None:
    left = iter([data[at : at + size] for at in range(0, len(data), size)])
    made = Window(b"rest", left)

    made.fill(wanted)

    whole, held = b"rest" + data, made.text()
    assert whole.startswith(held)
    assert len(held) >= wanted or (made.is_last and held == whole)
    assert len(held) < max(wanted, 5) + size
    assert whole == held + b"".join(left)


def test_it_asks_no_more_once_there_is_nothing() -> None:
    asked = []

    def pieces() -> Iterator[bytes]:
        asked.append(1)
        yield b"a"

    made = Window(b"", pieces())
    made.fill(9)
    made.fill(99)

    assert (b"a", True, [1]) == (made.text(), made.is_last, asked)


@given(st.binary(max_size=40), st.binary(max_size=40), st.data())
def test_what_is_dropped_is_gone_and_the_rest_stays(
    data: bytes, more: bytes, draw: st.DataObject
) -> None:
    made, until = Window(data, iter([more])), draw.draw(st.integers(0, len(data)))

    made.drop(until)
    assert data[until:] == made.text()

    made.fill(len(data) + 1)
    assert (data[until:] + more).startswith(made.text())


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=5), st.text(" \n\t\r", max_size=20), st.data()
)
def test_it_is_cut_before_the_last_event_that_begins(
    numbers: list[int], gap: str, draw: st.DataObject
) -> None:
    begins, text = [], ""
    for number in numbers:
        begins.append(len(text))
        text += f'{{"a":{number}}}{gap},{gap}'
    until = draw.draw(st.integers(1, len(text)))
    begun = [each for each in begins if each < until]

    made = window(text[:until].encode())
    cut = made.cut()

    if len(begun) == 1:
        assert cut is None
    else:
        assert cut is not None
        assert begun[-1] == cut.begin
        assert f"{gap},{gap}" == text[cut.end : cut.begin]
        assert [{"a": each} for each in numbers[: len(begun) - 1]] == taken(made, cut)


@pytest.mark.parametrize("text", [b"", b'{"a":1}', b'{"a":1} {"b":2}', b'{"a":1},,{"b":2}', b"1,{"])
def test_it_is_not_cut_where_no_event_follows_another(text: bytes) -> None:
    assert window(text).cut() is None


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1},{"b":"},{"}',  # in a string
        b'{"a":1},{"b":[{"c":1},{"d":2}]}',  # within an event
        b'{"a":1}],"keys":[{"c":1},{"d":2}]}',  # behind the list
    ],
)
def test_what_only_looks_like_a_cut_makes_no_list(text: bytes) -> None:
    made = window(text)
    cut = made.cut()

    assert cut is not None
    assert taken(made, cut) is None


def test_an_offer_leaves_the_text_as_it_was() -> None:
    text = b'{"a":1},{"b":2},{"c":3'
    made = window(text)
    cut = made.cut()

    assert cut is not None
    assert [{"a": 1}, {"b": 2}] == taken(made, cut)
    assert text == made.text()
    assert (b'{"a":1},{"b":2}', b'{"c":3') == (text[: cut.end], text[cut.begin :])


def test_a_gap_that_is_too_wide_is_no_cut() -> None:
    """It costs the walk from event to event, and nothing else."""
    assert window(b'{"a":1},' + b" " * 64 + b'{"b":2}').cut() is None
