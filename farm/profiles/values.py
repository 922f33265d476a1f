"""One bare value of a profile, by the name of a metric, a dotted path or a kind of artefact."""

import gzip
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from farm import schema
from farm.catalog.rows import Row
from farm.errors import FarmError, NoResult, Refused, did_you_mean
from farm.profiles.showing import state
from farm.report import words
from farm.schema import Profile
from farm.store import Store, card_key

# Names of figures that every command knows, and where a profile holds them.
METRICS: Final[Mapping[str, str]] = {
    "latency.p50": "latency.p50_ms",
    "latency.p90": "latency.p90_ms",
    "latency.p95": "latency.p95_ms",
    "latency.p99": "latency.p99_ms",
    "latency.mean": "latency.mean_ms",
    "throughput": "throughput.throughput_items_per_s",
    "memory.host": "memory.cpu_rss_peak_bytes",
    "noise": "latency.proc_cv",
}
_DOCUMENTS: Final = ("job", "card")
# What an attempt may leave; a newer farm may leave more.
ARTIFACTS: Final = ("layers", "layer_table", "log", "output", "samples")
_TEXTS: Final = ("layers", "layer_table", "log")  # artefacts that are printed as they are


class Value(NamedTuple):
    """One value of a profile: as bare text, as plain data, and why it is null if it is."""

    text: str
    data: object
    reason: str


def fields(row: Row) -> list[str]:
    """Return the names that `value` takes for this profile.

    A list counts as one field, and so does the job; parts of either have values as well.
    """
    plain = _plain(row.profile)
    names = [name for name, path in METRICS.items() if _reached(plain, path.split("."))]
    flat = _paths({**plain, "job": {}}, "", lists=False)
    others = [each for each in flat if each not in _DOCUMENTS]
    return [*names, *_DOCUMENTS, *sorted(row.profile.artifacts), *others]


def value(store: Store, row: Row, field: str) -> Value:
    """Return one value: a metric, a dotted path, `job`, `card`, or an artefact that is text.

    Raises Refused for a name that no profile has, with the nearest one, NoResult for one that this
    profile has not.
    """
    profile = row.profile
    if field == "job":
        text = schema.encode(profile.job).decode()
        return Value(f"{text}\n", msgspec.json.decode(text), "")
    if field == "card":
        if not profile.card_id:
            raise NoResult("this profile names no card", why=f"it ended as {state(profile)}")
        text = store.get(card_key(profile.card_id)).decode()
        return Value(f"{text}\n", msgspec.json.decode(text), "")
    if field in profile.artifacts:
        return _artifact(store, profile, field)
    path = METRICS.get(field, field)
    found = _reached(msgspec.to_builtins(profile), path.split("."))
    if not found:
        raise _absent(row, field, path)
    reason = profile.null_reasons.get(path, "")
    if isinstance(found[0], str):
        return Value(f"{found[0]}\n", found[0], reason)
    return Value(f"{msgspec.json.encode(found[0]).decode()}\n", found[0], reason)


def by(found: Sequence[Row], field: str) -> list[Row]:
    """Return the rows by a number of theirs, the smallest first; those without it come last.

    field: a metric, or a dotted path. Rows that are equal keep their order. Raises Refused for a
    name that no profile has, with the nearest one, and for what is no number.
    """
    path = METRICS.get(field, field)
    values = [_reached(msgspec.to_builtins(each.profile), path.split(".")) for each in found]
    known = [*METRICS, *METRICS.values()]
    if field not in known and found and not any(values):
        paths = [name for each in found for name in _paths(_plain(each.profile), "", lists=False)]
        raise Refused(
            f"a profile has no number {field!r}",
            why=f"known: {', '.join(METRICS)}, or a dotted path",
            hint=did_you_mean(field, [*known, *dict.fromkeys(paths)]),
        )
    numbers = [_number(each[0] if each else None, field) for each in values]
    order = sorted(range(len(found)), key=lambda at: (numbers[at] is None, numbers[at] or 0.0))
    return [found[at] for at in order]


def _number(value: object, field: str) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise Refused(f"{field!r} is not a number", hint="`farm profiles get PROFILE` lists the fields")


def _artifact(store: Store, profile: Profile, kind: str) -> Value:
    found = profile.artifacts[kind]
    data = store.get(found.key, sha256=found.sha256)
    if kind in _TEXTS:
        text = (gzip.decompress(data) if kind == "log" else data).decode(errors="replace")
        return Value(text, text, "")
    where = f"{found.key} ({words.size(found.bytes)}, {found.media_type})"
    return Value(f"{where}\n", msgspec.to_builtins(found), "")


def _absent(row: Row, field: str, path: str) -> FarmError:
    """Return the error for a name that leads nowhere: nobody has it, or this profile has not."""
    profile = row.profile
    block = path.partition(".")[0]
    if field in ARTIFACTS or getattr(profile, block, None) is msgspec.UNSET:
        return NoResult(f"this profile has no {block}", why=f"it ended as {state(profile)}")
    known = [*fields(row), *_paths(_plain(profile), "", lists=True)]
    return Refused(
        f"a profile has no field {field!r}",
        hint=did_you_mean(field, known) or "`farm profiles get PROFILE` lists them",
    )


def _plain(profile: Profile) -> dict[str, object]:
    """Return a profile without the reasons of its nulls, which are told with each value."""
    plain: dict[str, object] = msgspec.to_builtins(profile)
    return {key: each for key, each in plain.items() if key != "null_reasons"}


def _reached(found: object, parts: Sequence[str]) -> list[object]:
    """Return the value that a path leads to, as a list of one, or []; a key may hold dots."""
    if not parts:
        return [found]
    if isinstance(found, dict):
        for size in range(1, len(parts) + 1):
            key = ".".join(parts[:size])
            if key in found and (inside := _reached(found[key], parts[size:])):
                return inside
    elif isinstance(found, list) and re.fullmatch("[0-9]{1,9}", parts[0]):
        return _reached(found[int(parts[0])], parts[1:]) if int(parts[0]) < len(found) else []
    return []


def _paths(plain: object, path: str, *, lists: bool) -> list[str]:
    """Return the path of every value inside; lists: also of those in lists."""
    if isinstance(plain, dict) and plain:
        items = [(str(key), each) for key, each in plain.items()]
    elif lists and isinstance(plain, list) and plain:
        items = [(str(index), each) for index, each in enumerate(plain)]
    else:
        return [path]
    inside = f"{path}." if path else ""
    return [found for key, each in items for found in _paths(each, inside + key, lists=lists)]
