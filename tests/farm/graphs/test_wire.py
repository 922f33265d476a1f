"""The laws of reading protocol buffers: every field in its order, and no byte beyond the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.graphs.wire import Damaged, Wire
from tests.farm.graphs.drawn import field, varint

WHOLE = st.integers(0, (1 << 64) - 1)


@given(st.lists(st.tuples(st.integers(1, 1000), WHOLE | st.binary(max_size=300)), max_size=20))
def test_what_was_written_is_read(fields: list[tuple[int, int | bytes]]) -> None:
    """Numbers, texts and messages come back in order; a whole number is one of 64 bits."""
    wire = Wire(b"".join(field(*each) for each in fields))

    found = list(wire.fields(wire.whole))

    assert [number for number, _ in fields] == [number for number, _ in found]
    for (_, wanted), (_, value) in zip(fields, found, strict=True):
        if isinstance(wanted, bytes):
            assert wanted == wire.bytes(value)
        else:
            assert wanted == value % (1 << 64)


@given(st.lists(WHOLE, max_size=20))
def test_packed_numbers_are_read_as_those_they_are(values: list[int]) -> None:
    wire = Wire(b"".join(varint(each) for each in values))

    assert values == [each % (1 << 64) for each in wire.wholes(wire.whole)]


def test_fields_of_four_and_eight_bytes_are_passed_over() -> None:
    wire = Wire(bytes([1 << 3 | 5]) + b"abcd" + bytes([2 << 3 | 1]) + b"12345678" + field(3, 7))

    assert [(1, (1, 5)), (2, (6, 14)), (3, 7)] == list(wire.fields(wire.whole))


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_damaged(data: bytes) -> None:
    """Nothing else happens, and what is found lies within the bytes."""
    wire = Wire(data)

    try:
        found = list(wire.fields(wire.whole))
    except Damaged:
        return
    assert all(
        0 <= value[0] <= value[1] <= len(data) for _, value in found if isinstance(value, tuple)
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (field(1, b"hello")[:-1], "it is cut off"),
        (bytes([1 << 3]), "it is cut off"),
        (bytes([1 << 3 | 3]), "byte 1 is none of its format"),
        (bytes([1 << 3]) + b"\xff" * 11, "byte 11 is none of its format"),
    ],
)
def test_what_is_damaged_says_how(data: bytes, why: str) -> None:
    wire = Wire(data)

    with pytest.raises(Damaged, match=why):
        list(wire.fields(wire.whole))


def test_a_number_is_no_message() -> None:
    """Where the format has a message and the file a number, there is nothing in it."""
    wire = Wire(b"")

    assert [] == list(wire.fields(5))
    assert ("", b"") == (wire.text(5), wire.bytes(None))
