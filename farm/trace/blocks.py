"""The layer CSV: blocks of six columns, each under the same header, in one file that only grows.

    layer,time_pct,average_ms,median_ms,std_dev,total_ms

Each run appends a block (S0.22, S0.23). Nothing in the file says which run a block is: that stands
beside it (`farm.trace.sidecar`). Other tools write such files too, and they are read as well.
"""

import csv
import hashlib
import io
import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from farm import commas
from farm.errors import Bad
from farm.schema import LayerTable

COLUMNS: Final = ("layer", "time_pct", "average_ms", "median_ms", "std_dev", "total_ms")
HEADER: Final = ",".join(COLUMNS)
# No time, in ms, and no sum of the times of any file is more than a float can hold.
MOST_MS: Final = 1e300
_MARK: Final = "\ufeff"  # what some spreadsheets put before everything


class BlockRow(Struct, frozen=True, kw_only=True):
    """One layer as a CSV shows it, in percent and ms; None is an empty cell."""

    layer: str
    share_pct: float
    average_ms: float
    median_ms: float | None
    std_ms: float | None
    total_ms: float


class Block(NamedTuple):
    """The rows of one run; offset: of its header in the file; text: as it stands there."""

    rows: list[BlockRow]
    offset: int
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def rows_of(table: LayerTable) -> list[BlockRow]:
    """Return the rows of a table as a CSV holds them, unrounded."""
    return [
        BlockRow(
            layer=each.layer,
            share_pct=each.share_pct,
            average_ms=each.average_ms,
            median_ms=each.median_ms,
            std_ms=each.std_ms,
            total_ms=each.total_ms,
        )
        for each in table.rows
    ]


def text(rows: Sequence[BlockRow], *, iterations: int) -> str:
    """Return a block: its header and a line for each row, in their order.

    Shares have one decimal, all else four, in ms; what is unknown is an empty cell. The average
    times the iterations is within iterations/2 · 10⁻⁴ of the total, as they are printed (S0.20).
    """
    return commas.line(COLUMNS) + "".join(
        commas.line(
            (
                each.layer,
                f"{each.share_pct:.1f}",
                f"{each.average_ms:.4f}",
                _cell(each.median_ms),
                _cell(each.std_ms),
                _total(each, iterations),
            )
        )
        for each in rows
    )


def split(content: str, *, name: str) -> list[Block]:
    """Return the blocks of a layer CSV; name: of the file, for messages.

    Lines end with or without a carriage return, and a quoted name may hold line breaks. Raises
    Bad if there is no block, if a block has no row, or if a cell holds no number.
    """
    found = [_block(*each, name=name) for each in _pieces(content, name)]
    if not found:
        raise Bad(f"{name} is empty", why="there is no layer in it")
    return found


def is_layers(content: str) -> bool:
    """Whether it begins as a layer CSV does."""
    return _plain(next(iter(io.StringIO(content, newline="")), "")) == HEADER


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _total(row: BlockRow, iterations: int) -> str:
    """Return the total, rounded so that the printed average stands for it.

    To the nearest, unless that and the rounding of the average add up to more than half a digit
    of each iteration: one row in 4·iterations; it is rounded to its other neighbour.
    """
    said = round(float(f"{row.average_ms:.4f}") * 10_000) * iterations
    nearest = f"{row.total_ms:.4f}"
    if abs(said - round(float(nearest) * 10_000)) * 2 <= iterations:
        return nearest
    total = row.total_ms * 10_000
    return f"{(math.ceil(total) if said > total else math.floor(total)) / 10_000:.4f}"


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def _plain(line: str) -> str:
    return line.removeprefix(_MARK).rstrip("\r\n")


def _pieces(content: str, name: str) -> Iterator[tuple[int, int, str]]:
    """Yield each block as the number of its first line, its offset in bytes, and its text.

    A header counts where no quoted cell is open, since a layer may be called anything.
    """
    first, begin, offset, quoted = 0, 0, 0, False
    lines: list[str] = []
    # the csv module ends a line at the same signs, and at no others
    for number, line in enumerate(io.StringIO(content, newline=""), start=1):
        if not quoted and _plain(line) == HEADER:
            if lines:
                yield first, begin, "".join(lines)
            first, begin, lines = number, offset, [line]
        elif lines:
            lines.append(line)
        elif _plain(line):
            raise Bad(f"{name}: line {number} stands before any header", why=f"expected {HEADER}")
        quoted ^= line.count('"') % 2 == 1
        offset += len(line.encode())
    if lines:
        yield first, begin, "".join(lines)


def _block(first: int, offset: int, piece: str, *, name: str) -> Block:
    reader = csv.reader(io.StringIO(piece, newline=""), strict=True)
    rows = []
    try:
        for at, cells in enumerate(reader):
            if at and cells:
                rows.append(_row(cells, f"{name}: line {first + reader.line_num - 1}"))
    except csv.Error as error:
        where = first + reader.line_num - 1
        raise Bad(f"{name}: line {where} is no CSV", why=str(error)) from error
    if not rows:
        raise Bad(f"{name}: the block at line {first} has no layer")
    return Block(rows, offset, piece)


def _row(cells: Sequence[str], where: str) -> BlockRow:
    if len(cells) != len(COLUMNS):
        raise Bad(f"{where} has {len(cells)} cells", why=f"expected {len(COLUMNS)}: {HEADER}")
    layer, share, average, middle, spread, total = cells
    return BlockRow(
        layer=layer,
        share_pct=_share(share, where),
        average_ms=_number(average, where),
        median_ms=_number(middle, where) if middle.strip() else None,
        std_ms=_number(spread, where) if spread.strip() else None,
        total_ms=_number(total, where),
    )


def _share(cell: str, where: str) -> float:
    value = _number(cell, where)
    if value > 100:
        raise Bad(f"{where}: a share of {cell} %", why="no layer takes more than all of the time")
    return value


def _number(cell: str, where: str) -> float:
    try:
        # Python reads digits of any script, and underscores between them; no tool writes those
        value = float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Bad(f"{where}: {cell!r} is no number")
    if value < 0:
        raise Bad(f"{where}: {cell!r} is negative", why="no layer takes less than no time")
    if value >= MOST_MS:
        raise Bad(f"{where}: {cell!r} is no time", why="no layer takes that long")
    return value
