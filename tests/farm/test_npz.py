"""Arrays come back from a file under the names they had, or it is said why not."""

import io
import os
import random
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import npz
from farm.errors import Bad, FarmError, Refused


def read(data: bytes) -> dict[str, np.ndarray]:
    """As everybody else reads it, and as the farm does: the same."""
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        usual = {name: found[name] for name in found.files}
    ours = npz.read(io.BytesIO(data), called="'x.npz'")
    assert {name: each.tobytes() for name, each in usual.items()} == {
        name: each.tobytes() for name, each in ours.items()
    }
    return ours


def packed(arrays: dict[str, np.ndarray], *, compressed: bool = False) -> bytes:
    out = io.BytesIO()
    npz.write(out, arrays, compressed=compressed)
    return out.getvalue()


@pytest.mark.parametrize(
    "name", ["file", "allow_pickle", "args", "kwds", "arr_0", "a/b", "", "größe", "x.npy"]
)
@pytest.mark.parametrize("compressed", [False, True])
def test_an_array_may_have_any_name(name: str, compressed: bool) -> None:
    """Also those that are keywords of `numpy.savez`."""
    found = read(packed({name: np.arange(3), "other": np.eye(2)}, compressed=compressed))

    assert [name, "other"] == list(found)
    assert [0, 1, 2] == found[name].tolist()


@given(st.sets(st.text(max_size=8), max_size=4))
def test_what_is_written_comes_back_and_the_rest_is_refused(names: set[str]) -> None:
    arrays = {name: np.full(2, at) for at, name in enumerate(names)}
    try:
        data = packed(arrays)
    except ValueError:
        assert any("\0" in each or f"{each}.npy" in names for each in names)
        return

    assert {name: each.tolist() for name, each in arrays.items()} == {
        name: each.tolist() for name, each in read(data).items()
    }


def test_numbers_keep_their_type_and_shape() -> None:
    """A scalar, an empty array, one in column order, halves and complex numbers."""
    arrays = {
        "scalar": np.float16(0.5),
        "none": np.zeros((0, 3), np.int8),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "complex": np.array([1 + 2j], np.complex64),
    }

    found = read(packed(arrays))  # type: ignore[arg-type]

    assert {name: (each.dtype, each.shape) for name, each in arrays.items()} == {
        name: (each.dtype, each.shape) for name, each in found.items()
    }
    assert arrays["columns"].tolist() == found["columns"].tolist()


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"x": np.array([{}], dtype=object)}, "holds objects"),
        ({"x": np.zeros(1, dtype=[("a", object)])}, "holds objects"),
        ({"a\0b": np.zeros(1)}, "can be called"),
        ({"é" * 40_000: np.zeros(1)}, "can be called"),
        ({"\udcff": np.zeros(1)}, "surrogates not allowed"),
        ({"x": np.zeros(1), "x.npy": np.ones(1)}, "look alike"),
    ],
    ids=["objects", "objects inside", "nul", "long", "half a character", "two alike"],
)
def test_what_cannot_come_back_is_refused_before_the_first_byte(
    arrays: dict[str, np.ndarray], why: str, tmp_path: Path
) -> None:
    out = io.BytesIO()

    with pytest.raises(ValueError, match=why):
        npz.write(out, {"good": np.zeros(1), **arrays})
    with pytest.raises(ValueError, match=why):
        npz.save(tmp_path / "a.npz", arrays)

    assert (b"", []) == (out.getvalue(), os.listdir(tmp_path))


def test_equal_arrays_are_equal_bytes() -> None:
    """The digest of an artefact depends on nothing else, not on the day either."""
    arrays = {"a": np.arange(100), "b": np.ones(3)}

    assert packed(arrays, compressed=True) == packed(arrays, compressed=True)
    assert len(packed(arrays, compressed=True)) < len(packed(arrays))


def test_a_file_that_breaks_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    npz.save(path, {"x": np.zeros(1)})
    before = path.read_bytes()

    with pytest.raises(ValueError, match="holds objects"):
        npz.save(path, {"x": np.array([None])})

    assert (before, ["a.npz"]) == (path.read_bytes(), os.listdir(tmp_path))


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    """The disk says so when it is written to, or when the file is closed."""
    (tmp_path / ".a.npz.tmp").symlink_to("/dev/full")

    with pytest.raises(OSError, match="No space left"):
        npz.save(tmp_path / "a.npz", {"x": np.zeros(1 << 16)})

    assert [] == os.listdir(tmp_path)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def member(
    descr: str = "<f8", shape: str = "(2,)", *, data: bytes = b"", version: int = 1
) -> bytes:
    """An array as a header says it is, whatever follows."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2, "little") + text + data


def archive(members: Mapping[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return out.getvalue()


def twice() -> bytes:
    """Two members of one name: other tools than zipfile write them without a word."""
    return archive({"x.npy": member(data=bytes(16)), "y.npy": member(data=bytes(16))}).replace(
        b"y.npy", b"x.npy"
    )


def encrypted() -> bytes:
    """The flag alone, in both headers of the only member."""
    data = bytearray(archive({"x.npy": member(data=bytes(16))}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def ended() -> bytes:
    """A member that goes on behind the end of the file, as its directory says."""
    data = bytearray(packed({"x": np.arange(9999.0)}, compressed=True))
    at = data.index(b"PK\x01\x02")
    data[at + 20 : at + 24] = (1 << 30).to_bytes(4, "little")
    data[at - 9000 : at] = b""  # of the packed bytes; the directory stands where it says
    start = int.from_bytes(data[-6:-2], "little") - 9000
    data[-6:-2] = start.to_bytes(4, "little")
    return bytes(data)


def torn(data: bytes) -> bytes:
    return data.replace(b"\x80?\x00", b"\x81?\x00")


ONES = packed({"x": np.ones((2, 3), np.float32)})
# What a file may be: said of it, and why.
DAMAGED: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "'x.npz' is not an NPZ", ""),
    "text": (b"words", "'x.npz' is not an NPZ", ""),
    "cut off": (ONES[: len(ONES) // 2], "'x.npz' is damaged", "its end is missing"),
    "torn": (torn(ONES), "'x.npz' is damaged", "Bad CRC-32"),
    "torn where it is packed": (
        (lambda data: data[:65] + b"\xff" * 8 + data[73:])(
            packed({"x": np.ones(99)}, compressed=True)
        ),
        "'x.npz' is damaged",
        "Error -3 while decompressing",
    ),
    "10^12 numbers": (
        archive({"x.npy": member(shape="(1000000000000,)")}),
        "'x.npz'",
        "",
    ),
    "more numbers than there are bytes": (
        archive({"x.npy": member(shape="(99,)", data=bytes(16))}),
        "cannot read 'x.npz'",
        "EOF: reading array data",
    ),
    "a length below 0": (archive({"x.npy": member(shape="(-5,)")}), "cannot read 'x.npz'", ""),
    "encrypted": (encrypted(), "cannot read 'x.npz'", "'x' is encrypted"),
    "objects": (
        archive({"x.npy": member("|O")}),
        "array 'x' of 'x.npz' holds objects",
        "they would be a pickle, which may run code",
    ),
    "two of one name": (twice(), "'x.npz' holds two arrays 'x'", ""),
    "two that read alike": (
        archive({"x": member(data=bytes(16)), "x.npy": member(data=bytes(16))}),
        "'x.npz' holds two arrays 'x'",
        "",
    ),
    "no array": (archive({"a.txt": b"hello"}), "'x.npz' holds 'a.txt', which is no array", ""),
    "no header": (archive({"x.npy": b"\x93NUMPY"}), "cannot read 'x.npz'", "EOF"),
    "another version": (archive({"x.npy": member(version=9)}), "cannot read 'x.npz'", ""),
    "a header of brackets": (archive({"x.npy": member(shape="(" * 9000)}), "", ""),
    "a header that hashes nothing": (
        archive({"x.npy": member(shape="{[]: 1}")}),
        "cannot read",
        "",
    ),
    "a header that names nothing": (
        archive({"x.npy": member(data=bytes(16)).replace(b"'<f8'", b"()   ")}),
        "cannot read 'x.npz'",
        "",
    ),
    "a length of 31 digits": (
        archive({"x.npy": member(shape=f"({10**30},)")}),
        "cannot read 'x.npz'",
        "",
    ),
    "packed bytes that end too soon": (ended(), "cannot read 'x.npz'", ""),
    "no type": (archive({"x.npy": member("quark")}), "cannot read 'x.npz'", "descr is not"),
    "another packer": (
        archive({"x.npy": member(data=bytes(16))}, zipfile.ZIP_BZIP2),
        "cannot read 'x.npz'",
        "'x' is packed as numpy packs nothing",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("raises", [Refused, Bad])
def test_every_damage_is_said_and_none_is_a_traceback(name: str, raises: type[FarmError]) -> None:
    """As the error that the caller wants: a person's file, or one of the store."""
    data, what, why = DAMAGED[name]

    with pytest.raises(raises) as caught:
        npz.read(io.BytesIO(data), called="'x.npz'", raises=raises)

    assert what in caught.value.what
    assert caught.value.why.startswith(why)
    assert "\n" not in caught.value.why


def is_read_or_said(data: bytes) -> bool:
    try:
        found = npz.read(io.BytesIO(data), called="'x.npz'")
    except FarmError as error:
        return "'x.npz'" in error.what
    return all(isinstance(each, np.ndarray) for each in found.values())


@given(st.integers(0, 2**32), st.booleans())
def test_no_byte_that_is_wrong_leads_to_anything_else(at: int, compressed: bool) -> None:
    data = bytearray(packed({"x": np.arange(9.0), "y": np.zeros(4, bool)}, compressed=compressed))
    chance = random.Random(at)
    for _ in range(chance.choice((1, 2, 8))):
        data[chance.randrange(len(data))] = chance.randrange(256)

    assert is_read_or_said(bytes(data))


@given(st.text(alphabet="(){}[]'\"\\,:-.<>=|?abcefiOSUVMm8421L0# \n\té", max_size=40))
def test_no_header_that_somebody_wrote_leads_to_anything_else(text: str) -> None:
    """A parser of Python's words reads it, and raises what that does."""
    for header in (member(shape=text), member(text)):
        assert is_read_or_said(archive({"x.npy": header}))


def test_a_disk_that_does_not_give_it_back_is_told() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() < 9:
                raise OSError(5, "Input/output error")
            return super().read(size)

    with pytest.raises(Refused, match=r"^cannot read 'x\.npz': Input/output error$"):
        npz.read(Failing(ONES), called="'x.npz'")


@pytest.mark.parametrize("kind", [">f4", ">i8", ">u2", ">c8", ">f2", "<f4", "|b1"])
def test_arrays_come_in_the_byte_order_of_this_machine(kind: str) -> None:
    """With the same numbers: torch takes no other, and would call it an error of the model."""
    values = np.array([1, 0, 1]).astype(kind)

    found = npz.read(io.BytesIO(packed({"x": values})), called="'x.npz'")["x"]

    assert found.dtype.isnative
    assert (values.dtype.newbyteorder("="), values.tolist()) == (found.dtype, found.tolist())


def test_a_header_of_python_2_is_read_without_a_word() -> None:
    """Its integers end with L, of which numpy warns."""
    old = archive({"x.npy": member(shape="(2L,)", data=np.ones(2).tobytes())})

    assert [1.0, 1.0] == npz.read(io.BytesIO(old), called="'x.npz'")["x"].tolist()


def test_an_archive_without_arrays_is_read_as_one() -> None:
    assert {} == npz.read(io.BytesIO(packed({})), called="'x.npz'")
