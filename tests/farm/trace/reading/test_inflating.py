"""The bytes of a file, plain or gzip, and as much of damaged gzip as there is."""

import gzip
import io
import zlib
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.reading.inflating import chunks
from farm.trace.reading.tally import Tally
from tests.farm.trace.writing import packed

SIZES = st.integers(1, 400) | st.just(64 << 10)
TEXT = b'{"ph":"X","ts":12.5,"name":"volta_sgemm"},' * 40


def unpacked(data: bytes, size: int = 64 << 10) -> tuple[bytes, Tally]:
    """Return what comes out, and what was counted."""
    tally = Tally()
    return b"".join(chunks(io.BytesIO(data), tally, size=size)), tally


def whole(data: bytes) -> bytes:
    """Return all that zlib makes of the beginning of one member."""
    return zlib.decompressobj(31).decompress(data)


@given(st.binary(max_size=600).filter(lambda data: data[:2] != b"\x1f\x8b"), SIZES)
def test_a_plain_file_comes_as_it_is(data: bytes, size: int) -> None:
    assert (data, Tally()) == unpacked(data, size)


@given(st.binary(max_size=600), st.integers(1, 5), SIZES)
def test_gzip_comes_unpacked_all_its_members(data: bytes, members: int, size: int) -> None:
    assert (data, Tally()) == unpacked(packed(data, members=members), size)


@pytest.mark.parametrize("data", [TEXT, packed(TEXT), packed(bytes(10**6))])
@pytest.mark.parametrize("size", [2, 7, 4096])
def test_no_piece_is_longer_than_was_asked(data: bytes, size: int) -> None:
    """A million zeros are a thousand bytes of gzip: they must not come at once."""
    found = [len(each) for each in islice(chunks(io.BytesIO(data), Tally(), size=size), 9)]

    assert size >= max(found)
    assert 0 < min(found)


def test_a_cut_member_gives_all_that_there_is_of_it() -> None:
    data = packed(TEXT)

    for end in range(2, len(data)):
        assert (whole(data[:end]), {"gzip": 1}) == (
            unpacked(data[:end], 64)[0],
            unpacked(data[:end], 64)[1].repaired,
        )


def test_members_before_a_cut_one_are_whole() -> None:
    first, second = gzip.compress(b"first"), gzip.compress(b"second")

    assert (b"first", Tally()) == unpacked(first)
    for end in range(2, len(second)):
        found, tally = unpacked(first + second[:end], 3)
        assert b"first" + whole(second[:end]) == found
        assert {"gzip": 1} == tally.repaired


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("at", [-1, -8])
def test_a_wrong_checksum_or_length_costs_no_byte(at: int, size: int) -> None:
    data = bytearray(packed(TEXT))
    data[at] ^= 1

    found, tally = unpacked(bytes(data), size)

    assert TEXT == found
    assert {"gzip": 1} == tally.repaired


@given(st.data())
def test_damaged_gzip_gives_what_was_packed_before_the_damage(data: st.DataObject) -> None:
    """Whatever comes of the rest, it raises nothing, and it is counted unless it does no harm."""
    text = bytes(Random(7).choices(b"abcdefgh", k=300))
    kept = bytearray(packed(text))
    at = data.draw(st.integers(2, len(kept) - 1))
    kept[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != kept[at]))

    found, tally = unpacked(bytes(kept), data.draw(SIZES))

    before = whole(packed(text)[: at - 1])
    assert found.startswith(before)
    assert found == text or {"gzip"} == set(tally.repaired)


@pytest.mark.parametrize("garbage", [b"\0", bytes(512), b"more", b"\x1f"])
@pytest.mark.parametrize("size", [1, 64 << 10])
def test_what_follows_the_last_member_is_told(garbage: bytes, size: int) -> None:
    found, tally = unpacked(packed(TEXT) + garbage, size)

    assert TEXT == found
    assert {"trailing_data": 1} == tally.repaired


def test_what_is_packed_is_read_a_little_at_a_time() -> None:
    """However large the file: its first piece costs no more than one block of it."""
    text = Random(7).randbytes(1 << 20)
    file = io.BytesIO(packed(text))

    first = next(chunks(file, Tally(), size=1000))

    assert text[:1000] == first
    assert (64 << 10) + 2 >= file.tell()
