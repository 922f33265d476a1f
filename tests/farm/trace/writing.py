"""Traces as the bytes of a file, in any order and with any blanks."""

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple


@dataclass(frozen=True)
class Micros:
    """A time in ns, which is written in µs with all its digits."""

    ns: int

    def __str__(self) -> str:
        whole, part = divmod(abs(self.ns), 1000)
        return f"{'-' * (self.ns < 0)}{whole}" + f".{part:03d}".rstrip("0").rstrip(".") * (part > 0)


Value = str | int | float | None | Micros | Sequence["Value"] | dict[str, "Value"]
Blank = Callable[[], str]
KEYS: Final[dict[str, Value]] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": 'a {"traceEvents": [1]} GPU'}, {"id": 1}],
    "traceName": "/tmp/a\\b.json",
}
LATER_KEYS: Final[dict[str, Value]] = {
    "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    "others": [{"ph": "X"}, {"traceEvents": []}],
}


class Style(NamedTuple):
    """blank: what stands before each sign. is_list: nothing is around the events."""

    blank: Blank = str
    is_list: bool = False


PLAIN: Final = Style()


def text(value: Value, blank: Blank = str) -> str:
    """Return a value as JSON."""
    if isinstance(value, Micros):
        return str(value)
    if isinstance(value, dict):
        told = [
            f"{blank()}{json.dumps(key)}{blank()}:{blank()}{text(each, blank)}"
            for key, each in value.items()
        ]
        return "{" + f"{blank()},".join(told) + blank() + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        told = [blank() + text(each, blank) for each in value]
        return "[" + f"{blank()},".join(told) + blank() + "]"
    return json.dumps(value, ensure_ascii=False)


def file(events: Iterable[Value | bytes], style: Style = PLAIN) -> bytes:
    """Return a file of these events, each a value or the text of one; with keys on either side."""
    blank = style.blank
    told = [
        each if isinstance(each, bytes) else text(each, blank).encode("utf-8") for each in events
    ]
    after = [f"{blank()},{blank()}".encode() for _ in told]
    listed = b"".join(part for pair in zip(told, after, strict=True) for part in pair)
    inner = b"[" + blank().encode() + listed[: len(listed) - len(after[-1]) if after else 0] + b"]"
    if style.is_list:
        return inner
    head = text(KEYS, blank).removesuffix("}") + f'{blank()},{blank()}"traceEvents"{blank()}:'
    tail = text(LATER_KEYS, blank).removeprefix("{")
    return (head + blank()).encode() + inner + f"{blank()},{tail}".encode()


def shuffled(value: Value, random: Random) -> Value:
    """Return it with the keys of each object in another order."""
    if isinstance(value, dict):
        keys = random.sample(list(value), len(value))
        return {key: shuffled(value[key], random) for key in keys}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [shuffled(each, random) for each in value]
    return value


def packed(data: bytes, *, members: int = 1) -> bytes:
    """Return it as gzip, in one member or several."""
    step = -(-len(data) // members) or 1
    parts = [data[at : at + step] for at in range(0, len(data), step)] or [b""]
    return b"".join(gzip.compress(each, mtime=0) for each in parts)
