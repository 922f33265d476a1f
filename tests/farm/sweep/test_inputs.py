"""The laws of the `inputs:` block: shapes with named axes, and arrays from an NPZ file."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from msgspec import UNSET

from farm.errors import Refused
from farm.reading import Document, Place
from farm.schema import Tensor
from farm.sweep import inputs
from farm.sweep.inputs import Given

PLACE = Place(Document(name="a.yaml", data={}, sha256=""), "inputs")


def _given(block: object, folder: Path = Path("/nonexistent")) -> Given:
    return inputs.given(block, PLACE, folders=[folder])


def _npz(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "in.npz", **arrays)
    return folder / "in.npz"


def test_named_axes_get_their_values_and_batch_stays() -> None:
    """The specification of a job holds integers, and `batch` where the batch goes."""
    given = _given(
        {"ids": {"shape": ["batch", "seq"], "dtype": "int64", "high": 9}, "n": {"shape": []}}
    )

    sized = given.sized({"seq": 128, "batch": 4})

    assert {"batch", "seq"} == given.axes
    assert Tensor(shape=("batch", 128), dtype="int64", high=9) == sized.spec["ids"]
    assert Tensor(shape=(), dtype="float32") == sized.spec["n"]
    assert sized.digest is UNSET


def test_a_batch_must_change_something() -> None:
    """Inputs of a fixed size are no batch of 8 for being called one."""
    assert _given({"x": {"shape": ["batch", 3]}}).fits(8)
    assert _given({"x": {"shape": [8, 3]}}).fits(8)
    assert _given({"x": {"shape": [8, 3]}}).fits(1)
    assert _given({}).fits(8)
    assert not _given({"x": {"shape": [4, 3]}}).fits(8)
    assert not _given({"x": {"shape": []}}).fits(8)
    assert not _given({"x": {"shape": [1, 4]}, "y": {"shape": [8]}}).fits(8)


@pytest.mark.parametrize(
    "tensor",
    [
        {"dtype": "int64"},
        {"dtype": "int8", "low": 0, "high": 1000},
        {"dtype": "uint8", "low": -1, "high": 9},
        {"dtype": "uint64", "high": 9},
    ],
)
def test_integers_that_would_wrap_or_have_no_end_are_refused(tensor) -> None:
    """What the plan accepts, the workers can make, and it is what was written."""
    with pytest.raises(Refused):
        _given({"x": {"shape": ["batch", 3], **tensor}})


def test_arrays_come_with_their_shapes_and_digest(tmp_path: Path) -> None:
    """An NPZ gives the specification; a named leading axis is fitted to the batch."""
    path = _npz(tmp_path, x=np.zeros((2, 3), "float32"), n=np.array(5))

    plain = _given({"npz": "in.npz"}, tmp_path)
    fitted = _given({"npz": "in.npz", "x": {"shape": ["batch", 3]}}, tmp_path)

    assert {"x": Tensor(shape=(2, 3)), "n": Tensor(shape=(), dtype="int64")} == plain.spec
    assert Tensor(shape=("batch", 3)) == fitted.spec["x"]
    assert path == plain.source
    assert hashlib.sha256(path.read_bytes()).hexdigest() == plain.digest == fitted.sized({}).digest


def test_an_input_may_be_called_npz() -> None:
    """Only text after `npz` is a file."""
    assert {"npz": Tensor(shape=(1,))} == _given({"npz": {"shape": [1]}}).spec


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("many.yaml", "no file 'many.yaml': at inputs"),
        (" ", "expected a manifest, got ' ': at inputs"),
        ([1], "expected keys and values, got a list: at inputs"),
        ({"x": [1, 3]}, "expected keys and values, got a list: at inputs.x"),
        ({"x": {}}, "no shape: at inputs.x"),
        ({"x": {"shape": 3}}, "expected a list, got the number 3: at inputs.x.shape"),
        ({"x": {"shape": [0]}}, "expected at least 1, got 0: at inputs.x.shape[0]"),
        ({"x": {"shape": [2**31]}}, "expected at most 2147483647, got 2147483648: at inputs.x.sh"),
        ({"x": {"shape": [1] * 32}}, "more than 31 axes: at inputs.x.shape"),
        ({"x": {"shape": ["a b"]}}, "'a b' cannot be the name of an axis: at inputs.x.shape[0]"),
        ({"x": {"shape": ["model"]}}, "'model' cannot be the name of an axis"),
        ({"x": {"shape": [1.5]}}, "expected a whole number, got 1.5"),
        ({"x": {"shape": [1], "dtype": "float23"}}, "unknown dtype 'float23': at inputs.x.dtype"),
        (
            {"x": {"shape": [1], "low": 3}},
            "float32 is drawn from a standard normal: at inputs.x.low",
        ),
        (
            {"x": {"shape": [1], "dtype": "int8", "low": 3, "high": 3}},
            "expected at least 4, got 3: at inputs.x.high",
        ),
        (
            {"x": {"shape": [1], "max": 3}},
            "unknown key 'max': at inputs.x.max; known: shape, dtype",
        ),
        ({"": {"shape": [1]}}, "expected the name of an input, got ''"),
    ],
)
def test_a_specification_that_makes_no_sense_is_refused(block: object, message: str) -> None:
    """What is wrong is named with its place."""
    with pytest.raises(Refused) as caught:
        _given(block)

    assert str(caught.value).startswith(f"a.yaml: {message}")


@pytest.mark.parametrize(
    ("rest", "message", "hint"),
    [
        ({"npz": "out.npz"}, "no file 'out.npz': at inputs.npz", "looked in "),
        ({"npz": "text.npz"}, "'text.npz' is not an NPZ", "numpy.savez writes one"),
        ({"npz": "object.npz"}, "array 'x' of 'object.npz' holds objects: at inputs.npz", ""),
        ({"npz": "words.npz"}, "array 'x' is of type <U3", ""),
        (
            {"npz": "void.npz"},
            "array 'x' of 'void.npz' is empty: at inputs.npz; its shape is (0, 3)",
            "",
        ),
        ({"npz": "none.npz"}, "'none.npz' holds no array", ""),
        ({"npz": "torn.npz"}, "'torn.npz' is damaged: at inputs.npz; Bad CRC-32", ""),
        ({"npz": "huge.npz"}, "array 'x' of 'huge.npz' does not fit here: at inputs.npz", ""),
        ({"npz": "twice.npz"}, "'twice.npz' holds two arrays 'x': at inputs.npz", ""),
        ({"y": {"shape": ["batch", 3]}}, "unknown array 'y': at inputs.y; known: x", ""),
        (
            {"x": {"shape": [4, 3]}},
            "the array has shape [2, 3]: at inputs.x.shape",
            "write [batch, 3]",
        ),
        ({"x": {"shape": ["batch", 4]}}, "the array has shape [2, 3]", "write [batch, 3] to fit"),
        ({"x": {"shape": ["seq", 3]}}, "the array has shape [2, 3]", "write [batch, 3] to fit"),
        ({"x": {"dtype": "int8"}}, "unknown key 'dtype'", ""),
    ],
)
def test_an_npz_that_cannot_be_used_is_refused(
    tmp_path: Path, rest: dict[str, object], message: str, hint: str
) -> None:
    """Missing, damaged and pickled files are refused, and shapes that the arrays do not have."""
    whole = _npz(tmp_path, x=np.ones((2, 3), "float32")).read_bytes()
    (tmp_path / "torn.npz").write_bytes(whole.replace(b"\x80?\x00", b"\x81?\x00"))
    (tmp_path / "text.npz").write_text("words")
    np.savez(tmp_path / "object.npz", x=np.array([{}], dtype=object))
    np.savez(tmp_path / "words.npz", x=np.array(["abc"]))
    np.savez(tmp_path / "void.npz", x=np.zeros((0, 3)))
    np.savez(tmp_path / "none.npz")
    header = whole[: whole.index(b"\n")].replace(b"(2, 3)", b"(%d,)" % 10**15)
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("x.npy", header[header.index(b"\x93NUMPY") :] + b"\n")
    np.savez(tmp_path / "twice.npz", x=np.ones(1), y=np.ones(1))
    twice = (tmp_path / "twice.npz").read_bytes().replace(b"y.npy", b"x.npy")
    (tmp_path / "twice.npz").write_bytes(twice)

    with pytest.raises(Refused) as caught:
        _given({"npz": "in.npz", **rest}, tmp_path)

    assert str(caught.value).startswith(f"a.yaml: {message}")
    assert caught.value.hint.startswith(hint)
