"""Layer profiles that other tools wrote as JSON, as the rows of a block.

`trtexec --exportProfile`   a list that begins with {"count": N}, in two forms: newer ones have
                            a median of each layer, older ones have none
ONNX Runtime's profiler     a list of events, see `farm.trace.importing_ort`

Names stay as they are, shares are computed anew. Sources: `traces.md` §11, S0.13.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from farm.errors import Bad, NoResult, Refused
from farm.trace import blocks, files, importing_ort, sidecar
from farm.trace.blocks import BlockRow
from farm.trace.files import Address, Chosen
from farm.trace.layers import numbered
from farm.trace.sidecar import About

KNOWN: Final = "known: what `trtexec --exportProfile` writes, a profile of ONNX Runtime"

_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]")


class Imported(NamedTuple):
    """What a foreign profile holds. iterations: how many each number is over.

    warmup, device, profiled_ms: None where the tool does not tell. clock: what it timed with.
    """

    rows: list[BlockRow]
    iterations: int
    warmup: int | None
    clock: Literal["wall", "device"]
    device: str | None = None
    profiled_ms: float | None = None


def opened(word: str) -> Chosen:
    """Return the layer table that a word means: a block of a layer CSV, or a foreign profile.

    Raises as `read` here and `files.read` do.
    """
    where = files.address(word)
    return chosen(files.content(where.path), where)


def chosen(data: bytes, where: Address) -> Chosen:
    """Return the layer table that an address means of a file that was read.

    Its name tells which kind it is; where that tells nothing, as that of a pipe, its content does.
    Raises as `read` here and `files.read` do.
    """
    suffix = where.path.suffix
    if suffix != ".json" and (suffix == ".csv" or not _JSON.match(data)):
        return files.block(data, where)
    if where.number not in (None, 1):
        raise NoResult(f"no block {where.number} in {str(where.path)!r}", why="it has 1")
    found = of_bytes(data, where.path)
    known = about(found, name=where.path.name, written_at="")
    return Chosen(str(where.path), found.rows, 1, 1, known, "")


def about(found: Imported, *, name: str, written_at: str) -> About:
    """Return what is to stand beside an imported block; name: of the profile that it came from."""
    return About(
        written_at=written_at,
        job_id=None,
        model=name,
        batch=None,
        precision=None,
        device=found.device,
        method="imported",
        clock=found.clock,
        warmup_iterations=found.warmup,
        iterations=found.iterations,
        profiled_ms=found.profiled_ms,
        clean_ms=None,
        perturbation=None,
    )


def read(path: Path) -> Imported:
    """Return the layers of a foreign profile.

    Raises Refused if there is no such file or nothing here reads it, and Bad if it is damaged.
    """
    return of_bytes(files.content(path), path)


def of_bytes(data: bytes, path: Path) -> Imported:
    """Return the layers of a foreign profile that was read; raises as `read` does."""
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise Bad(f"{str(path)!r} is no JSON", why=why) from error
    if isinstance(plain, list) and plain and all(isinstance(each, dict) for each in plain):
        if set(plain[0]) == {"count"}:
            return tensorrt(plain, name=str(path))
        if any(each.get("cat") in ("Session", "Node") for each in plain):
            return _onnxruntime(data, path.name)
    raise Refused(f"{str(path)!r} is no layer profile", why=KNOWN)


def tensorrt(data: Sequence[Mapping[str, Any]], *, name: str) -> Imported:
    """Return what TensorRT's layer profiler exported; its times are those of the device.

    data: the list; layers that took no time are kept. name: of the file, for messages. Raises Bad
    if a number is missing.
    """
    count = data[0]["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= sidecar.MOST:
        raise Bad(f"{name}: count is {count!r}", why="expected how many iterations were profiled")
    layers = data[1:]
    totals = [_number(each, "timeMs", name) for each in layers]
    if not sum(totals):
        raise Bad(f"{name}: no layer took any time")
    titles = numbered(_text(each.get("name", "")) for each in layers)
    rows = [
        BlockRow(
            layer=title,
            share_pct=100.0 * total / sum(totals),
            average_ms=_number(each, "averageMs", name),
            median_ms=_number(each, "medianMs", name) if "medianMs" in each else None,
            std_ms=None,
            total_ms=total,
        )
        for title, total, each in zip(titles, totals, layers, strict=True)
    ]
    return Imported(rows, count, None, "device")


def _onnxruntime(data: bytes, name: str) -> Imported:
    table = importing_ort.table(data, name=name)
    return Imported(
        blocks.rows_of(table),
        table.iterations,
        table.warmup_iterations,
        table.clock,
        table.device,
        table.profiled_ms,
    )


def _text(name: object) -> str:
    """Return a name as it stands, but for halves of characters, which no file can hold."""
    return str(name).encode("utf-8", "replace").decode()


def _number(layer: Mapping[str, Any], key: str, name: str) -> float:
    value = layer.get(key)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (0 <= value < blocks.MOST_MS)
    ):
        raise Bad(f"{name}: {key} of {layer.get('name')!r} is {value!r}", why="expected a number")
    return float(value)
