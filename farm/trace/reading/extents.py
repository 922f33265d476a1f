"""How long a JSON value is that a text begins with: the decoder knows, and says it as an error."""

import re
from typing import Final

import msgspec

CUT, DAMAGED = -1, -2
_DECODE: Final = msgspec.json.Decoder(msgspec.Raw).decode
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")


def extent(text: memoryview) -> int:
    """Return how long the value is that a text begins with; CUT or DAMAGED if it is not whole."""
    try:
        _DECODE(text)
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing is not None:
            return int(trailing[1]) - 1
        ends_in_number = str(error).endswith(f"(byte {len(text)})")
        return CUT if ends_in_number or "truncated" in str(error) else DAMAGED
    except RecursionError:
        return DAMAGED
    return len(text)
