"""A table as lines of styled pieces, cut to a width or whole."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from farm.report import words

if TYPE_CHECKING:
    from farm.report.table import Column, Table

Pieces = Sequence[tuple[str, str]]  # text and style

_GAP: Final = "  "
_LEAST: Final = 8  # a column of names is cut to no less
_STYLES: Final = {"good": "green", "warn": "yellow", "bad": "bold red", "quiet": "dim"}


def drawn(table: "Table", *, limit: int | None) -> Iterator[Pieces]:
    """Yield the title, the header and the rows of a table as lines of styled pieces.

    limit: the columns there are, None for as many as it takes. Within a limit, text is cut with an
    ellipsis, numbers never are.
    """
    shown = [[words.visible(each.text) for each in row] for row in table.rows]
    headers = [words.visible(each.header) for each in table.columns]
    widths = _widths(table.columns, [headers, *shown], limit=limit)
    if table.title:
        yield [(words.visible(table.title), "bold")]
    yield _row(table.columns, headers, widths, ["bold" if limit else ""] * len(headers))
    if limit:
        yield [("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)), "dim")]
    for texts, row in zip(shown, table.rows, strict=True):
        yield _row(table.columns, texts, widths, [_STYLES.get(each.tone, "") for each in row])


def _row(
    columns: "Sequence[Column]", texts: Sequence[str], widths: Sequence[int], styles: Sequence[str]
) -> Pieces:
    pieces: list[tuple[str, str]] = []
    for at, (column, text, width, style) in enumerate(
        zip(columns, texts, widths, styles, strict=True)
    ):
        kept = cut(text, width)
        blank = " " * (width - cells(kept))
        if at:
            pieces.append((_GAP, ""))
        last = at == len(columns) - 1
        pieces += [(blank, ""), (kept, style)] if column.right else [(kept, style)]
        if not column.right and not last:
            pieces.append((blank, ""))
    return pieces


def _widths(
    columns: "Sequence[Column]", rows: Sequence[Sequence[str]], *, limit: int | None
) -> list[int]:
    widths = [max(cells(row[at]) for row in rows) for at in range(len(columns))]
    if limit is None:
        return widths
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - limit
    while excess > 0:
        cuttable = [at for at, column in enumerate(columns) if column.cut and widths[at] > _LEAST]
        if not cuttable:
            break  # numbers are worth more than a tidy edge
        widest = max(cuttable, key=lambda at: widths[at])
        others = [widths[at] for at in cuttable if at != widest]
        step = min(excess, max(1, widths[widest] - max(others, default=_LEAST)))
        widths[widest] -= min(step, widths[widest] - _LEAST)
        excess -= step
    return widths


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def cut(text: str, width: int) -> str:
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for each in text:
        used += _width(each)
        if used >= width:
            break
        kept.append(each)
    return "".join(kept).rstrip() + "…"


def _width(character: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.combining(character) or unicodedata.category(character) == "Me":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
