"""The ids: what makes two jobs, two systems or two documents the same one.

Ids are hashes of plain data (dicts, lists, strings, integers), so this module knows no schema:
`schema.py` turns its records into plain data and asks here. Floats are refused inside an identity,
because one number has several spellings as a float and an id must have one.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from farm.errors import NoResult, Refused

Plain = Mapping[str, Any]

_DIGEST_FIELDS = ("digest",)
_GIB = 1 << 30


def canonical(value: object) -> bytes:
    """Return the one spelling of plain data: sorted keys, UTF-8, NFC, no blanks, no floats.

    Raises Refused if a float, or anything that JSON does not know, is inside.
    """
    return json.dumps(
        _normal(value), sort_keys=True, ensure_ascii=False, separators=(",", ":")
    ).encode()


def short_hash(value: object) -> str:
    """Return the first 32 hex digits of the SHA-256 of the canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()[:32]


def content_id(data: bytes) -> str:
    """Return the SHA-256 of the bytes in 64 hex digits: the id of profiles, cards and blobs."""
    return hashlib.sha256(data).hexdigest()


def workload_id(workload: Plain) -> str:
    """Return the id of what is computed, content digests included: it decides reuse."""
    return short_hash(workload)


def cell_id(workload: Plain) -> str:
    """Return the id of what is computed by its stable names: it keys history and reports.

    The model counts by its name alone, the inputs by their specification and seed; a new content
    digest, or a file that moved, continues the same cell (rule 2 of the decisions).
    """
    stable = {key: value for key, value in workload.items() if key not in ("model", "inputs")}
    stable["model"] = workload["model"]["name"]
    inputs = workload["inputs"]
    stable["inputs"] = {key: inputs[key] for key in inputs if key not in _DIGEST_FIELDS}
    return short_hash(stable)


def protocol_id(protocol: Plain) -> str:
    """Return the id of how it is measured, as requested: `auto` stays `auto`."""
    return short_hash(protocol)


def job_id(workload: Plain, protocol: Plain, selector: Plain) -> str:
    """Return the id of workload, protocol and device selector together."""
    return short_hash(
        {
            "workload": workload_id(workload),
            "protocol": protocol_id(protocol),
            "selector": selector,
        }
    )


def system_id(stable: Plain) -> str:
    """Return the id of the stable part of a system card.

    Every `…_bytes` is rounded to whole GiB first when it is larger than one: the memory that a
    kernel reports moves by a few pages from version to version.
    """
    return short_hash(_rounded(stable))


def match(prefix: str, ids: Iterable[str], *, thing: str) -> str:
    """Return the one id that starts with the prefix, or equals it.

    Raises NoResult if none does, Refused naming the candidates if several do.
    """
    found = sorted({each for each in ids if each.startswith(prefix)})
    if prefix in found:
        return prefix
    if not found:
        raise NoResult(f"no {thing} starts with {prefix!r}")
    if len(found) > 1:
        some = ", ".join(found[:5]) + (" …" if len(found) > 5 else "")
        raise Refused(f"{prefix!r} is ambiguous", why=f"{len(found)} {thing}s match: {some}")
    return found[0]


def _normal(value: object) -> object:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, Mapping):
        pairs = {}
        for key, each in value.items():
            if not isinstance(key, str):
                raise Refused(f"key {key!r} of an identity is not text")
            pairs[unicodedata.normalize("NFC", key)] = _normal(each)
        return pairs
    if isinstance(value, list | tuple):
        return [_normal(each) for each in value]
    raise Refused(
        f"{value!r} cannot be part of an identity",
        why=f"{type(value).__name__} has no single spelling; use an integer or text",
    )


def _rounded(value: object, key: str = "") -> object:
    if isinstance(value, Mapping):
        return {name: _rounded(each, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    big = isinstance(value, int) and key.endswith("_bytes") and value > _GIB
    return round(value / _GIB) * _GIB if big else value  # type: ignore[operator]
