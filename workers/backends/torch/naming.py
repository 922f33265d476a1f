"""Names of modules and classes as a record and a CSV can hold them."""

import hashlib
from typing import Final

_LONGEST: Final = 10_000
_DIGITS: Final = 16


def printable(name: str) -> str:
    """Return the name as UTF-8 can hold it, at most 10,000 characters long.

    What cannot be encoded is written as an escape. Of a longer name the beginning stays, an
    ellipsis and the first sixteen digits of the SHA-256 of the whole, so that two stay two.
    """
    encoded = name.encode(errors="backslashreplace")
    plain = encoded.decode()
    if len(plain) <= _LONGEST:
        return plain
    ending = "…" + hashlib.sha256(encoded).hexdigest()[:_DIGITS]
    return plain[: _LONGEST - len(ending)] + ending
