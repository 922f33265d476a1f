"""The context of a command: how to speak, which settings hold, where the store is."""

import io
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from farm.console import Color, Console
    from farm.settings import Settings
    from farm.store import Store


@dataclass(frozen=True, kw_only=True)
class Talk:
    """What the words before the verb settled."""

    quiet: bool = False
    verbose: bool = False
    config: str | None = None
    color: "Color" = "auto"
    as_json: bool = False

    @classmethod
    def from_words(cls, words: Sequence[str]) -> "Talk":
        """Return how to speak of an error when the words may not even parse."""
        said = " ".join(words).replace("--color=", "--color ")
        plain = [each for each in ("always", "never") if f"--color {each}" in said]
        return cls(
            quiet="-q" in words or "--quiet" in words,
            verbose="-v" in words or "--verbose" in words,
            color=cast("Color", plain[0]) if plain else "auto",
            as_json="--json" in words,
        )

    def console(self) -> "Console":
        from farm.console import Console

        return Console(
            _open(sys.stdout),
            _open(sys.stderr),
            color=self.color,
            environ=os.environ,
            as_json=self.as_json,
            quiet=self.quiet,
        )

    def settings(self, **flags: str | None) -> "Settings":
        """Return the effective settings; raises Refused naming the origin of a bad one."""
        from farm import settings

        return settings.load(
            {"config": self.config, **flags}, env=os.environ, cwd=current_folder(), home=Path.home()
        )

    def store(self, url: str) -> "Store":
        from farm.store import open_store

        return open_store(url)

    @property
    def is_attended(self) -> bool:
        """Whether somebody sits at a terminal who could answer a question."""
        streams = (sys.stdin, sys.stderr)
        return not self.as_json and all(each is not None and each.isatty() for each in streams)

    def agree(self, question: str, *, yes: bool, otherwise: str) -> None:
        """Return if a person agrees, or has with -y; raise Stopped if not.

        otherwise: what has not happened then. Raises Refused where nobody can be asked.
        """
        from farm.errors import Refused, Stopped

        if yes:
            return
        if not self.is_attended:
            raise Refused(f"{question}, and nobody is here to ask", hint="give -y to agree")
        self.console().say(f"{question}; go on? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Stopped(otherwise)


def check_words(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Raise Refused for an argument, or a variable of ours, that is no UTF-8.

    What is measured under such a name could be written into no document, and that would come out
    after the measurement.
    """
    said = [("argument", each) for each in words]
    said += [(name, each) for name, each in environ.items() if name.startswith("FARM_")]
    for where, word in said:
        _check_text(word, where)


def current_folder() -> Path:
    """Return the folder that relative names start from.

    Raises Refused if it was deleted, or if its name is no UTF-8, as `check_words` does.
    """
    from farm.errors import Refused

    try:
        found = Path.cwd()
    except FileNotFoundError as error:
        raise Refused("the current folder is gone", hint="cd to another one") from error
    _check_text(str(found), "current folder")
    return found


def check_place(path: Path) -> None:
    """Make the folder of a file that will be written; raise Refused if it could not be.

    Asked before anything is measured for it.
    """
    from farm.writing import write

    write(path, (), trial=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all, making its folder."""
    from farm.writing import write

    write(path, [text.encode()])


def _check_text(word: str, where: str) -> None:
    from farm.errors import Refused

    try:
        word.encode()
    except UnicodeEncodeError as error:
        from farm.reading import short

        why = "documents are UTF-8, and must name what was measured"
        raise Refused(f"{where} {short(word)} is not UTF-8", why=why, hint="rename it") from error


def _open(stream: TextIO | None) -> TextIO:
    """Return the stream; one that was closed before we began swallows what is written."""
    return stream if stream is not None else io.StringIO()


def stand_aside() -> None:
    """Keep a command that only reads off the cores that this machine may be measuring on.

    The lowest core is for housekeeping, and people are invited to look while a run goes on.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
