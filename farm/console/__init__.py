"""The only part of the farm that prints: data on stdout, talk on stderr, each for what it is.

A stream that is a terminal gets colour, short lines and a live view; any other gets the same
columns whole and plain, so that `| grep` and a log file see everything. What comes from outside,
a model's name or a log, is made harmless first: no character of it can steer a terminal.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TextIO

from farm.console.layout import Pieces, drawn
from farm.console.progress import JobLine, Progress, RunState
from farm.console.stream import MOST_COLUMNS, Color, Stream
from farm.errors import FarmError
from farm.report import words

if TYPE_CHECKING:
    from msgspec import Struct

    from farm.report.table import Table

__all__ = ["MOST_COLUMNS", "Color", "Console", "JobLine", "Progress", "RunState"]


class Console:
    """Two streams and how to write on each.

    color: `auto` colours a terminal unless NO_COLOR is set or TERM is dumb. json: stdout is for
    one document, and stderr for one error. columns: the width of the terminal, if not to be asked.
    """

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        *,
        color: Color = "auto",
        environ: Mapping[str, str],
        as_json: bool = False,
        quiet: bool = False,
        columns: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = Stream(out, color=color, environ=environ, columns=columns, ends_program=True)
        self._err = Stream(err, color=color, environ=environ, columns=columns, ends_program=False)
        self._json = as_json
        self._silent = quiet or as_json
        self._clock = clock

    def show(self, *blocks: "str | Table") -> None:
        """Write lines and tables on stdout, a blank line around each table."""
        after_table = False
        for at, each in enumerate(blocks):
            is_table = not isinstance(each, str)
            if at and (is_table or after_table):
                self._out.line([])
            for line in self._out.wrapped(each) if isinstance(each, str) else self._drawn(each):
                self._out.line(line)
            after_table = is_table

    def data(self, text: str) -> None:
        """Write text for another program on stdout: unchanged, unless that is a terminal."""
        self._out.write(words.visible(text, lines=True) if self._out.is_terminal else text)

    def document(self, document: "bytes | Mapping[str, object] | Struct") -> None:
        """Write one JSON document as one line on stdout."""
        import msgspec

        given = document if isinstance(document, bytes) else msgspec.json.encode(document)
        self._out.write(given.decode().rstrip("\n") + "\n")

    def say(self, text: str) -> None:
        """Write talk on stderr; with --json or -q nothing."""
        if not self._silent:
            for line in self._err.wrapped(text):
                self._err.line(line)

    def warn(self, text: str) -> None:
        """Write a warning on stderr; with -q or --json too, because it changes what to believe."""
        self._err.line([("warning: ", "yellow"), (words.visible(text), "")])

    def next(self, command: str) -> None:
        """Name the next step on stderr, as a command to paste."""
        if not self._silent:
            self._err.line([("next: ", "dim"), (words.visible(command), "bold")])

    def error(self, error: FarmError, *, usage: str = "") -> int:
        """Write what went wrong, why and what to do next on stderr; return the exit code."""
        if self._json:
            found = {"what": error.what, "why": error.why, "hint": error.hint}
            told = {"schema": "farm.error/v1", "code": error.exit_code} | found
            self._err.write(json.dumps(told) + "\n")
            return error.exit_code
        self._err.line([("error: ", "bold red"), (words.visible(error.what), "")])
        for line in [*error.why.splitlines(), *([f"usage: {usage}"] if usage else [])]:
            self._err.line([(f"  {words.visible(line)}", "")])
        if error.hint:
            self._err.line([])
            self._err.line([("hint: ", "cyan"), (words.visible(error.hint), "")])
        return error.exit_code

    def progress(self) -> Progress:
        """Return a view of a run: live on a terminal, else a line now and then, on stderr."""
        return Progress(self._err, clock=self._clock, silent=self._silent)

    def _drawn(self, table: "Table") -> list[Pieces]:
        drawing = drawn(table, limit=self._out.width if self._out.is_terminal else None)
        notes = [line for note in drawing.notes for line in self._out.wrapped(note, style="dim")]
        return [*drawing.lines, *notes]
