"""What a file means: a trace, an analysis that was kept, or the layers that another tool timed.

What a file is, its content tells. It is read once, since a pipe gives its bytes only once.
"""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from farm import schema
from farm.errors import Bad, NoResult, Refused, did_you_mean
from farm.reading import short
from farm.trace import sniffing
from farm.trace.analysis.analysing import Analysed, analysed
from farm.trace.analysis.known import Known
from farm.trace.analysis.record import Analysis
from farm.trace.files import LIMIT_BYTES, Address
from farm.trace.importing import layered, libreyolo
from farm.trace.importing.record import LayerProfile
from farm.trace.reading import reader
from farm.trace.reading.inflating import chunks
from farm.trace.reading.tally import Tally
from farm.trace.sniffing import BOM, Kind

_ORIGINAL: Final = "libreyolo."
_PIECE: Final = 1 << 20
_TABLES: Final[Mapping[str, Callable[[bytes, Address], LayerProfile]]] = {
    "TensorRT": layered.tensorrt,
    "ONNX Runtime": layered.onnxruntime,
    "": layered.layer_csv,
}


class Opened(NamedTuple):
    """An analysis by the name of its file; made: what it was made of, None of a kept document."""

    name: str
    analysis: Analysis
    made: Analysed | None


def opened(path: Path, *, file: io.BufferedReader | None = None) -> Opened:
    """Return the analysis of a file: a Chrome trace, plain or gzip, or a `profile.json`.

    file: what is open of it already, at its beginning; it is closed. Raises Refused if it cannot be
    read or tells of layers alone, Bad if nothing in it can be analysed.
    """
    found = read(Address(path, None), file=file)
    if isinstance(found, LayerProfile):
        raise lacking(found, "the events of a trace")
    return found


def read(
    where: Address,
    *,
    file: io.BufferedReader | None = None,
    name: str = "",
    known: Known | None = None,
) -> Opened | LayerProfile:
    """Return the analysis of a file, or the layers that it tells of: one of its blocks.

    name: what the file is called, if not by its path; known: what the capture of a trace knows
    better. Raises as `opened` does, and NoResult for a block that a layer CSV does not have.
    """
    path = where.path
    name = name or str(path)
    try:
        with file or path.open("rb") as whole:
            return _of(whole, where, name, known)
    except Bad as error:
        what = f"{short(name, limit=200)} cannot be analysed"
        raise Bad(what, why=str(error), hint=error.hint) from error
    except FileNotFoundError as error:
        raise Refused(
            f"no file {short(name)}", hint=did_you_mean(path.name, _near(path))
        ) from error
    except (OSError, ValueError) as error:
        why = (error.strerror or "") if isinstance(error, OSError) else str(error)
        raise Refused(f"cannot read {short(name)}", why=why) from error


def lacking(found: LayerProfile, what: str) -> Refused:
    """Return the error for a verb that needs what no layer profile tells."""
    kind = f"a layer profile of {found.tool}" if found.tool != "layer CSV" else "a layer CSV"
    hint = "`farm profile summary`, `kernels` and `compare` read it"
    return Refused(f"{short(found.trace)} is {kind}", why=f"it does not tell {what}", hint=hint)


def _of(
    file: io.BufferedReader, where: Address, name: str, known: Known | None
) -> Opened | LayerProfile:
    kind, whole = sniffing.begun(file)
    if kind.sort in ("layers", "csv"):
        if kind.sort == "layers" and where.number not in (None, 1):
            raise NoResult(f"no block {where.number} in {short(name)}", why="it has 1")
        return _TABLES[kind.of](_content(whole), where)
    if where.number is not None:
        raise Refused(f"{short(f'{name}#{where.number}')} names no block", why="it has none")
    if kind.sort in ("analysis", "document"):
        return Opened(name, _kept(kind, whole), None)
    made = analysed(reader.of(whole), name=name, known=known)
    return Opened(name, made.analysis, made)


def _kept(kind: Kind, whole: io.BufferedReader) -> Analysis:
    """Return the analysis in a document; raises Bad if that is of another kind."""
    if kind.sort == "document":
        raise Bad(f"it is a document of schema {kind.of!r}", why="that is no trace")
    data = _content(whole).removeprefix(BOM)
    if kind.of.startswith(_ORIGINAL):
        return libreyolo.imported(data)
    return schema.decode(data, Analysis)


def _content(whole: io.BufferedReader) -> bytes:
    """Return all of a file, unpacked; raises Bad for what no document is as large as."""
    pieces, size = [], 0
    for piece in chunks(whole, Tally(), size=_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > LIMIT_BYTES:
            raise Bad(f"it is larger than {LIMIT_BYTES >> 20} MiB", why="no trace is read whole")
    return b"".join(pieces)


def _near(path: Path) -> list[str]:
    try:
        return sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return []
