"""A manifest of inputs: named samples, staged as one NPZ whose leading axis is the batch.

Every model of a sweep then gets the same samples in the same order, and a profile says which.

schema: farm.inputs/v1
arrays: {rgb: {shape: [96, 128, 3], dtype: uint8}}     # of what is drawn; not needed for files
samples:
  - {id: office, npz: office.npz}                      # beside the manifest
  - {id: noise, seed: 7}                               # drawn; floats normal, integers uniform
"""

import hashlib
import io
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from farm import reading
from farm.errors import Refused
from farm.reading import Place
from farm.schema import Tensor
from farm.sweep import arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Sample = Mapping[str, NDArray[Any]]

TAG: Final = "farm.inputs/v1"
MOST_BYTES: Final = 1 << 30
MOST_SAMPLES: Final = 10_000
_CHUNK: Final = 1 << 20  # numbers drawn in one go, as wide as numpy draws them
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the oldest that a zip can hold: no clock in the digest


class Staged(NamedTuple):
    """Samples as one NPZ: ids in the order of the leading axis, and the shapes without it."""

    ids: tuple[str, ...]
    shapes: dict[str, tuple[tuple[int, ...], str]]
    data: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def staged(
    file: Path,
    *,
    name: str,
    dtypes: Sequence[str],
    drawn: Mapping[str, Tensor],
    most_bytes: int = MOST_BYTES,
) -> Staged:
    """Return the samples of a manifest, each read or drawn once, in its order.

    dtypes: that arrays may have. drawn: what a sample with a seed consists of, from `arrays`.
    Raises Refused, naming the sample, if two differ in names, shapes or types (S1.39), if a number
    is not finite, if an id is there twice, and before it draws more than most_bytes.
    """
    place = Place(reading.read(file, name=name))
    said = reading.mapping(place.document.data, place, known=("schema", "arrays", "samples"))
    if said.get("schema") != TAG:
        raise place.key("schema").refused(f"expected {TAG!r}", hint=f"begin with schema: {TAG}")
    entries = reading.items(said.get("samples", []), place.key("samples"))
    if len(entries) > MOST_SAMPLES:
        raise place.key("samples").refused(f"more than {MOST_SAMPLES:,} samples")
    found: dict[str, Sample] = {}
    size = 0
    for block, here in entries:
        entry = reading.mapping(block, here, known=("id", "npz", "seed"))
        sample_id = reading.text(entry.get("id"), here.key("id"), thing="an id", limit=100)
        if sample_id in found:
            raise here.key("id").refused(f"sample {sample_id!r} is there twice")
        too_much = here.refused(f"more than {most_bytes:,} bytes of samples")
        if "seed" in entry and size + _bytes(drawn) > most_bytes:
            raise too_much
        sample = _sample(entry, here, file.parent, drawn)
        size += sum(each.nbytes for each in sample.values())
        if size > most_bytes:
            raise too_much
        _check(sample_id, sample, here, dtypes)
        if found:
            _check_alike(sample_id, sample, next(iter(found.items())), here)
        found[sample_id] = sample
    return _stacked(found)


def drawn_block(file: Path, *, name: str) -> tuple[object, Place]:
    """Return what a manifest says of its arrays, and where."""
    place = Place(reading.read(file, name=name))
    return place.document.data.get("arrays", {}), place.key("arrays")


def _sample(
    entry: Mapping[str, object], here: Place, folder: Path, drawn: Mapping[str, Tensor]
) -> "Sample":
    if ("npz" in entry) == ("seed" in entry):
        raise here.refused("a sample has either npz or seed")
    if "seed" in entry:
        seed = reading.whole(entry["seed"], here.key("seed"), low=0)
        if not drawn:
            raise here.refused("nothing says what to draw", hint="add arrays: {x: {shape: […]}}")
        return {name: _draw(name, tensor, seed) for name, tensor in drawn.items()}
    said = reading.text(entry["npz"], here.key("npz"), thing="a file")
    try:
        return arrays.load(folder / said, name=said)
    except Refused as error:
        raise here.key("npz").refused(error.what, why=error.why, hint=error.hint) from error


def _bytes(drawn: Mapping[str, Tensor]) -> int:
    """Return how large a sample that is drawn will be."""
    import numpy as np

    return sum(math.prod(_shape(each)) * np.dtype(each.dtype).itemsize for each in drawn.values())


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(each for each in tensor.shape if isinstance(each, int))


def _draw(name: str, tensor: Tensor, seed: int) -> "NDArray[Any]":
    """Return an array that does not depend on the others, as the workers draw theirs."""
    import numpy as np

    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    found = np.empty(_shape(tensor), tensor.dtype)
    flat = found.reshape(-1)
    high = tensor.high if isinstance(tensor.high, int) else (2 if tensor.dtype == "bool" else 256)
    # Integers are drawn in 64 bits: at once, a sample of bytes would take eight times its memory.
    for part in (flat[at : at + _CHUNK] for at in range(0, flat.size, _CHUNK)):
        if "int" in tensor.dtype or tensor.dtype == "bool":
            part[:] = random.integers(tensor.low, high, part.size)
        else:
            part[:] = random.standard_normal(part.size, dtype=np.float32)
    return found


def _check(sample_id: str, sample: "Sample", here: Place, dtypes: Sequence[str]) -> None:
    import numpy as np

    for name, array in sample.items():
        if array.dtype.name not in dtypes:
            what = f"array {name!r} of sample {sample_id!r} is of type {array.dtype}"
            raise here.refused(what, known=dtypes)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise here.refused(f"array {name!r} of sample {sample_id!r} is not finite")


def _check_alike(
    sample_id: str, sample: "Sample", first: "tuple[str, Sample]", here: Place
) -> None:
    """Refuse a sample that is of another kind than the first one: they are one batch."""
    first_id, other = first
    if list(sample) != list(other) and set(sample) != set(other):
        what = f"sample {sample_id!r} holds {', '.join(sample)}, {first_id!r} {', '.join(other)}"
        raise here.refused(what, why="all samples have the same arrays")
    for name, array in other.items():
        mine = sample[name]
        if (mine.shape, mine.dtype) != (array.shape, array.dtype):
            raise here.refused(
                f"array {name!r} has shape {_shown(mine)} in {sample_id!r} and {_shown(array)} in "
                f"{first_id!r}",
                why="the same work is timed for every model, and mixed shapes are not",
                hint="write a manifest for each shape",
            )


def _stacked(found: "Mapping[str, Sample]") -> Staged:
    import numpy as np

    first = next(iter(found.values()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in first:
            whole = np.ascontiguousarray(np.stack([each[name] for each in found.values()]))
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _EPOCH), "w", force_zip64=True) as to:
                np.lib.format.write_array(to, whole, version=(1, 0), allow_pickle=False)
    shapes = {name: (each.shape, each.dtype.name) for name, each in first.items()}
    return Staged(tuple(found), shapes, out.getvalue())


def _shown(array: "NDArray[Any]") -> str:
    return f"[{', '.join(str(each) for each in array.shape)}] {array.dtype.name}"
