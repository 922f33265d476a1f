import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.captures import netpbm
from farm.errors import Refused


@pytest.fixture
def read(tmp_path):
    """Read these bytes as a file."""

    def reading(data: bytes):
        path = tmp_path / "a.ppm"
        path.write_bytes(data)
        return netpbm.read(path)

    return reading


RED_GREEN = [[[255, 0, 0], [0, 255, 0]]]


@pytest.mark.parametrize(
    "data",
    [
        b"P6 2 1 255\n" + bytes([255, 0, 0, 0, 255, 0]),
        b"P6\n# drawn by hand\n2 # wide\n1\n255\n" + bytes([255, 0, 0, 0, 255, 0]) + b"more",
        b"P6 2 1 15 " + bytes([15, 0, 0, 0, 15, 0]),
        b"P6 2 1 65535 " + bytes([255, 255, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0]),
        b"P3 2 1 255\n255 0 0\n# the second\n0 255 0\n",
    ],
    ids=["plain", "comments", "white is 15", "two bytes", "digits"],
)
def test_every_way_to_write_an_image_is_read(read, data):
    """White is 255 whatever the file calls it."""
    pixels = read(data)

    assert RED_GREEN == pixels.tolist()
    assert "uint8" == pixels.dtype.name
    assert pixels.flags.writeable


def test_grey_has_three_equal_colours(read):
    for data in (b"P5 2 1 255\n\x00\x80", b"P2 2 1 255\n0 128"):
        assert [[[0, 0, 0], [128, 128, 128]]] == read(data).tolist()


@pytest.mark.parametrize(
    ("data", "what", "why"),
    [
        (b"", "is no PPM or PGM", "does not begin with"),
        (b"P4 8 1\n\xff", "is no PPM or PGM", "does not begin with"),
        (b"P6 2", "is no PPM or PGM", "does not begin with"),
        (b"P6 -2 1 255\n", "is no PPM or PGM", "does not begin with"),
        (b"P6 2 1 255\n\x00\x00", "is cut off", "2 of 6 values"),
        (b"P6 2 1 255\n", "is cut off", "0 of 6 values"),
        (b"P6 2 1 65535\n\x00\x00\x00", "is cut off", "1 of 6 values"),
        (b"P6 0 1 255\n", "holds no pixel", "1x0"),
        (b"P6 99999 99999 255\n", "is too large", "99999x99999; at most 200 million"),
        (b"P6 2 1 0\n", "is damaged", "its white is 0"),
        (b"P6 2 1 65536\n", "is damaged", "its white is 65536"),
        (b"P5 1 1 15\n\x10", "is damaged", "not from 0 to 15"),
        (b"P2 1 1 255\n-1", "is damaged", "not from 0 to 255"),
        (b"P2 2 1 255\n1 x", "is damaged", "not all numbers"),
        (b"P2 2 1 255\n1 \xff", "is damaged", "not all numbers"),
        (b"P2 2 1 255\n1", "is cut off", "1 of 2 values"),
    ],
)
def test_damage_is_refused(read, data, what, why):
    """With what is wrong, and before any memory is taken for it."""
    with pytest.raises(Refused) as caught:
        read(data)

    assert caught.value.what.endswith(what)
    assert why in caught.value.why


@given(st.binary(max_size=60), st.sampled_from([b"P6 2 2 255 ", b"P3 2 2 9 ", b"P5", b"P2 1 1 1 "]))
def test_any_bytes_are_an_image_or_refused(tmp_path_factory, tail, head):
    path = tmp_path_factory.getbasetemp() / "any.ppm"
    path.write_bytes(head + tail)

    with contextlib.suppress(Refused):
        assert np.uint8 == netpbm.read(path).dtype
