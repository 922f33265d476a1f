"""One event of a trace, decoded: by its types where it keeps to them, else field by field."""

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import nan
from typing import Any, Final

import msgspec

from farm.trace.reading.tally import Tally

UNNAMED: Final = "unknown"
EXACT_FROM: Final = 2**43  # µs: from here on a float steps by 1 ns and more
_LARGEST: Final = Decimal(10) ** 18
Id = int | str | None


class Args(msgspec.Struct, gc=False):
    """The arguments that anything is made of; the others are skipped."""

    correlation: Id = None
    cid: Id = None
    device: Id = None
    stream: Id = None
    external_id: Id = msgspec.field(name="External id", default=None)
    old_external_id: Id = msgspec.field(name="external id", default=None)
    occupancy: float | None = msgspec.field(name="est. achieved occupancy %", default=None)
    bytes: int | None = msgspec.field(name="Bytes", default=None)
    allocated: int | None = msgspec.field(name="Total Allocated", default=None)
    reserved: int | None = msgspec.field(name="Total Reserved", default=None)
    device_type: int | None = msgspec.field(name="Device Type", default=None)
    device_id: int | None = msgspec.field(name="Device Id", default=None)


class Event(msgspec.Struct, gc=False):
    """An event; ts and dur in µs, NaN where there is no ts. ph: "" where there is none."""

    ph: str = ""
    cat: str = ""
    name: str = UNNAMED
    ts: float | Decimal = nan
    dur: float = 0.0
    pid: int | str = 0
    tid: int | str = 0
    args: Args | None = None


class _Float(Event, gc=False):
    ts: float = nan


class _Exact(Event, gc=False):
    ts: Any = Decimal("NaN")  # what is typed as a decimal may also be text


Many = Callable[[memoryview], list[Event]]
One = Callable[[bytes], Event]


def many(*, exact: bool) -> Many:
    """Return what decodes a JSON list of events; exact: with time stamps as decimals."""
    if exact:
        decode = msgspec.json.Decoder(list[_Exact], float_hook=_decimal).decode
        return lambda text: [_exact(each) for each in decode(text)]
    return msgspec.json.Decoder(list[_Float]).decode  # type: ignore[return-value]


def one(*, exact: bool) -> One:
    """Return what decodes one JSON object as `many` does a list of them."""
    if exact:
        decode = msgspec.json.Decoder(_Exact, float_hook=_decimal).decode
        return lambda text: _exact(decode(text))
    return msgspec.json.Decoder(_Float).decode


def lenient(text: bytes, tally: Tally) -> Event | None:
    """Return the event that a JSON object means whatever types it has; None, counted, if none.

    Raises ValueError where the text is no JSON (RecursionError where it is nested too deeply).
    """
    constants: list[str] = []
    found = json.loads(text, parse_float=_decimal, parse_constant=constants.append)
    tally.repair("non_finite", bool(constants))
    if not isinstance(found, dict):
        tally.drop("unparsable")
        return None
    phase, name, args = found.get("ph"), found.get("name", UNNAMED), found.get("args")
    if not isinstance(phase, str):
        tally.drop("no_phase")
        return None
    if name is None:
        tally.repair("null_name")
        name = UNNAMED
    time, length = found.get("ts"), found.get("dur")
    tally.repair("number_text", isinstance(time, str) or isinstance(length, str))
    category = found.get("cat")
    return Event(
        ph=_text(phase, tally),
        cat=_text(category, tally) if isinstance(category, str) else "",
        name=_text(name, tally),
        ts=_number(time, Decimal("NaN")),
        dur=float(_number(length, Decimal(0))),
        pid=_lane(found.get("pid"), tally),
        tid=_lane(found.get("tid"), tally),
        args=_args(args, tally) if isinstance(args, dict) else None,
    )


def _exact(event: _Exact) -> Event:
    """Return it with a decimal; raises msgspec.ValidationError if its time is no number."""
    if type(event.ts) is int:
        event.ts = Decimal(event.ts)
    elif type(event.ts) is not Decimal:
        raise msgspec.ValidationError("ts is no number")
    return event


def _decimal(text: str) -> Decimal:
    """Return a number; one with an exponent that no decimal has is as large as is of use, or 0."""
    try:
        return Decimal(text)
    except InvalidOperation:
        digits, _, exponent = text.lower().partition("e")
        return Decimal(0) if exponent.startswith("-") else Decimal(digits) * _LARGEST


def _args(found: dict[str, Any], tally: Tally) -> Args:
    occupancy = found.get("est. achieved occupancy %")
    return Args(
        correlation=_id(found.get("correlation"), tally),
        cid=_id(found.get("cid"), tally),
        device=_id(found.get("device"), tally),
        stream=_id(found.get("stream"), tally),
        external_id=_id(found.get("External id"), tally),
        old_external_id=_id(found.get("external id"), tally),
        occupancy=None if occupancy is None else float(_number(occupancy, Decimal("NaN"))),
        bytes=_whole(found.get("Bytes")),
        allocated=_whole(found.get("Total Allocated")),
        reserved=_whole(found.get("Total Reserved")),
        device_type=_whole(found.get("Device Type")),
        device_id=_whole(found.get("Device Id")),
    )


def _text(value: object, tally: Tally) -> str:
    """Return a name as text that any file can hold."""
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        tally.repair("utf8")
        return text.encode("utf-8", "replace").decode()
    return text


def _number(value: object, otherwise: Decimal) -> Decimal:
    """Return a number, also one that is written as text; absurd ones are as large as is of use."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return otherwise
    try:
        found = Decimal(value)
    except (InvalidOperation, ValueError):
        return otherwise
    if not found.is_finite():
        return otherwise
    return max(-_LARGEST, min(_LARGEST, found))


def _whole(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _number(value, Decimal("NaN"))
    return int(found) if found.is_finite() else None


def _id(value: object, tally: Tally) -> Id:
    if isinstance(value, str):
        return _text(value, tally)
    return _whole(value)


def _lane(value: object, tally: Tally) -> int | str:
    found = _id(value, tally)
    return 0 if found is None else found
