"""The `inputs:` block of a sweep: what a model is called with, generated or from an NPZ file."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import UNSET, Struct

from farm import reading
from farm.errors import Refused
from farm.reading import Place
from farm.schema import Inputs, Tensor
from farm.sweep import arrays, manifest
from farm.sweep.axes import FIXED

BATCH: Final = "batch"
# What the workers can make, and for integers what one can hold: beyond it numbers would wrap.
RANGES: Final = {
    "int8": (-(2**7), 2**7),
    "int16": (-(2**15), 2**15),
    "int32": (-(2**31), 2**31),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8),
}
DTYPES: Final = ("float32", "float64", "float16", "bfloat16", "bool", *RANGES)
_KEYS: Final = ("shape", "dtype", "low", "high")
_MOST_AXES: Final = 31  # numpy before 2.0 has 32, and the samples of a manifest get one more


class Given(Struct, frozen=True, kw_only=True):
    """Inputs before the named axes have values.

    source: the NPZ that holds them, by its digest; None for inputs that are generated. samples: the
    ids along the batch, of a manifest.
    """

    spec: dict[str, Tensor]
    digest: str = ""
    source: Path | bytes | None = None
    samples: tuple[str, ...] = ()

    @property
    def axes(self) -> frozenset[str]:
        """The named axes of all shapes, `batch` included."""
        return frozenset(
            axis for each in self.spec.values() for axis in each.shape if isinstance(axis, str)
        )

    def sized(self, values: Mapping[str, int]) -> Inputs:
        """Return the inputs with every named axis but `batch` replaced by its value."""
        spec = {name: _sized(tensor, values) for name, tensor in self.spec.items()}
        return Inputs(spec=spec, digest=self.digest or UNSET, samples=self.samples or UNSET)

    def fits(self, batch: int) -> bool:
        """Return whether that batch is what the shapes say, or what they leave open.

        Inputs of a fixed size called batch 8 would be one item counted eight times.
        """
        if batch == 1 or not self.spec or BATCH in self.axes:
            return True
        leading = [each.shape[0] for each in self.spec.values() if each.shape]
        return bool(leading) and all(each == batch for each in leading)


def given(block: object, place: Place, *, folders: Sequence[Path]) -> Given:
    """Return the inputs that the block specifies, by name.

    `{npz: FILE}` takes them from a file below one of the folders; further entries then say which
    arrays have `batch` as their leading axis. A name alone is that of a manifest, see `manifest`.
    Raises Refused for anything else.
    """
    if isinstance(block, str):
        return _from_manifest(reading.text(block, place, thing="a manifest"), place, folders)
    said = reading.mapping(block, place)
    if isinstance(said.get("npz"), str):
        named = reading.text(said["npz"], place.key("npz"), thing="a file")
        file = _find(named, place.key("npz"), folders)
        rest = {name: each for name, each in said.items() if name != "npz"}
        return _from_npz(file, rest, place)
    spec = {
        reading.text(name, place, thing="the name of an input"): _tensor(each, place.key(name))
        for name, each in said.items()
    }
    return Given(spec=spec)


def _tensor(block: object, place: Place) -> Tensor:
    said = reading.mapping(block, place, known=_KEYS)
    if "shape" not in said:
        raise place.refused("no shape", hint="for example {shape: [batch, 3, 224, 224]}")
    dtype = reading.one_of(
        said.get("dtype", "float32"), place.key("dtype"), thing="dtype", known=DTYPES
    )
    drawn = [key for key in ("low", "high") if key in said]
    if drawn and "int" not in dtype:
        raise place.key(drawn[0]).refused(f"{dtype} is drawn from a standard normal")
    least, most = RANGES.get(dtype, (0, 1))
    low = reading.whole(said.get("low", 0), place.key("low"), low=least, high=most)
    shape = _shape(said["shape"], place.key("shape"))
    if "high" not in said:
        if "int" in dtype and dtype != "uint8":
            example = f"for example {{shape: [batch, 64], dtype: {dtype}, high: 32000}}"
            raise place.refused(f"{dtype} is drawn from [low, high), and has no high", hint=example)
        return Tensor(shape=shape, dtype=dtype, low=low)
    high = reading.whole(said["high"], place.key("high"), low=low + 1, high=most)
    return Tensor(shape=shape, dtype=dtype, low=low, high=high)


def _shape(block: object, place: Place) -> tuple[int | str, ...]:
    if not isinstance(block, list):
        raise place.refused(f"expected a list, got {reading.kind_of(block)}")
    if len(block) > _MOST_AXES:
        raise place.refused(f"more than {_MOST_AXES} axes")
    return tuple(_dimension(each, place.item(index)) for index, each in enumerate(block))


def _dimension(each: object, place: Place) -> int | str:
    if not isinstance(each, str):
        return reading.whole(each, place, low=1)
    if not each.isidentifier() or (each in FIXED and each != BATCH):
        raise place.refused(f"{reading.short(each)} cannot be the name of an axis")
    return each


def _sized(tensor: Tensor, values: Mapping[str, int]) -> Tensor:
    shape = tuple(
        values[each] if isinstance(each, str) and each != BATCH else each for each in tensor.shape
    )
    return Tensor(shape=shape, dtype=tensor.dtype, low=tensor.low, high=tensor.high)


# ── arrays from a file ───────────────────────────────────────────────────────────────────────────


def _find(name: str, place: Place, folders: Sequence[Path]) -> Path:
    for folder in folders:
        if os.path.isfile(folder / name):
            return Path(os.path.normpath(folder / name))
    looked = " and ".join(dict.fromkeys(str(each) for each in folders))
    raise place.refused(f"no file {reading.short(name)}", hint=f"looked in {looked}")


def _from_npz(file: Path, rest: Mapping[str, object], place: Place) -> Given:
    spec = _arrays(file, place.key("npz"))
    for name, block in rest.items():
        here = place.key(name)
        if name not in spec:
            raise here.unknown(name, thing="array", known=list(spec))
        said = reading.mapping(block, here, known=("shape",))
        shape = _shape(said.get("shape"), here.key("shape"))
        stored = spec[name].shape
        if shape[:1] != (BATCH,) or shape[1:] != stored[1:] or not stored:
            what = f"the array has shape {_shown(stored)}"
            wanted = _shown((BATCH, *stored[1:]))
            raise here.key("shape").refused(what, hint=f"write {wanted} to fit it to the batch")
        spec[name] = Tensor(shape=shape, dtype=spec[name].dtype)
    return Given(spec=spec, digest=arrays.digest(file), source=file)


def _from_manifest(named: str, place: Place, folders: Sequence[Path]) -> Given:
    """Return the samples of a manifest as a batch; its arrays are written as those of a sweep."""
    if named.endswith(".npz"):
        raise place.refused(
            f"{reading.short(named)} is no manifest", hint=f"write {{npz: {named}}}"
        )
    file = _find(named, place, folders)
    block, here = manifest.drawn_block(file, name=named)
    drawn = {
        name: _tensor(each, here.key(name)) for name, each in reading.mapping(block, here).items()
    }
    for name, tensor in drawn.items():
        if axes := [each for each in tensor.shape if isinstance(each, str)]:
            what = f"the axis {axes[0]!r} of a sample has no value"
            raise here.key(name).refused(what, hint="write numbers; the batch is the samples")
        if tensor.dtype == "bfloat16":
            what, why = "a sample cannot be of type bfloat16", "numpy, which packs it, has no such"
            hint = "write float32: `precision: bf16` casts what the model is called with"
            raise here.key(name).refused(what, why=why, hint=hint)
    found = manifest.staged(file, name=named, dtypes=DTYPES, drawn=drawn)
    spec = {
        name: Tensor(shape=(BATCH, *shape), dtype=dtype)
        for name, (shape, dtype) in found.shapes.items()
    }
    return Given(spec=spec, digest=found.digest, source=found.data, samples=found.ids)


def _arrays(file: Path, place: Place) -> dict[str, Tensor]:
    """Return the shapes and dtypes of an NPZ, each array read once: a damaged one is found here."""
    try:
        found = arrays.load(file, name=file.name)
    except Refused as error:
        raise place.refused(error.what, why=error.why, hint=error.hint) from error
    for name, array in found.items():
        if array.dtype.name not in DTYPES:
            raise place.refused(f"array {name!r} is of type {array.dtype}", known=DTYPES)
    return {
        name: Tensor(shape=array.shape, dtype=array.dtype.name) for name, array in found.items()
    }


def _shown(shape: tuple[int | str, ...]) -> str:
    return f"[{', '.join(str(each) for each in shape)}]"
