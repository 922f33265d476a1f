"""A guide as what it asks one to do: files to write, commands to run, answers to see.

A fenced block of a language whose first line is `# NAME` is a file. One without a language holds
commands, `# exit N` behind those that do not end with 0. `text` is what the last command says,
`sh` is for a machine of one's own and is run by nobody but the test of a newcomer.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / "docs" / "user"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"\s+# exit (\d+)$")


class File(NamedTuple):
    name: str
    text: str


class Command(NamedTuple):
    words: list[str]
    code: int


class Answer(NamedTuple):
    text: str


def steps(guide: Path) -> Iterator[File | Command | Answer]:
    """Yield what the guide asks for, in its order."""
    for language, text in _BLOCK.findall(guide.read_text()):
        first, _, rest = text.partition("\n")
        name = first.removeprefix("# ")
        if language == "text":
            yield Answer(text)
        elif language and name != first and "." in name:
            yield File(name, rest)
        elif not language:
            yield from map(_command, filter(None, text.splitlines()))


def shell(guide: Path) -> list[str]:
    """Return the blocks that are for the shell of one's own machine."""
    return [text for language, text in _BLOCK.findall(guide.read_text()) if language == "sh"]


def _command(line: str) -> Command:
    found = _EXIT.search(line)
    words = shlex.split(_EXIT.sub("", line))
    return Command(words, int(found[1]) if found else 0)
