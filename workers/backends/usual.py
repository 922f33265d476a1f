"""The usual of what an iteration meets, for backends that do nothing about it."""

from typing import Final

from farm.schema import Protocol
from workers.backends import LoadFailed

_AS_USUAL: Final = {
    "input_policy": "fixed",
    "input_scope": "device",
    "output_scope": "device",
    "l2": "warm",
    "clocks": "as_found",
}


def check_usual(protocol: Protocol, *, backend: str) -> None:
    """Raise LoadFailed where a protocol asks for more than the usual of what an iteration meets.

    A protocol that would be ignored is not measured.
    """
    for field, offered in _AS_USUAL.items():
        asked = getattr(protocol, field)
        if asked != offered:
            what = f"{field}: the {backend} backend offers {offered!r}, not {asked!r}"
            raise LoadFailed("unsupported", what)
