"""Arrays come back from a file under the names they had, or nothing is written at all."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import npz


def read(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


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
