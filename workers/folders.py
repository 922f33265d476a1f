"""What the children of an attempt leave on this disk: records, arrays, what they printed.

A repeat that ended lies in a folder of its own until the profile is stored, so that the next
attempt takes it over.
"""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from farm import npz, schema
from farm.errors import Bad
from farm.schema import Captured, LayerTable
from farm.trace import blocks
from workers.figures import Arrays
from workers.record import OUTPUT, TRACE, Record

INSTRUMENTED: Final = "instrumented"  # the folder of that child
LAYERS: Final = "layers.csv"
LAYER_TABLE: Final = "layer_table.json"
CAPTURED: Final = "captured.json"
TELEMETRY: Final = "telemetry.npz"
Columns = Mapping[str, Sequence[float | int | None]]  # by sensor, None where it gave no number
_ONCE: Final = ("layer_ns", "profiled_ns", "clean_ns")  # arrays of the instrumented child


def repeat(index: int) -> str:
    """Return the name of the folder of a repeat."""
    return f"repeat-{index}"


def keep(folder: Path, record: Record, neighbours: Sequence[str]) -> None:
    """Write the record of a child that ended well, whole or not at all."""
    partial = folder / ".record.tmp"
    kept = {"record": msgspec.to_builtins(record), "neighbours": list(neighbours)}
    partial.write_text(json.dumps(kept))
    partial.rename(folder / "record.json")


def read(folder: Path) -> tuple[Record, Arrays, tuple[str, ...]] | None:
    """Return what a child left: record, arrays, who disturbed it; None unless it is all there."""
    try:
        kept = json.loads((folder / "record.json").read_text())
        record = msgspec.convert(kept["record"], Record)
        arrays = _arrays(folder / "samples.npz")
        who = tuple(str(each) for each in kept["neighbours"])
    except (OSError, ValueError, KeyError, Bad, msgspec.ValidationError):
        return None
    return record, arrays, who


def keep_table(folder: Path, table: LayerTable) -> None:
    """Write the layer table of an attempt, as a document and as the CSV that people exchange."""
    text = blocks.text(blocks.rows_of(table), iterations=table.iterations)
    for name, data in ((LAYER_TABLE, schema.encode(table)), (LAYERS, text.encode())):
        _put(folder / name, data)


def keep_captured(folder: Path, found: Captured) -> None:
    """Write what a capture found beside its trace."""
    _put(folder / CAPTURED, schema.encode(found))


def trace(folder: Path) -> Path | None:
    """Return the trace that an attempt left, None for none: what a broken child left is none."""
    file = folder / INSTRUMENTED / TRACE
    if not (file.exists() and (folder / CAPTURED).exists()):
        return None
    kept = read(folder / INSTRUMENTED)
    return file if kept is not None and kept[0].trace is not None else None


def _put(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.tmp")
    partial.write_bytes(data)
    partial.rename(path)


def output(folder: Path) -> Path | None:
    """Return the output that an attempt kept, None for none.

    It is that of its first repeat that ended well with one, else of the instrumented child.
    """
    children = [*_repeats(folder), folder / INSTRUMENTED]
    ended = [each for each in children if (each / "record.json").exists()]
    return next((each / OUTPUT for each in ended if (each / OUTPUT).exists()), None)


def _repeats(folder: Path) -> list[Path]:
    """Return the folders of the repeats, in their order."""
    return sorted(folder.glob("repeat-*"), key=_index)


def _index(folder: Path) -> int:
    return int(folder.name.removeprefix("repeat-"))


def _arrays(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return npz.read(file, called=repr(path.name), raises=Bad)


def merged_samples(folder: Path) -> bytes:
    """Return one npz with the arrays of every repeat, named `<array>_<repeat>`; b"" for none.

    Those of the layer pass have no number: there is one.
    """
    arrays: dict[str, Any] = {}
    for each in _repeats(folder):
        if (each / "samples.npz").exists():
            of_repeat = _arrays(each / "samples.npz").items()
            arrays |= {f"{name}_{_index(each)}": found for name, found in of_repeat}
    if (folder / INSTRUMENTED / "samples.npz").exists():
        found = _arrays(folder / INSTRUMENTED / "samples.npz")
        arrays |= {name: found[name] for name in _ONCE if name in found}
    return _packed(arrays)


def _packed(arrays: Arrays) -> bytes:
    if not arrays:
        return b""
    out = io.BytesIO()
    npz.write(out, arrays, compressed=True)
    return out.getvalue()


def keep_telemetry(folder: Path, columns: Columns) -> None:
    """Write the samples of a repeat's device beside what its child left; nothing without any."""
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        known = np.array([each is not None for each in values])
        if known.any():
            arrays[name] = np.array([each or 0 for each in values])
            arrays[f"{name}_valid"] = known
    if arrays:
        npz.save(folder / TELEMETRY, arrays)


def merged_telemetry(folder: Path) -> bytes:
    """Return one npz with the samples of the device in each repeat, as `<sensor>_<repeat>`.

    at_ns is of CLOCK_MONOTONIC; `<sensor>_valid_<repeat>` says which of its numbers are ones. b""
    for none.
    """
    arrays: dict[str, Any] = {}
    for each in _repeats(folder):
        if (each / TELEMETRY).exists() and (each / "record.json").exists():
            found = _arrays(each / TELEMETRY).items()
            arrays |= {f"{name}_{_index(each)}": array for name, array in found}
    return _packed(arrays)


def merged_log(folder: Path) -> bytes:
    """Return what the children of the attempt printed, repeat after repeat."""
    parts = []
    logs = [each / "output.log" for each in (*_repeats(folder), folder / INSTRUMENTED)]
    for each in filter(Path.exists, logs):
        parts.append(f"── {each.parent.name} ──\n".encode() + each.read_bytes())
    return b"\n".join(parts)
