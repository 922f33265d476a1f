"""The `measure:` block of a sweep: how it is measured (protocol) and how long we try (effort)."""

import re
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from farm import presets, reading
from farm.effort import DAY_S, EFFORTS, LEVELS, duration_s
from farm.reading import Place
from farm.schema import Effort, Protocol

Denormals = Literal["as_is", "flush"]

_WHOLE: Final = {  # key → (lowest, highest)
    "repeats": (1, 100),
    "layer_iterations": (1, 100_000),
    "threads": (1, 4096),
    "half_width_ppm": (1, 1_000_000),
    "budget_ms": (1, DAY_S * 1000),
    "min_time_ms": (0, DAY_S * 1000),
}
_AUTO: Final = {"warmup": 0, "iterations": 1}  # key → lowest; `auto` as well
_CHOICES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {  # key → (known, later)
    "grad": (("inference", "no_grad", "function"), ()),
    "denormals": (("as_is", "flush"), ()),
    "input_policy": (("fixed", "rotate"), ()),
    "input_scope": (("device", "host_pinned", "host_pageable"), ()),
    "output_scope": (("device", "host"), ()),
    "l2": (("warm", "flushed"), ()),
    "autocast_scope": (("iteration",), ("outside",)),
    "clocks": (("as_found",), ("locked_base",)),
}
_FIELDS: Final = {"timeout": "timeout_s", "memory_limit": "memory_limit_bytes"}
_FLAGS: Final = ("tails", "layers", "flops", "trace", "energy")
_OTHERS: Final = ("timeout", "memory_limit", "gc", "percentiles", "compat")
# Keys of the full farm. `false` says what happens anyway.
_LATER: Final = ("priority",)
KEYS: Final = ("effort", *_WHOLE, *_AUTO, *_FLAGS, *_OTHERS, *_CHOICES)

_BYTES: Final = {"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


class Measuring(Struct, frozen=True, kw_only=True):
    """What the block asks for; denormals: None where it leaves them to the model."""

    effort: Effort
    protocol: Protocol
    denormals: Denormals | None

    def protocol_for(self, denormals: Denormals) -> Protocol:
        """Return the protocol for a model that asks for these denormals unless the sweep does."""
        return msgspec.structs.replace(self.protocol, denormals=self.denormals or denormals)


def measuring(block: object, place: Place, *, level: str) -> Measuring:
    """Return effort and protocol of the block; level: the effort where the block names none.

    Raises Refused for unknown keys and values, and for what this version does not measure.
    """
    said = {} if block is None else reading.mapping(block, place, known=(*KEYS, *_LATER))
    found: dict[str, Any] = {}
    for key, given in said.items():
        if key in _LATER:
            _check_later(key, given, place.key(key))
        else:
            found[key] = _value(key, given, place.key(key))
    level = found.pop("effort", level)
    if "compat" in found:
        found = presets.fields(found["compat"]) | found
    fields = {_FIELDS.get(key, key): value for key, value in found.items()}
    effort = {key: fields.pop(key) for key in tuple(fields) if key in Effort.__struct_fields__}
    return Measuring(
        effort=msgspec.structs.replace(EFFORTS[level], **effort),
        protocol=Protocol(**fields),
        denormals=fields.get("denormals"),
    )


def _value(key: str, given: object, place: Place) -> Any:
    if key in _WHOLE:
        low, high = _WHOLE[key]
        return reading.whole(given, place, low=low, high=high)
    if key in _AUTO:
        return "auto" if given == "auto" else _count(given, place, low=_AUTO[key])
    if key in _CHOICES:
        known, later = _CHOICES[key]
        return reading.one_of(given, place, thing=key, known=known, later=later)
    if key == "effort":
        return reading.one_of(given, place, thing="effort", known=LEVELS)
    if key in _FLAGS:
        return reading.flag(given, place)
    if key == "percentiles":
        return _percentiles(given, place)
    if key == "compat":
        named = given if isinstance(given, str) else str(given)
        return reading.one_of(named, place, thing="preset", known=presets.NAMES)
    if key == "timeout":
        return _seconds(given, place)
    if key == "memory_limit":
        return _bytes(given, place)
    # YAML reads a bare `off` as false.
    given = {False: "off", True: "on"}[given] if isinstance(given, bool) else given
    return reading.one_of(given, place, thing="gc", known=("off", "on"))


def _count(given: object, place: Place, *, low: int) -> int:
    if isinstance(given, str):
        raise place.refused(f"expected `auto` or a whole number, got {reading.short(given)}")
    return reading.whole(given, place, low=low, high=10_000_000)


def _percentiles(given: object, place: Place) -> tuple[float, ...]:
    """Return them in order, the median among them."""
    if not isinstance(given, list) or not 1 <= len(given) <= 20:
        raise place.refused(f"expected 1 to 20 percentiles, got {reading.kind_of(given)}")
    for index, each in enumerate(given):
        number = isinstance(each, int | float) and not isinstance(each, bool)
        if not number or not 0.001 <= each <= 99.999:
            raise place.key(str(index)).refused(
                f"{reading.short(each)} is no percentile", why="a number from 0.001 to 99.999"
            )
    return tuple(sorted({50.0, *map(float, given)}))


def _seconds(given: object, place: Place) -> int:
    found = duration_s(given) if isinstance(given, str) else None
    if found is None or found > 7 * DAY_S:
        got = reading.short(given) if isinstance(given, str) else reading.kind_of(given)
        raise place.refused(f"expected a duration up to 7d, got {got}", hint="for example 10m")
    return found


def _bytes(given: object, place: Place) -> int:
    found = re.fullmatch(r"([1-9][0-9]{0,5}) ?([MGT]iB)", given) if isinstance(given, str) else None
    if found is None:
        got = reading.short(given) if isinstance(given, str) else reading.kind_of(given)
        raise place.refused(f"expected an amount of memory, got {got}", hint="for example 2GiB")
    return int(found[1]) * _BYTES[found[2]]


def _check_later(key: str, given: object, place: Place) -> None:
    if given is not False:
        raise place.refused(f"{key} is not in this version", hint=f"leave {key} out, or say false")
