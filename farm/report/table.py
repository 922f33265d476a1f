"""What every table is, before any ink: columns, and cells of a text, a value and a tone."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "warn", "bad", "quiet"]


@dataclass(frozen=True, slots=True)
class Datum:
    """One cell of a table.

    text: what is shown. value: what it sorts by, None where there is none. tone: how it is meant;
    the text says it too. why: the reason of a mark or of a missing number.
    """

    text: str
    value: float | str | None = None
    tone: Tone = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """right: numbers, which stand flush right. cut: free text, which a narrow terminal may cut.
    spare: a column that a terminal too narrow for all leaves out, the largest first; 0 never.
    """

    title: str
    unit: str = ""
    right: bool = False
    cut: bool = False
    spare: int = 0

    @property
    def header(self) -> str:
        return f"{self.title} {self.unit}" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of as many cells as there are columns, and the notes that explain their marks."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Datum, ...], ...]
    notes: tuple[str, ...] = ()


def words(text: str, *, tone: Tone = "", why: str = "") -> Datum:
    """Return a cell that sorts by its text."""
    return Datum(text, text, tone, why)
