"""What the reader says of a trace, in words that do not depend on how it numbers anything."""

import io
from pathlib import Path
from typing import Final, NamedTuple

from farm.trace.reading import columns, reader
from farm.trace.reading.columns import ABSENT
from tests.farm.trace.generating import Made, Memory, Row

WORDS: Final = {
    columns.KERNEL: "kernel",
    columns.MEMCPY: "memcpy",
    columns.MEMSET: "memset",
    columns.RUNTIME: "runtime",
    columns.DRIVER: "driver",
    columns.OP: "op",
    columns.ANNOTATION: "annotation",
}


class Told(NamedTuple):
    """All a trace says; rows and memory in order."""

    rows: list[Row]
    memory: list[Memory]
    categories: dict[str, int]
    keys: dict[str, object]
    repaired: dict[str, int]
    dropped: dict[str, int]


def opened(path: Path, *, chunk: int = reader.CHUNK) -> reader.Trace:
    """Return the trace in a file."""
    with path.open("rb") as file:
        return reader.of(file, chunk=chunk)


def told(trace: reader.Trace) -> Told:
    """Return what a trace says."""
    columns_ = [each.tolist() for each in trace.events]
    rows = [
        Row(
            kind=WORDS[kind],
            name=trace.names[name],
            start=start,
            end=end,
            lane=tuple(trace.lanes[lane]),
            correlation=correlation,
            external=external,
            occupancy=None if occupancy != occupancy else occupancy,
        )
        for start, end, kind, name, lane, correlation, external, occupancy in zip(
            *columns_, strict=True
        )
    ]
    memory = [
        Memory._make(None if each == ABSENT else each for each in row)
        for row in zip(*(each.tolist() for each in trace.allocations), strict=True)
    ]
    return Told(
        rows=sorted(rows, key=repr),
        memory=sorted(memory, key=repr),
        categories=dict(trace.categories),
        keys=dict(trace.keys),
        repaired=dict(trace.tally.repaired),
        dropped=dict(trace.tally.dropped),
    )


def read(data: bytes, *, chunk: int = reader.CHUNK) -> Told:
    """Return what the bytes of a file say."""
    return told(reader.of(io.BytesIO(data), chunk=chunk))


def meant(made: Made) -> tuple[list[Row], list[Memory], dict[str, int]]:
    """Return what a made trace has to say, in the same order."""
    return sorted(made.rows, key=repr), sorted(made.memory, key=repr), dict(made.categories)
