"""Where the list of events begins and ends, and the keys on either side of it."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Bad
from farm.trace.reading.framing import Opening, closing, opening
from farm.trace.reading.tally import Tally

BLANKS = st.text(" \n\r\t", max_size=4)
TRICKY = (
    *('"', "\\", "\\\\", '\\"', "traceEvents", '"traceEvents":[', '{"traceEvents": [', "}{][", "é"),
)
VALUES = st.recursive(
    st.sampled_from(TRICKY) | st.integers() | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TRICKY), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.dictionaries(st.sampled_from([*TRICKY, "a"]), VALUES, max_size=4).map(
    lambda found: {key: each for key, each in found.items() if key != "traceEvents"}
)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Yield the data in pieces."""
    return iter([data[at : at + size] for at in range(0, len(data), size)])


def opened(data: bytes, size: int = 1 << 16) -> tuple[Opening, Tally, bytes]:
    """Return how a file opens, what was counted, and all that follows the bracket."""
    tally, left = Tally(), pieces(data, size)
    found = opening(left, tally)
    return found, tally, found.rest + b"".join(left)


def closed(data: bytes, *, is_object: bool, size: int = 7) -> tuple[dict[str, object], Tally]:
    """Return the keys that follow the closing bracket, and what was counted."""
    tally = Tally()
    first = data[:size]
    return closing(first, pieces(data[size:], size), tally, is_object=is_object), tally


@given(KEYS, BLANKS, st.integers(1, 40), st.booleans())
def test_the_list_is_found_behind_any_keys(
    keys: dict[str, object], blank: str, size: int, bom: bool
) -> None:
    before = json.dumps(keys)[:-1] + f"{blank}," * bool(keys)
    text = f'{blank}{before}{blank}"traceEvents"{blank}:{blank}[EVENTS'
    data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()

    found, tally, rest = opened(data, size)

    assert (keys, b"EVENTS", True) == (found.keys, rest, found.is_object)
    assert ({"bom": 1} if bom else {}) == tally.repaired


@given(BLANKS, st.integers(1, 9), st.booleans())
def test_a_list_may_stand_alone(blank: str, size: int, bom: bool) -> None:
    found, tally, rest = opened((b"\xef\xbb\xbf" if bom else b"") + f"{blank}[{{}}]".encode(), size)

    assert ({}, b"{}]", False) == (found.keys, rest, found.is_object)
    assert ({"bom": 1} if bom else {}) == tally.repaired


@given(KEYS, BLANKS, st.integers(1, 40))
def test_the_keys_behind_the_list_are_read(keys: dict[str, object], blank: str, size: int) -> None:
    text = f"{blank}," * bool(keys) + json.dumps(keys)[1:] + blank

    assert (keys, Tally()) == closed(text.encode(), is_object=True, size=size)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "it is empty"),
        (b" \n\t", "it is empty"),
        (b"\xef\xbb\xbf", "it is empty"),
        (b"\xef\xbb\xbf \n", "it is empty"),
        (b"\xef\xbb", "it begins with"),
        (b"<html>", "it begins with '<"),
        (b'"traceEvents"', "it begins with"),
        ('{"traceEvents":[]}'.encode("utf-16"), "it begins with"),
        (b'{"a": 1}', "it holds no traceEvents"),
        (b'{"a": {"traceEvents": 1}}', "it holds no traceEvents"),
        (b'{"a": "traceEvents"', "it holds no traceEvents"),
        (b'{"traceEvents"', "it holds no traceEvents"),
        (b'{"traceEvents" :', "it holds no traceEvents"),
        (b'{"traceEvents": null}', "traceEvents is no list"),
        (b'{"traceEvents": {"a": []}}', "traceEvents is no list"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 1000])
def test_a_file_without_a_list_of_events_is_bad(text: bytes, said: str, size: int) -> None:
    with pytest.raises(Bad) as caught:
        opened(text, size)

    assert said in f"{caught.value}; {caught.value.why}"


def test_a_quote_too_many_before_the_list_costs_the_keys_alone() -> None:
    found, tally, rest = opened(b'{"name":"a"b","traceEvents": [EVENTS')

    assert ({}, b"EVENTS") == (found.keys, rest)
    assert {"structure": 1} == tally.repaired


def test_keys_that_cannot_be_decoded_are_lost_alone() -> None:
    found, tally, rest = opened(b'{"name": nan,"traceEvents": [EVENTS')

    assert ({}, b"EVENTS") == (found.keys, rest)
    assert {"structure": 1} == tally.repaired


@pytest.mark.parametrize(
    ("text", "is_object", "keys", "repaired"),
    [
        (b"", False, {}, {}),
        (b" \n", False, {}, {}),
        (b"x", False, {}, {"trailing_data": 1}),
        (b"}", True, {}, {}),
        (b"", True, {}, {"structure": 1}),
        (b',"a":1', True, {}, {"structure": 1}),
        (b',"a":nan}', True, {}, {"structure": 1}),
        (b',"a":1}x', True, {"a": 1}, {"trailing_data": 1}),
        (b',"a":1}{"traceEvents":[]}', True, {"a": 1}, {"trailing_data": 1}),
        (b',"a":"\xff"}', True, {}, {"structure": 1}),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_what_is_wrong_behind_the_list_is_told(
    text: bytes, is_object: bool, keys: dict[str, object], repaired: dict[str, int], size: int
) -> None:
    found, tally = closed(text, is_object=is_object, size=size)

    assert keys == found
    assert repaired == tally.repaired
