"""A table as lines of styled pieces, cut to a width or whole."""

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from farm.report import words

if TYPE_CHECKING:
    from farm.report.table import Column, Table

Pieces = Sequence[tuple[str, str]]  # text and style

_GAP: Final = "  "
_LEAST: Final = 8  # a column of names is cut to no less,
_MOST_HEADER: Final = 12  # nor to less than its header, unless that is long as well
_STYLES: Final = {"good": "green", "warn": "yellow", "bad": "bold red", "quiet": "dim"}


class Drawing(NamedTuple):
    """A table as it is shown: lines that fit, and notes that may be broken between words."""

    lines: list[Pieces]
    notes: list[str]


def drawn(table: "Table", *, limit: int | None) -> Drawing:
    """Return the title, the header and the rows of a table, and its notes.

    limit: the columns there are, None for as many as it takes. Within a limit text is cut with an
    ellipsis, then spare columns are left out, which a note names; numbers are never cut.
    """
    shown = [[words.visible(each.text) for each in row] for row in table.rows]
    headers = [words.visible(each.header) for each in table.columns]
    kept, widths = _fitted(table.columns, [headers, *shown], limit=limit)
    columns = [table.columns[at] for at in kept]
    bold = ["bold" if limit else ""] * len(kept)
    lines: list[Pieces] = [[(words.visible(table.title), "bold")]] if table.title else []
    lines.append(_row(columns, [headers[at] for at in kept], widths, bold))
    if limit:
        lines.append([("─" * _total(widths), "dim")])
    for texts, row in zip(shown, table.rows, strict=True):
        styles = [_STYLES.get(row[at].tone, "") for at in kept]
        lines.append(_row(columns, [texts[at] for at in kept], widths, styles))
    left_out = [each for at, each in enumerate(headers) if at not in kept]
    more = [f"no room for: {', '.join(left_out)}"] if left_out else []
    return Drawing(lines, [*table.notes, *more])


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


def _fitted(
    columns: "Sequence[Column]", rows: Sequence[Sequence[str]], *, limit: int | None
) -> tuple[list[int], list[int]]:
    """Return which columns are shown, and how wide."""
    natural = [max(cells(row[at]) for row in rows) for at in range(len(columns))]
    kept = list(range(len(columns)))
    if limit is None:
        return kept, natural
    least = [
        min(width, max(_LEAST, min(cells(header), _MOST_HEADER))) if column.cut else width
        for column, width, header in zip(columns, natural, rows[0], strict=True)
    ]
    spare = sorted((at for at in kept if columns[at].spare), key=lambda at: -columns[at].spare)
    for at in spare:
        if _total([least[each] for each in kept]) <= limit:
            break
        kept.remove(at)
    widths = [natural[at] for at in kept]
    floors = [least[at] for at in kept]
    while (excess := _total(widths) - limit) > 0 and widths != floors:
        loose = [at for at, width in enumerate(widths) if width > floors[at]]
        widest = max(loose, key=lambda at: widths[at])
        others = [widths[at] for at in loose if at != widest]
        step = max(1, widths[widest] - max(others, default=floors[widest]))
        widths[widest] = max(floors[widest], widths[widest] - min(step, excess))
    return kept, widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


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
