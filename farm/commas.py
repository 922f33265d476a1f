"""Lines of a CSV file that every reader takes for the same cells, and no spreadsheet runs.

The csv module of Python 3.11 leaves a lone carriage return unquoted, which ends a line for readers.
"""

import re
from collections.abc import Iterable
from typing import Final

_FORMULA: Final = re.compile(r"^\s*[=+\-@|]|^[\t\r\n]")
_QUOTED: Final = re.compile(r'[",\r\n]')


def line(texts: Iterable[str]) -> str:
    """Return cells as one line with its end. Source: RFC 4180, with a bare newline."""
    cells = [f'"{each.replace(_Q, _Q * 2)}"' if _QUOTED.search(each) else each for each in texts]
    # a line without a sign would be no line at all
    return (",".join(cells) or '""') + "\n"


def defused(text: str) -> str:
    """Return the text; one that a spreadsheet would take for a formula starts with an apostrophe.

    Source: OWASP, CSV injection.
    """
    return f"'{text}" if _FORMULA.match(text) else text


_Q: Final = '"'
