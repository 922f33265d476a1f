"""One stream: whether it is a terminal, whether it is coloured, and what a closed end means.

The door to rich, which is imported only where something is coloured or redrawn.
"""

import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TextIO

from farm.console.layout import Pieces
from farm.errors import Unreachable
from farm.report import words

if TYPE_CHECKING:
    from rich.live import Live

Color = Literal["auto", "always", "never"]

MOST_COLUMNS: Final = 100
_INDENT: Final = "  "


class Stream:
    """A stream to write on. ends_program: whether a reader that went away ends the program."""

    def __init__(
        self,
        file: TextIO,
        *,
        color: Color,
        environ: Mapping[str, str],
        columns: int | None,
        ends_program: bool,
    ) -> None:
        self._file = file
        self._ends_program = ends_program
        self._closed = False
        self.is_terminal = file.isatty()
        plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
        self.is_coloured = color == "always" or (color == "auto" and self.is_terminal and not plain)
        wide, self.height = _size(file)
        asked = re.fullmatch("[0-9]{1,9}", environ.get("COLUMNS", ""))
        self.width = min(MOST_COLUMNS, columns or (int(asked[0]) if asked else 0) or wide)

    def wrapped(self, text: str, *, style: str = "") -> list[Pieces]:
        """Return the lines of a text, broken between words where the terminal is too narrow."""
        lines = words.visible(text, lines=True).split("\n")
        if not self.is_terminal:
            return [[(each, style)] for each in lines]
        return [
            [(part, style)]
            for each in lines
            for part in textwrap.wrap(each, self.width, subsequent_indent=_INDENT) or [""]
        ]

    def line(self, pieces: Pieces) -> None:
        self.write(self._inked(pieces) + "\n")

    def write(self, text: str) -> None:
        """Write and flush; where the reader went away, end the program quietly or write no more."""
        if self._closed:
            return
        try:
            self._file.write(self._spelled(text))
            self._file.flush()
        except BrokenPipeError:
            self._closed = True
            with suppress(OSError, ValueError):  # else Python complains when it flushes at the end
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())
            if self._ends_program:
                sys.exit(0)
        except OSError as error:
            self._closed = True
            if self._ends_program:  # a result that nobody gets is no success; a remark may be lost
                why = error.strerror or ""
                raise Unreachable("cannot write to standard output", why=why) from error

    def live(self) -> "Live":
        """Return a view that is drawn again in place, on a terminal."""
        from rich.console import Console
        from rich.live import Live

        terminal = Console(
            file=self._file,
            width=self.width,
            force_terminal=True,
            no_color=not self.is_coloured,
            highlight=False,
            markup=False,
            emoji=False,
        )
        return Live(console=terminal, auto_refresh=False, transient=True)

    def redraw(self, view: "Live", lines: Sequence[Pieces]) -> None:
        """Draw the lines in place of those that the view shows."""
        from rich.text import Text

        text = Text(no_wrap=True, overflow="ellipsis")
        for at, line in enumerate(lines):
            text.append("\n" if at else "")
            for piece, style in line:
                text.append(piece, style=style)
        view.update(text, refresh=True)

    def _inked(self, pieces: Pieces) -> str:
        if not self.is_coloured:
            return "".join(text for text, _ in pieces).rstrip()
        from rich.style import Style

        return "".join(
            Style.parse(style).render(text) if style and text else text for text, style in pieces
        ).rstrip()

    def _spelled(self, text: str) -> str:
        """Return the text in characters that the stream can write."""
        encoding = getattr(self._file, "encoding", None) or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            return text.encode(encoding, "backslashreplace").decode(encoding)
        return text


def _size(file: TextIO) -> tuple[int, int]:
    """Return the columns and lines of the terminal, or of an ordinary one if there is none."""
    with suppress(OSError, ValueError):
        size = os.get_terminal_size(file.fileno())
        if size.columns and size.lines:
            return size.columns, size.lines
    return MOST_COLUMNS, 24
