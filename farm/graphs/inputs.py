"""What a graph is called with: its inputs as a specification, and whether others would fit them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from farm.errors import Refused, did_you_mean
from farm.graphs.graph import Port
from farm.schema import Tensor

BATCH: Final = "batch"
_BATCHES: Final = re.compile(r"n|bs?|.*batch.*", re.IGNORECASE)
# What an exporter calls an axis when nobody told it a name.
_MADE_UP: Final = re.compile(
    r"unk__\d+|[su]\d+|none|\w*dim_?\d+|\w*dynamic_axes_\d+", re.IGNORECASE
)
# Axes of every sweep: no other axis can have their names.
_TAKEN: Final = ("model", "precision", "device", "backend", "mode", "environment")
# Numbers that can be drawn without a word about them; other integers mean something to a model.
_DRAWN: Final = ("float16", "float32", "float64", "bool", "uint8")
_BOUNDED: Final = ("int8", "int16", "int32", "int64")


def spec(ports: Iterable[Port], *, model: str) -> dict[str, Tensor]:
    """Return the inputs of a graph as a sweep specifies them; open axes stay names.

    An axis called like a batch is `batch`, and so is an open first one without a name, where no
    other axis of that input is. Raises Refused, with what to write, where the graph leaves
    something open: an axis without a name, the range of integers.
    """
    ports = list(ports)
    found: dict[str, Tensor] = {}
    for port in ports:
        shape = _shape(port)
        doubt = _doubt(port, shape)
        if shape is None or doubt:
            raise Refused(
                f"input {port.name!r} of {model} {doubt}",
                hint=f"say it: inputs: {{{', '.join(_said(each) for each in ports)}}}",
            )
        found[port.name] = Tensor(shape=shape, dtype=port.dtype)
    return found


def check(
    ports: Sequence[Port], given: Mapping[str, Tensor], *, model: str, batch: int
) -> dict[str, str]:
    """Return which given input goes where: its name by the port's.

    By name; by order where no name is known and their number is right. Floats are cast, so any of
    them fit. Raises Refused naming the input that nobody takes or gives, or that does not fit.
    """
    names = [each.name for each in ports]
    if len(given) == len(names) and not set(given) & set(names):
        named = dict(zip(names, given, strict=True))
    else:
        named = {name: name for name in names}
        if unknown := [name for name in given if name not in named]:
            known = ", ".join(names) or "nothing"
            raise Refused(
                f"{model} takes no input {unknown[0]!r}",
                why=f"it takes {known}",
                hint=did_you_mean(unknown[0], names),
            )
        if missing := [name for name in names if name not in given]:
            raise Refused(f"{model} needs an input {missing[0]!r}", why=f"given: {_listed(given)}")
    for port in ports:
        _check_one(port, given[named[port.name]], model=model, batch=batch)
    return named


def _check_one(port: Port, tensor: Tensor, *, model: str, batch: int) -> None:
    name = f"input {port.name!r} of {model}"
    floats = "float" in port.dtype and "float" in tensor.dtype
    if port.dtype and tensor.dtype != port.dtype and not floats:
        raise Refused(f"{name} is {port.dtype}, not {tensor.dtype}")
    if port.shape is None:
        return
    if len(port.shape) != len(tensor.shape):
        raise Refused(
            f"{name} has {len(port.shape)} axes, not {len(tensor.shape)}",
            why=f"its shape is {_shown(port.shape)}",
        )
    for wanted, said in zip(port.shape, tensor.shape, strict=True):
        length = batch if said == BATCH else said
        if isinstance(wanted, int) and isinstance(length, int) and wanted != length:
            raise Refused(
                f"{name} cannot have the shape {_shown(tensor.shape)}"
                + (f" at batch {batch}" if BATCH in tensor.shape else ""),
                why=f"the graph fixes it at {_shown(port.shape)}",
            )


def _shape(port: Port) -> tuple[int | str, ...] | None:
    """Return the shape with `batch` and the names of open axes; None if one cannot be named."""
    if port.shape is None:
        return None
    found = _axes(port.shape)
    return None if None in found else tuple(each for each in found if each is not None)


def _axes(shape: tuple[int | str | None, ...]) -> list[int | str | None]:
    batched = any(isinstance(each, str) and _BATCHES.fullmatch(each) for each in shape)
    found: list[int | str | None] = []
    for at, axis in enumerate(shape):
        if isinstance(axis, int):
            found.append(axis)
        elif axis is not None and _BATCHES.fullmatch(axis):
            found.append(BATCH)
        elif axis is not None and axis.isidentifier() and not _MADE_UP.fullmatch(axis):
            found.append(None if axis in _TAKEN else axis)
        else:
            found.append(BATCH if at == 0 and not batched else None)
    return found


def _doubt(port: Port, shape: tuple[int | str, ...] | None) -> str:
    """Return what cannot be told from the graph alone, or ""."""
    if not port.dtype:
        return "is no tensor"
    if port.dtype not in (*_DRAWN, *_BOUNDED):
        return f"is {port.dtype}, which cannot be made here"
    if port.shape is None:
        return "has no shape in the graph"
    if shape is None:
        return f"has an axis of any length without a name: {_shown(port.shape)}"
    if port.dtype in _BOUNDED:
        return f"is {port.dtype}, and the graph does not say which numbers it takes"
    return ""


def _said(port: Port) -> str:
    """Return an input as one would write it in a sweep, with words where one fills something in."""
    axes = [] if port.shape is None else _axes(port.shape)
    shape = ", ".join("LENGTH" if each is None else str(each) for each in axes)
    if port.shape is None:
        shape = "batch, …"
    dtype = "" if port.dtype == "float32" else f", dtype: {port.dtype}"
    bound = ", high: N" if port.dtype in _BOUNDED else ""
    name = port.name if re.fullmatch(r"[\w./-]+", port.name) else json.dumps(port.name)
    return f"{name}: {{shape: [{shape}]{dtype}{bound}}}"


def _shown(shape: Iterable[int | str | None]) -> str:
    return f"[{', '.join('?' if each is None else str(each) for each in shape)}]"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
