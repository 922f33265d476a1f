import contextlib
import pickle
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.captures import formats, sizes
from farm.errors import Refused


def never(path):
    """What no array needs."""
    raise AssertionError(path)


def read(path):
    return formats.read(path, decode=never)


def refused(path):
    with pytest.raises(Refused) as caught:
        read(path)
    return caught.value


RGB = np.array([[[255, 0, 0], [0, 128, 255]]], dtype=np.uint8)


@pytest.mark.parametrize(
    "array",
    [
        RGB,
        np.moveaxis(RGB, 2, 0),
        RGB.astype(np.int64),
        RGB / 255,
        (RGB / 255).astype(np.float16),
        RGB.astype(">u2"),
        np.asfortranarray(RGB),
    ],
    ids=["bytes", "colours first", "integers", "floats", "halves", "other order", "by columns"],
)
def test_an_array_is_an_image_in_every_way_to_hold_it(tmp_path, array):
    """Colours last or first; bytes, whole numbers to 255, or floats to 1."""
    np.save(tmp_path / "a.npy", array)

    (pixels,) = read(tmp_path / "a.npy")

    assert RGB.tolist() == pixels.tolist()
    assert (np.uint8, True) == (pixels.dtype, pixels.flags.c_contiguous)
    assert pixels.flags.writeable


def test_an_image_without_colours_is_grey(tmp_path):
    for array in (RGB[..., 0], RGB[..., :1], np.moveaxis(RGB[..., :1], 2, 0)):
        np.save(tmp_path / "a.npy", array)

        assert [[[255] * 3, [0] * 3]] == read(tmp_path / "a.npy")[0].tolist()


def test_a_leading_axis_holds_several(tmp_path):
    """In a NPY, and in each array of a NPZ."""
    np.save(tmp_path / "a.npy", np.stack([RGB, RGB + 1]))
    np.savez(tmp_path / "b.npz", one=RGB, two=np.stack([RGB, RGB]))

    assert [RGB.tolist(), (RGB + 1).tolist()] == [
        each.tolist() for each in read(tmp_path / "a.npy")
    ]
    assert [RGB.tolist()] * 3 == [each.tolist() for each in read(tmp_path / "b.npz")]


@pytest.mark.parametrize(
    ("array", "what", "why"),
    [
        (np.zeros(5), "is no image", "its shape is (5,)"),
        (np.zeros((2, 4, 5, 3, 3)), "is no image", "its shape is (2, 4, 5, 3, 3)"),
        (np.zeros((4, 5, 7)), "is no image", "its shape is (4, 5, 7)"),
        (np.zeros((0, 5, 3)), "holds no pixel", "0x5"),
        (np.zeros((0, 4, 4, 3)), "holds no image", "leading axis is 0"),
        (np.full((2, 2, 3), 1.5), "is no image", "1.5 to 1.5; expected 0 to 1"),
        (np.full((2, 2, 3), np.nan), "is no image", "nan to nan"),
        (np.full((2, 2, 3), 300), "is no image", "300 to 300; expected 0 to 255"),
        (np.full((2, 2, 3), -1), "is no image", "-1 to -1"),
        (np.zeros((2, 2, 3), dtype="U3"), "is no image", "<U3"),
        (np.zeros((2, 2, 3), dtype="c8"), "is no image", "complex64"),
        (np.zeros((2, 2, 3), dtype="M8[s]"), "is no image", "datetime64"),
        (np.zeros((2, 2, 3), dtype="u1,u1"), "is no image", "u1"),
    ],
)
def test_an_array_that_is_no_image_is_refused(tmp_path, array, what, why):
    """With what it is instead."""
    np.save(tmp_path / "a.npy", array)

    error = refused(tmp_path / "a.npy")

    assert error.what.endswith(what)
    assert why in error.why


def test_a_pickle_is_never_opened(tmp_path):
    """Not in an array of objects, and not as a file that is called like an array."""
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "b.npy").write_bytes(pickle.dumps(RGB))
    np.savez(tmp_path / "c.npz", a=np.array([{}], dtype=object))

    assert "it holds objects" == refused(tmp_path / "a.npy").why
    assert "damaged, or no array" == refused(tmp_path / "b.npy").why
    assert "holds objects" in refused(tmp_path / "c.npz").what


def test_a_head_that_claims_more_than_is_there_takes_no_memory(tmp_path):
    """A terabyte in a file of a hundred bytes."""
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (10**6, 10**6, 3)}
        )

    assert "damaged, or no array" == refused(tmp_path / "a.npy").why


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path):
    """By what it says of itself, before it is unpacked."""
    path = tmp_path / "a.npz"
    np.savez(path, x=RGB)
    data = bytearray(path.read_bytes())
    size_at = data.index(b"PK\x01\x02") + 24
    data[size_at : size_at + 4] = (sizes.LIMIT_BYTES + 1).to_bytes(4, "little")
    path.write_bytes(data)

    error = refused(path)

    assert error.what.endswith("is too large")
    assert "600,000,001 bytes unpacked" in error.why


def test_more_than_200_million_pixels_are_refused(tmp_path):
    """A sparse file: nothing of it is read."""
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (20_000, 20_000)}
        )
        file.truncate(file.tell() + 400_000_000)

    error = refused(path)

    assert error.what.endswith("is too large")
    assert "20000x20000; at most 200 million" in error.why


@given(st.binary(max_size=80), st.sampled_from([".npy", ".npz", ".ppm"]), st.booleans())
def test_any_bytes_are_images_or_refused(tmp_path_factory, data, ending, begun):
    path = tmp_path_factory.getbasetemp() / f"any{ending}"
    heads = {".npy": b"\x93NUMPY\x01\x00", ".npz": b"PK\x03\x04", ".ppm": b"P6 "}
    path.write_bytes((heads[ending] if begun else b"") + data)

    with contextlib.suppress(Refused):
        assert read(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    """It was there a moment ago."""
    for ending in (".npy", ".npz", ".ppm"):
        assert "cannot read" in refused(tmp_path / f"gone{ending}").what


# ── Pillow ───────────────────────────────────────────────────────────────────────────────────────


def test_pillow_decodes_jpeg_and_png(tmp_path):
    """Whatever their name is written in."""
    for name in ("a.jpg", "a.JPEG", "a.png"):
        asked = []

        def decode(path, asked=asked):
            asked.append(path)
            return RGB

        assert [RGB.tolist()] == [
            each.tolist() for each in formats.read(tmp_path / name, decode=decode)
        ]
        assert [tmp_path / name] == asked


class Opened(contextlib.nullcontext):
    """An image as Pillow opens it: its size is known, its pixels are read later."""

    def __init__(self, size=(2, 1), pixels=RGB):
        super().__init__(self)
        self.size, self.pixels = size, pixels

    def convert(self, mode):
        assert mode == "RGB"
        if isinstance(self.pixels, Exception):
            raise self.pixels
        return self.pixels


def pillow(opened):
    """A module that opens any file so."""
    return lambda: types.SimpleNamespace(
        open=lambda path: opened, DecompressionBombError=ZeroDivisionError
    )


def test_pillow_is_asked_for_colours(tmp_path):
    assert RGB.tolist() == formats.by_pillow(tmp_path / "a.png", load=pillow(Opened())).tolist()


@pytest.mark.parametrize(
    ("opened", "what", "why"),
    [
        (Opened((20_000, 20_000)), "is too large", "20000x20000"),
        (Opened(pixels=OSError("image file is truncated")), "Pillow reads", "is truncated"),
        (Opened(pixels=ZeroDivisionError("a bomb")), "Pillow reads", "a bomb"),
    ],
)
def test_what_pillow_cannot_read_is_refused(tmp_path, opened, what, why):
    """Its own words say why; a size is looked at before a pixel is."""
    with pytest.raises(Refused) as caught:
        formats.by_pillow(tmp_path / "a.png", load=pillow(opened))

    assert caught.value.what.endswith(what)
    assert why in caught.value.why


def test_without_pillow_it_is_named(tmp_path):
    """With what is read without it, and how to get it."""
    with pytest.raises(Refused) as caught:
        formats.by_pillow(tmp_path / "a.png", load=lambda: None)

    assert caught.value.what.endswith("needs Pillow, which is not installed")
    assert ".npy" in caught.value.why
    assert "pip install pillow" == caught.value.hint
