"""The laws of an NPZ: whole, without pickle, and not empty."""

import hashlib
import pickle
import zipfile

import numpy as np
import pytest

from farm.errors import Refused
from farm.sweep import arrays


def test_arrays_come_by_name_in_their_order(tmp_path):
    np.savez(tmp_path / "a.npz", b=np.arange(3), a=np.array("text"), c=np.float32(1.5))

    found = arrays.load(tmp_path / "a.npz")

    assert ["b", "a", "c"] == list(found)
    assert [0, 1, 2] == found["b"].tolist()
    assert ("text", ()) == (found["a"].item(), found["c"].shape)


def test_the_digest_is_that_of_the_bytes(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"bytes")

    assert hashlib.sha256(b"bytes").hexdigest() == arrays.digest(tmp_path / "a.npz")


@pytest.fixture
def files(tmp_path):
    np.savez(tmp_path / "whole.npz", x=np.ones((2, 3), "float32"))
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "torn.npz").write_bytes(whole.replace(b"\x80?\x00", b"\x81?\x00"))
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_text("words")
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps({"x": 1}))
    np.save(tmp_path / "one.npy", np.ones(3))
    np.savez(tmp_path / "object.npz", x=np.array([{}], dtype=object))
    np.savez(tmp_path / "record.npz", x=np.zeros(1, dtype=[("a", object)]))
    np.savez(tmp_path / "void.npz", x=np.zeros((0, 3)))
    np.savez(tmp_path / "none.npz")
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as file:
        file.writestr("readme.txt", "hello")
    return tmp_path


@pytest.mark.seed("S1.15", "S1.44")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gone.npz", "no file 'gone.npz'"),
        ("", "an NPZ without a name"),
        (".", "cannot read '.'"),
        ("torn.npz", "'torn.npz' is damaged"),
        ("cut.npz", "'cut.npz' is damaged"),
        ("text.npz", "'text.npz' is not an NPZ"),
        ("pickle.npz", "'pickle.npz' is not an NPZ"),
        ("one.npy", "'one.npy' is not an NPZ"),
        ("object.npz", "array 'x' of 'object.npz' holds objects"),
        ("record.npz", "array 'x' of 'record.npz' holds objects"),
        ("void.npz", "array 'x' of 'void.npz' is empty"),
        ("none.npz", "'none.npz' holds no array"),
        ("zip.npz", "'zip.npz' holds 'readme.txt', which is no array"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_no_pickle_is_opened(files, name, what):
    with pytest.raises(Refused) as caught:
        arrays.load(files / name, name=name)

    assert what == caught.value.what


def test_a_file_that_is_not_there_is_answered_with_the_nearest(files):
    with pytest.raises(Refused) as caught:
        arrays.load(files / "hwole.npz", name="hwole.npz")

    assert "did you mean `whole.npz`?" == caught.value.hint


def test_an_array_without_elements_is_one_where_that_makes_sense(files):
    assert (0, 3) == arrays.load(files / "void.npz", may_be_empty=True)["x"].shape


def test_an_array_that_claims_more_than_there_is_memory_is_refused(tmp_path):
    """Its header alone says so: nothing of it is there."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (500000000000000,), }"
    header += b" " * (118 - len(header)) + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("x.npy", member)

    with pytest.raises(Refused, match=r"array 'x' of 'huge\.npz' does not fit here"):
        arrays.load(tmp_path / "huge.npz", name="huge.npz")


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(Refused, match=r"cannot read 'a\\x00b\.npz'"):
        arrays.load(tmp_path / "a\0b.npz", name="a\0b.npz")


def test_arrays_come_in_the_byte_order_of_this_machine(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3, dtype=">f4"))

    found = arrays.load(tmp_path / "a.npz")["x"]

    assert (np.dtype("float32"), [0.0, 1.0, 2.0]) == (found.dtype, found.tolist())
