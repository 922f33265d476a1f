"""The JSON Schema of every document that the farm prints or keeps, for programs that read them.

Version 1 only grows, so a schema allows fields that it does not name: a document of a newer farm
fits the schema of an older one.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from farm import answers, schema
from farm.costs.record import CostReport
from farm.errors import Refused, did_you_mean
from farm.hardware import Roofs
from farm.interchange import Comparison
from farm.interchange.document import CallableProfile, RosterValidation
from farm.report.record import Report
from farm.trace.analysis.answers import KernelsRead, MetricsRead, OpsRead, PhasesRead, WhatIf
from farm.trace.analysis.record import Analysis
from farm.trace.comparing.record import TraceComparison
from farm.trace.documents import LayersRead, LayersTaken
from farm.trace.importing.record import LayerProfile, LayerTimesRead, OpTimesRead
from farm.trace.matching import LayerComparison
from farm.trace.sidecar import Sidecar
from farm.verify import Verified

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_STORED: Final[tuple[type[Struct], ...]] = (
    *(schema.Job, schema.Manifest, schema.Order, schema.Profile, schema.SystemCard, schema.Tag),
    *(schema.Catalog, schema.CatalogHead, schema.LayerTable, Roofs),
)
# What the instrument prints, and what it leaves beside or in place of a profile.
_BY_HAND: Final[tuple[type[Struct], ...]] = (
    *(CallableProfile, Comparison, CostReport, RosterValidation, Verified),
    *(LayersTaken, LayersRead, LayerComparison, Sidecar),
    *(Analysis, MetricsRead, PhasesRead, KernelsRead, OpsRead, WhatIf, TraceComparison),
    *(LayerProfile, LayerTimesRead, OpTimesRead),
)


def things() -> dict[str, type[Struct]]:
    """Return every kind of document by its short name, the middle of its tag, in their order."""
    kinds: list[type[Struct]] = [*answers.ANSWERS, *_STORED, *_BY_HAND, Report]
    return {_name(each): each for each in sorted(kinds, key=_name)}


def stored() -> list[str]:
    """Return the names of what a store keeps: old ones of these are read for ever."""
    return sorted(_name(each) for each in _STORED)


def json_schema(thing: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of document, by its short name; its title is the tag.

    Raises Refused for an unknown kind, with the nearest one.
    """
    known = things()
    if thing not in known:
        hint = did_you_mean(thing, list(known))
        raise Refused(f"no document {thing!r}", why=f"known: {', '.join(known)}", hint=hint)
    kind = known[thing]
    # As a reader of the JSON sees it: the default of a field may be a tuple.
    made = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(kind)))
    inside = made["$defs"]
    for each in inside.values():
        _open(each)
    top = inside.pop(kind.__name__)
    found = {"$schema": DIALECT, **top, "title": _tag(kind)}
    return found | {"$defs": inside} if inside else found


def _open(kind: dict[str, Any]) -> None:
    """Let a kind of object grow, and fix the name of its schema where it has one."""
    if kind.get("additionalProperties") is False:
        # We refuse unknown fields in what a person writes; who reads ours must not.
        del kind["additionalProperties"]
    named = kind.get("properties", {}).get("schema", {})
    if "enum" in named:
        (named["const"],) = named.pop("enum")


def _tag(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _name(kind: type[Struct]) -> str:
    return _tag(kind).removeprefix("farm.").partition("/")[0]
