import numpy as np
import pytest

from farm.schema import Inputs, Tensor
from workers.backends import LoadFailed
from workers.backends.inputs import arrays


def drawn(tensor, *, seed=0, batch=4, name="x"):
    return arrays(Inputs(spec={name: tensor}, seed=seed), batch=batch, npz="")[name]


def read(tmp_path, spec, batch=4, **saved):
    np.savez(tmp_path / "in.npz", **saved)
    return arrays(Inputs(spec=spec), batch=batch, npz=str(tmp_path / "in.npz"))


def test_the_batch_axis_becomes_the_batch():
    """Named `batch`, wherever it stands; numbers stay."""
    assert (2, 4, 3) == drawn(Tensor(shape=(2, "batch", 3))).shape


def test_another_named_axis_is_an_error():
    """Nobody says how long it is, so nothing is guessed."""
    with pytest.raises(LoadFailed, match="nothing says how long 'tokens' is"):
        drawn(Tensor(shape=("batch", "tokens")))


def test_equal_seeds_give_equal_inputs_and_others_do_not():
    """An input is a function of its seed, name and shape alone."""
    tensor = Tensor(shape=("batch", 8))

    assert np.array_equal(drawn(tensor), drawn(tensor))
    assert not np.array_equal(drawn(tensor), drawn(tensor, seed=1))
    assert not np.array_equal(drawn(tensor), drawn(tensor, name="y"))


def test_an_input_does_not_depend_on_the_others():
    """Adding an input before one leaves it as it was."""
    tensor = Tensor(shape=("batch", 8))
    alone = drawn(tensor)

    both = arrays(Inputs(spec={"a": tensor, "x": tensor}), batch=4, npz="")

    assert ["a", "x"] == list(both)
    assert np.array_equal(alone, both["x"])


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
)
def test_no_input_is_constant(dtype):
    """Power depends on data, so each generated input has more than one value."""
    found = drawn(Tensor(shape=("batch", 32), dtype=dtype, high=100))

    assert dtype == found.dtype.name
    assert len(np.unique(found)) > 1


def test_floats_are_standard_normal():
    """Mean 0 and deviation 1, within five standard errors of 40,000 draws."""
    found = drawn(Tensor(shape=("batch", 10_000)))

    assert abs(found.mean()) < 0.025
    assert abs(found.std() - 1) < 0.02


def test_bfloat16_comes_as_float32():
    """numpy has no such type; the tensor is cast later."""
    assert "float32" == drawn(Tensor(shape=("batch",), dtype="bfloat16")).dtype.name


def test_integers_stay_in_their_range():
    """Drawn from [low, high), both ends met in a thousand draws."""
    found = drawn(Tensor(shape=("batch", 250), dtype="int64", low=5, high=8))

    assert {5, 6, 7} == set(found.ravel().tolist())


def test_integers_need_an_upper_bound():
    """Only bytes have a natural one; a token id above the vocabulary would crash the model."""
    assert 255 >= drawn(Tensor(shape=(9,), dtype="uint8")).max()
    with pytest.raises(LoadFailed, match="int64 has no upper bound"):
        drawn(Tensor(shape=(9,), dtype="int64"))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (Tensor(shape=(2,), dtype="float31"), "unknown dtype 'float31'"),
        (Tensor(shape=(2,), dtype="int8", low=3, high=3), r"nothing lies in \[3, 3\)"),
    ],
)
def test_what_cannot_be_drawn_is_named(tensor, message):
    """The failure names the input and what is wrong with it."""
    with pytest.raises(LoadFailed, match=f"input 'x'.*{message}"):
        drawn(tensor)


def test_an_npz_is_repeated_to_the_batch(tmp_path):
    """Three rows fill a batch of seven in order, from the start again."""
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)

    found = read(tmp_path, {"x": Tensor(shape=("batch", 2))}, batch=7, x=rows)

    assert [0, 1, 2, 0, 1, 2, 0] == (found["x"][:, 0] / 2).tolist()


def test_an_npz_is_cut_to_the_batch(tmp_path):
    """A batch of two takes the first two rows."""
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)

    found = read(tmp_path, {"x": Tensor(shape=("batch", 2))}, batch=2, x=rows)

    assert rows[:2].tolist() == found["x"].tolist()


def test_an_axis_that_is_no_batch_axis_is_left_alone(tmp_path):
    """Where the specification gives a number, the array is used as it is."""
    saved = np.ones((3, 2), dtype=np.float32)

    assert (3, 2) == read(tmp_path, {"x": Tensor(shape=(3, 2))}, x=saved)["x"].shape


def test_an_npz_without_a_specification_is_taken_as_it_is(tmp_path):
    """Every array, by its name."""
    found = read(tmp_path, {}, a=np.zeros(3), b=np.ones((2, 2), dtype=np.int8))

    assert {"a": (3,), "b": (2, 2)} == {name: each.shape for name, each in found.items()}


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"x": np.zeros((3, 2), np.float32), "y": np.zeros(1)}, "holds 'y', which no input"),
        ({"y": np.zeros((3, 2), np.float32)}, "holds 'y'"),
        ({}, "empty NPZ"),
        ({"x": np.zeros((3, 2))}, "is float64 in the NPZ, not float32"),
        ({"x": np.zeros((3, 5), np.float32)}, "has length 5 in axis 1, not 2"),
        ({"x": np.zeros((3, 2, 1), np.float32)}, r"has shape \(3, 2, 1\)"),
        ({"x": np.zeros((0, 2), np.float32)}, r"has shape \(0, 2\)"),
        ({"x": np.array([[{}, 1]], dtype=object)}, "cannot be read"),
    ],
)
def test_an_npz_that_does_not_fit_is_refused(tmp_path, saved, message):
    """Nothing is cast, dropped or unpickled to make it fit."""
    with pytest.raises(LoadFailed, match=message):
        read(tmp_path, {"x": Tensor(shape=("batch", 2))}, **saved)


def test_a_lacking_input_is_named(tmp_path):
    """Each input of the specification must be in the file."""
    spec = {"x": Tensor(shape=("batch",)), "y": Tensor(shape=("batch",))}

    with pytest.raises(LoadFailed, match="lacks the input 'y'"):
        read(tmp_path, spec, x=np.zeros(2, np.float32))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 and no more", b"\x93NUMPY"])
def test_a_damaged_npz_is_refused(tmp_path, data):
    """Neither an empty file, half a file nor a single array ends in a traceback."""
    (tmp_path / "in.npz").write_bytes(data)

    with pytest.raises(LoadFailed, match="cannot be read"):
        arrays(Inputs(spec={}), batch=1, npz=str(tmp_path / "in.npz"))


@pytest.mark.parametrize("spec", [{}, {"x": Tensor(shape=(2,))}])
def test_arrays_of_another_byte_order_are_turned(tmp_path, spec):
    """Torch takes no other than this machine's, and would call it an error of the model."""
    found = read(tmp_path, spec, x=np.array([1, 2], ">f4"))["x"]

    assert (True, [1.0, 2.0]) == (found.dtype.isnative, found.tolist())


def test_a_missing_npz_is_refused(tmp_path):
    """The file's name is in the message."""
    with pytest.raises(LoadFailed, match=r"in\.npz"):
        arrays(Inputs(spec={}), batch=1, npz=str(tmp_path / "in.npz"))
