"""The laws of a manifest: named samples of one kind become one batch, the same everywhere."""

import io
import zlib

import numpy as np
import pytest

from farm import bundle
from farm.errors import Refused
from farm.reading import Document, Place
from farm.schema import Tensor
from farm.sweep import arrays, inputs, manifest

PLACE = Place(Document(name="a.yaml", data={}, sha256=""), "inputs")


@pytest.fixture
def folder(tmp_path):
    for name, value in (("office", 1), ("street", 2)):
        np.savez(tmp_path / f"{name}.npz", rgb=np.full((4, 6, 3), value, "uint8"), k=np.eye(3))
    return tmp_path


def written(folder, text, name="staged.yaml"):
    (folder / name).write_text(f"schema: farm.inputs/v1\n{text}")
    return name


TWO = "samples: [{id: office, npz: office.npz}, {id: street, npz: street.npz}]"


def given(folder, text):
    return inputs.given(written(folder, text), PLACE, folders=[folder])


@pytest.mark.seed("S1.39")
def test_samples_are_a_batch_and_their_ids_are_recorded(folder):
    """In the order of the manifest, under the digest of their bytes."""
    found = given(folder, TWO)

    assert {
        "rgb": Tensor(shape=("batch", 4, 6, 3), dtype="uint8"),
        "k": Tensor(shape=("batch", 3, 3), dtype="float64"),
    } == found.spec
    sized = found.sized({})
    assert (("office", "street"), found.digest) == (sized.samples, sized.digest)
    with np.load(io.BytesIO(found.source)) as staged:
        assert [1, 2] == [int(each[0, 0, 0]) for each in staged["rgb"]]
        assert (2, 3, 3) == staged["k"].shape


def test_what_is_staged_is_an_npz_that_the_digest_names(folder):
    found = given(folder, TWO)

    (folder / "all.npz").write_bytes(found.source)
    assert arrays.digest(folder / "all.npz") == found.digest
    assert ["rgb", "k"] == list(arrays.load(folder / "all.npz"))


def test_the_same_samples_have_the_same_digest_whenever_they_are_staged(folder, tmp_path_factory):
    """No clock is in it, nor the name of a file."""
    other = tmp_path_factory.mktemp("other")
    for name in ("office.npz", "street.npz"):
        (other / name).write_bytes((folder / name).read_bytes())

    assert given(folder, TWO).digest == given(other, TWO).digest
    turned = "samples: [{id: street, npz: street.npz}, {id: office, npz: office.npz}]"
    assert given(folder, TWO).digest != given(other, turned).digest


def test_samples_may_be_drawn_and_then_depend_on_their_seed_alone(folder):
    """On no other array, and on no other sample."""
    block = "arrays: {rgb: {shape: [2, 3], dtype: uint8}, x: {shape: [4]}}\n"
    one = given(folder, block + "samples: [{id: a, seed: 1}, {id: b, seed: 2}]")
    two = given(folder, block.replace("rgb", "grb") + "samples: [{id: b, seed: 2}]")

    with np.load(io.BytesIO(one.source)) as a, np.load(io.BytesIO(two.source)) as b:
        assert a["x"][1].tolist() == b["x"][0].tolist()
        assert ("uint8", "float32") == (a["rgb"].dtype, a["x"].dtype)
        assert a["x"][0].tolist() != a["x"][1].tolist()


def test_staged_samples_travel_to_the_workers_under_their_digest(folder, store, tmp_path):
    found = given(folder, TWO)

    bundle.publish(store, bundles={}, npz={found.digest: found.source})

    fetched = bundle.fetch_npz(store, found.digest, tmp_path / "cache")
    assert found.source == fetched.read_bytes()
    with pytest.raises(Refused, match="the staged inputs changed"):
        bundle.publish(store, bundles={}, npz={found.digest: b"other"})


@pytest.mark.seed("S1.39")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rgb": np.zeros((4, 8, 3), "uint8"), "k": np.eye(3)}, "array 'rgb' has shape [4, 8, 3]"),
        ({"rgb": np.zeros((4, 6, 3)), "k": np.eye(3)}, "array 'rgb' has shape [4, 6, 3] float64"),
        ({"rgb": np.zeros((4, 6, 3), "uint8")}, "sample 'street' holds rgb, 'office' rgb, k"),
        (
            {"rgb": np.zeros((4, 6, 3), "uint8"), "k": np.full((3, 3), np.nan)},
            "array 'k' of sample 'street' is not finite",
        ),
        (
            {"rgb": np.zeros((4, 6, 3), "uint16"), "k": np.eye(3)},
            "array 'rgb' of sample 'street' is of type uint16",
        ),
    ],
)
def test_samples_of_different_kinds_are_refused(folder, changed, message):
    """Mixed shapes are no batch, and not the same work for every model."""
    np.savez(folder / "street.npz", **changed)

    with pytest.raises(Refused) as caught:
        given(folder, TWO)

    assert caught.value.what.startswith(f"staged.yaml: {message}")
    assert "at samples[1]" in caught.value.why


def test_a_batch_may_be_smaller_or_larger_than_the_samples(folder):
    """As with any NPZ, its leading axis is cut or repeated."""
    assert given(folder, TWO).fits(1)
    assert given(folder, TWO).fits(64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("samples: []", "staged.yaml: an empty list: at samples"),
        ("", "staged.yaml: an empty list: at samples"),
        ("samples: [{npz: office.npz}]", "staged.yaml: expected an id, got nothing"),
        ("samples: [{id: a}]", "staged.yaml: a sample has either npz or seed: at samples[0]"),
        ("samples: [{id: a, npz: office.npz, seed: 1}]", "staged.yaml: a sample has either npz"),
        ("samples: [{id: a, seed: 1}]", "staged.yaml: nothing says what to draw"),
        ("samples: [{id: a, npz: gone.npz}]", "staged.yaml: no file 'gone.npz'"),
        ("samples: [{id: a, nzp: office.npz}]", "staged.yaml: unknown key 'nzp'"),
        (
            "samples: [{id: a, npz: office.npz}, {id: a, npz: street.npz}]",
            "staged.yaml: sample 'a' is there twice: at samples[1].id",
        ),
        (
            "arrays: {x: {shape: [n]}}\nsamples: [{id: a, seed: 1}]",
            "staged.yaml: the axis 'n' of a sample has no value: at arrays.x",
        ),
        (
            "arrays: {x: {shape: [2], dtype: int64}}\nsamples: [{id: a, seed: 1}]",
            "staged.yaml: int64 is drawn from [low, high), and has no high: at arrays.x",
        ),
        (
            "arrays: {x: {shape: [8], dtype: bfloat16}}\nsamples: [{id: a, seed: 1}]",
            "staged.yaml: a sample cannot be of type bfloat16: at arrays.x; numpy, which packs it",
        ),
        ("smaples: []", "staged.yaml: unknown key 'smaples'"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(folder, text, message):
    with pytest.raises(Refused) as caught:
        given(folder, text)

    assert str(caught.value).startswith(message)


def test_a_manifest_says_what_it_is(folder):
    (folder / "staged.yaml").write_text(TWO)

    with pytest.raises(Refused, match=r"expected 'farm.inputs/v1': at schema"):
        inputs.given("staged.yaml", PLACE, folders=[folder])
    with pytest.raises(Refused, match=r"no file 'gone.yaml': at inputs"):
        inputs.given("gone.yaml", PLACE, folders=[folder])
    with pytest.raises(Refused, match=r"'office.npz' is no manifest"):
        inputs.given("office.npz", PLACE, folders=[folder])


def test_too_much_is_refused_before_it_is_staged(folder):
    written(folder, TWO)

    with pytest.raises(Refused, match="more than 100 bytes of samples"):
        manifest.staged(
            folder / "staged.yaml", name="staged.yaml", dtypes=["uint8"], drawn={}, most_bytes=100
        )


@pytest.mark.parametrize(
    "shape", [[100_000] * 3, [2**31 - 1] * 4, [2**31 - 1] * 31, [(1 << 30) + 1]]
)
def test_no_sample_is_drawn_that_is_too_large(folder, shape):
    """No machine has room for some, and numpy no word for others."""
    block = f"arrays: {{x: {{shape: {shape}, dtype: uint8}}}}\nsamples: [{{id: a, seed: 1}}]"

    with pytest.raises(Refused, match=r"more than 1,073,741,824 bytes of samples: at samples\[0\]"):
        given(folder, block)


def test_the_samples_before_count_too(folder):
    """Three of 40 bytes are more than 100."""
    block = "arrays: {x: {shape: [5], dtype: float64}}\nsamples: "
    written(folder, block + "[{id: a, seed: 1}, {id: b, seed: 2}, {id: c, seed: 3}]")
    drawn = {"x": Tensor(shape=(5,), dtype="float64")}
    ask = {"name": "staged.yaml", "dtypes": ["float64"], "drawn": drawn}

    with pytest.raises(Refused, match=r"more than 100 bytes of samples: at samples\[2\]"):
        manifest.staged(folder / "staged.yaml", **ask, most_bytes=100)
    assert ("a", "b", "c") == manifest.staged(folder / "staged.yaml", **ask, most_bytes=120).ids


def test_the_sample_that_is_too_much_is_not_drawn_first(folder):
    """Alone it would just be allowed, and no machine has room for it."""
    most = 10**15
    written(folder, "samples: [{id: a, npz: office.npz}, {id: b, seed: 2}]")
    drawn = {"x": Tensor(shape=(most,), dtype="uint8")}

    with pytest.raises(Refused, match=r"more than 1,000,000,000,000,000 bytes of samples"):
        manifest.staged(
            folder / "staged.yaml",
            name="staged.yaml",
            dtypes=inputs.DTYPES,
            drawn=drawn,
            most_bytes=most,
        )


@pytest.mark.parametrize(
    "tensor",
    [
        *(Tensor(shape=(3, 400_001), dtype=each) for each in ("float16", "float32", "float64")),
        Tensor(shape=(3, 400_001), dtype="uint8"),
        Tensor(shape=(3, 400_001), dtype="bool"),
        Tensor(shape=(3, 400_001), dtype="int32", low=-5, high=90_000),
        Tensor(shape=(3, 400_001), dtype="int64", high=2**40),
        Tensor(shape=(), dtype="int8", high=3),
    ],
    ids=lambda tensor: f"{tensor.dtype}{list(tensor.shape)}",
)
def test_a_sample_is_drawn_as_the_workers_draw_theirs(tensor, seed):
    """It is drawn in parts, whose numbers follow each other as if it were one."""
    random = np.random.default_rng([seed, zlib.crc32(b"x")])
    if "float" in tensor.dtype:
        whole = random.standard_normal(tensor.shape, dtype=np.float32)
    else:
        high = tensor.high or {"bool": 2, "uint8": 256}[tensor.dtype]
        whole = random.integers(tensor.low, high, tensor.shape)

    found = manifest._draw("x", tensor, seed)

    assert tensor.dtype == found.dtype.name
    assert np.array_equal(np.asarray(whole).astype(tensor.dtype), found)
